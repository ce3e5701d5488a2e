"""Tasks on the embedded corpus: Python's language reference and the docstrings of its standard library; no download.

Pretraining, on the documents (train 84 %, validation and test 8 % each, by a hash of the text):

    pydocs_span_corruption   pydocs_mlm   pydocs_causal_lm   pydocs_prefix_lm
    pydocs_mlm_whole_word    and the other ways to mask of t2t.data.masked_objectives
    pydocs_ul2               UL2's mixture of the denoisers of t2t.data.ul2, and pydocs_ul2_40_40_20
    pydocs_bart              BART's infilling and permutation, and its other noises (t2t.data.denoising_objectives)
    pydocs_t5_iid_15_u_u     and the other objectives of T5's grid (t2t.data.t5_grid)
    pydocs_permutation_lm    XLNet's objective, and for models with a memory pydocs_permutation_lm_bidirectional
    pydocs_mlm_nsp           pairs of BERT, ALBERT, ELECTRA and RoBERTa's formats (t2t.data.pair_objectives)

Supervised text-to-text (counts of Python 3.11; the baseline always answers the commonest class of the training split,
for summaries the first eight words of the body):

    pydocs_topic       topic: a passage -> the package it documents (23), its name hidden       accuracy
    pydocs_kind        kind: a passage -> module, class, function or language                    accuracy
    pydocs_cloze       cloze: words around a gap -> the missing one of 14 frequent words         accuracy
    pydocs_summarize   summarize: the body of a docstring -> its first line (for longer runs)    ROUGE

    pydocs_multitask   topic, kind and cloze, proportional to their examples with a cap

Baselines in per cent of Python 3.11 (examples of train, validation, test):

    topic    validation 10.5, test  9.3    (2,552, 228, 257)
    kind     validation 35.4, test 29.1    (3,363, 294, 357)
    cloze    validation  7.5, test  7.2    (12,464, 1,152, 1,199)

The held-out examples come from held-out documents, so that pretraining has not seen them either.
"""

import functools
from collections.abc import Sequence

from t2t.data import (
    denoising_objectives,
    masked_objectives,
    mixing,
    pair_objectives,
    permutation_objectives,
    pydocs,
    pydocs_examples,
    registry,
    ul2,
)
from t2t.train import text_metrics

MIXTURE_CAP = 3000
"""Examples that a task of the mixture counts for at most; without it the 12,000 of `cloze` would take two thirds."""

METRICS = {
    "topic": text_metrics.accuracy,
    "kind": text_metrics.accuracy,
    "cloze": text_metrics.accuracy,
    "summarize": text_metrics.rouge,
}


def document_texts(split: str) -> list[dict[str, str]]:
    """The documents of a split as the rows of a source."""
    return [{"text": document.text} for document in pydocs.split_documents(split)]


def example_texts(split: str, *, kind: str) -> list[dict[str, str]]:
    """The supervised examples of a split as the rows of a source."""
    return [{"inputs": example.inputs, "targets": example.targets} for example in pydocs_examples.EXAMPLES[kind](split)]


def baseline(task: str, split: str = "validation", max_examples: int | None = None) -> dict[str, float]:
    """What a predictor that has learned nothing reaches on a task: {metric: per cent}.

    Args:
        task: its name, such as pydocs_topic.
        split: where it is measured; the commonest class is that of the training split.
        max_examples: how many of it, from the first; None is all.

    Raises:
        ValueError: for a task without a baseline.
    """
    kind = task.removeprefix("pydocs_")
    if kind not in METRICS:
        raise ValueError(
            f"task={task!r} has no baseline; those of {', '.join(f'pydocs_{name}' for name in METRICS)} do"
        )
    examples = pydocs_examples.EXAMPLES[kind]
    held_out = examples(split)[:max_examples]
    predictions: Sequence[str]
    if kind == "summarize":
        predictions = [pydocs_examples.first_words(example.inputs) for example in held_out]
    else:
        commonest = pydocs_examples.most_frequent(example.targets for example in examples("train"))
        predictions = [commonest] * len(held_out)
    return METRICS[kind]([example.targets for example in held_out], predictions)


DOCUMENTS = registry.TextSource(document_texts, splits=pydocs.SPLITS, modules=[pydocs])

registry.add_objectives("pydocs", DOCUMENTS)
masked_objectives.add_masked_objectives("pydocs", DOCUMENTS)
ul2.add_ul2("pydocs", DOCUMENTS)
denoising_objectives.add_bart_objectives("pydocs", DOCUMENTS)
denoising_objectives.add_t5_grid("pydocs", DOCUMENTS)
permutation_objectives.add_permutation_lm("pydocs", DOCUMENTS)
pair_objectives.add_pair_objectives("pydocs", DOCUMENTS, wrapped=True)
for _kind, _metric in METRICS.items():
    registry.add_text_to_text(
        f"pydocs_{_kind}",
        registry.TextSource(
            functools.partial(example_texts, kind=_kind), splits=pydocs.SPLITS, modules=[pydocs, pydocs_examples]
        ),
        metric_fns=[_metric],
    )
registry.add_mixture(
    "pydocs_multitask",
    {f"pydocs_{kind}": mixing.ExampleCount(maximum=MIXTURE_CAP) for kind in ("topic", "kind", "cloze")},
)
