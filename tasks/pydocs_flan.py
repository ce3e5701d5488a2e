"""Instructions in the manner of FLAN: the supervised tasks of tasks/pydocs.py in several wordings.

    pydocs_topic_zero_shot       pydocs_topic_few_shot       pydocs_topic_inverted
    pydocs_kind_zero_shot        pydocs_kind_few_shot        pydocs_kind_inverted
    pydocs_cloze_zero_shot       pydocs_cloze_few_shot       pydocs_cloze_inverted
    pydocs_summarize_zero_shot   pydocs_summarize_few_shot   pydocs_summarize_inverted

    pydocs_flan                  all of them, proportional to their examples with a cap

Each has at least three templates without a task prefix, some of which list the possible answers. Few-shot prompts hold
up to two solved examples; inverted ones ask for the passage that belongs to an answer. Metrics are accuracy, ROUGE for
summaries, none for inverted tasks. Rows, of a user's own files too, have the fields inputs and targets.

Reference: Wei et al., "Finetuned Language Models Are Zero-Shot Learners", arXiv:2109.01652, with the same mixing cap.
"""

import functools

from t2t.data import mixing, pydocs, pydocs_examples, registry, templates
from t2t.data.templates import Template
from t2t.train import text_metrics

MIXTURE_CAP = 3000
"""Examples that a task of the mixture counts for at most."""

MAX_CHARACTERS = 2000
"""Of a few-shot prompt: some 500 tokens."""

TEMPLATES = {
    "topic": (
        Template(inputs="{inputs}\n\nWhich Python package does this passage document?\n{options}"),
        Template(inputs="The name of a package was replaced by ___. Which package is it?\n\n{inputs}"),
        Template(inputs="Passage: {inputs}\nThe passage is about the Python package", between=" ", separator="\n\n"),
        Template(inputs="Question: what is ___ in this text?\nText: {inputs}", between="\nAnswer: "),
    ),
    "kind": (
        Template(inputs="{inputs}\n\nWhat does this passage document?\n{options}"),
        Template(inputs="Module, class, function or language: what is described here?\n{inputs}", between="\nAnswer: "),
        Template(inputs="Read this and say what kind of thing it explains.\n\n{inputs}\n\n{options}"),
    ),
    "cloze": (
        Template(inputs="{inputs}\n\nWhich word fills the gap ___?\n{options}"),
        Template(inputs="Fill in the blank: {inputs}", between="\nAnswer: ", separator="\n"),
        Template(inputs="A word is missing where ___ stands.\n{inputs}\nThe missing word is", between=" "),
    ),
    "summarize": (
        Template(inputs="{inputs}\n\nSay this in one line."),
        Template(inputs="Write the first line of the docstring that goes on like this:\n\n{inputs}"),
        Template(inputs="Text: {inputs}\nSummary:", between=" "),
    ),
}

INVERTED = {
    "topic": (
        Template(inputs="Write about the Python package {targets}, with ___ for its name.", targets="{inputs}"),
        Template(inputs="What might the documentation of {targets} say?", targets="{inputs}"),
    ),
    "kind": (Template(inputs="Write a passage that documents this kind of thing: {targets}", targets="{inputs}"),),
    "cloze": (Template(inputs='Write some words with a gap, ___, where "{targets}" belongs.', targets="{inputs}"),),
    "summarize": (Template(inputs="Go on with the docstring that begins: {targets}", targets="{inputs}"),),
}

OPTIONS = {
    "topic": pydocs_examples.topics,
    "kind": ("module", "class", "function", "language"),
    "cloze": pydocs_examples.CLOZE_WORDS,
    "summarize": (),
}


def rows(split: str, *, kind: str) -> list[dict[str, str]]:
    """The supervised examples of a split without their task prefix."""
    examples = pydocs_examples.EXAMPLES[kind](split)
    return [{"inputs": one.inputs.removeprefix(f"{kind}: "), "targets": one.targets} for one in examples]


_names = []
for _kind, _templates in TEMPLATES.items():
    _names += templates.add_templates(
        f"pydocs_{_kind}",
        registry.TextSource(
            functools.partial(rows, kind=_kind), splits=pydocs.SPLITS, modules=[pydocs, pydocs_examples]
        ),
        templates=_templates,
        inverted=INVERTED[_kind],
        options=OPTIONS[_kind],
        max_characters=MAX_CHARACTERS,
        metric_fns=[text_metrics.rouge if _kind == "summarize" else text_metrics.accuracy],
    )
registry.add_mixture("pydocs_flan", {name: mixing.ExampleCount(maximum=MIXTURE_CAP) for name in _names})
