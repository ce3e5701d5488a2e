"""SuperGLUE in T5's text-to-text form: eight tasks and the diagnostics, from TFDS or from SuperGLUE's own files.

    super_glue_boolq   super_glue_cb    super_glue_copa   super_glue_multirc
    super_glue_record  super_glue_rte   super_glue_wic    super_glue_wsc
    super_glue_axb, super_glue_axg     the diagnostics, test alone
    super_glue_wsc_marked              WSC as first published with T5: spans between signs, answered True or False
    dpr                                pronouns of Rahman and Ng, which T5 learns together with WSC

    super_glue       the eight tasks, proportional to their examples
    super_glue_t5    T5's rates, dpr included
    wsc_dpr          WSC and dpr alone

WSC asks for the referent of a pronoun; in training only rows are used whose noun is the right one (259 of 554). ReCoRD
has an example for each right answer of training (138,854 of 100,730 queries). WiC does not say where the word stands.

Metrics: accuracy (BoolQ, COPA, RTE, WiC, WSC), F1 of the three labels and accuracy (CB), F1 over all answers and exact
match of questions (MultiRC), exact match and F1 (ReCoRD), Matthews' correlation (AX-b), accuracy and gender parity
(AX-g). Predictions that are no label are wrong, and counted.

Registering needs no network. TFDS downloads the data when they are first read, unless SuperGLUE's jsonl files are in
corpora/super_glue (T2T_CORPORA names another place of corpora): BoolQ/train.jsonl, and so on. Single files are read by
--data.files.

Reference: Wang et al., "SuperGLUE", arXiv:1905.00537; Raffel et al., arXiv:1910.10683, section 2.4 and appendix D.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

from t2t.data import labelled_texts, mixing, official_files, pronouns, registry, supervised
from t2t.data.labelled_texts import LabelledTexts
from t2t.train import label_metrics, text_metrics

WORDS = ("False", "True")
TWO_WAY = ("entailment", "not_entailment")
CLAIMS = ("hypothesis", "premise")
INVALID = label_metrics.invalid_labels
ACCURACY = (label_metrics.label_accuracy, INVALID)
VERSION = "1.0.2"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Benchmark:
    """What is particular about one of the tasks."""

    examples: Callable[..., Any]
    folder: str
    metrics: tuple[Callable[..., Any], ...] = ACCURACY
    extras: Mapping[str, supervised.Kind] = dataclasses.field(default_factory=lambda: {"idx": "number"})
    postprocess: Callable[..., Any] | None = None
    """None compares labels."""
    num_examples: tuple[int, int, int] | None = None
    """Of train, validation and test; None has test alone."""


def labelled(name: str, fields: tuple[str, ...], labels: tuple[str, ...], **settings: Any) -> LabelledTexts:
    """Texts with labels; `name` is what inputs begin with."""
    return LabelledTexts(name=name, fields=fields, labels=labels, **settings)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Renamed:
    """Rows with other names of their fields."""

    examples: LabelledTexts
    names: tuple[tuple[str, str], ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in the order of their ids."""
        return self.examples.labels

    def __call__(self, row: supervised.Row, split: str) -> list[supervised.Example]:
        """The example of a row."""
        return self.examples({**row, **{new: row[old] for new, old in self.names if old in row}}, split)


CB_LABELS = ("entailment", "contradiction", "neutral")

TASKS = {
    "boolq": Benchmark(
        examples=labelled("boolq", ("passage", "question"), WORDS), folder="BoolQ", num_examples=(9427, 3270, 3245)
    ),
    "cb": Benchmark(
        examples=labelled("cb", CLAIMS, CB_LABELS),
        folder="CB",
        metrics=(label_metrics.macro_f1(len(CB_LABELS)), *ACCURACY),
        num_examples=(250, 56, 250),
    ),
    "copa": Benchmark(
        examples=labelled("copa", ("choice1", "choice2", "premise", "question"), ("choice1", "choice2")),
        folder="COPA",
        num_examples=(400, 100, 500),
    ),
    "multirc": Benchmark(
        examples=labelled("multirc", ("question", "answer", "paragraph"), WORDS, strips_markup=True),
        folder="MultiRC",
        metrics=(label_metrics.multirc,),
        extras={f"idx/{part}": "number" for part in ("paragraph", "question", "answer")},
        postprocess=functools.partial(labelled_texts.grouped_label, labels=WORDS, by=("idx/paragraph", "idx/question")),
        num_examples=(27243, 4848, 9693),
    ),
    "record": Benchmark(
        examples=labelled_texts.cloze_answers,
        folder="ReCoRD",
        metrics=(label_metrics.record,),
        extras={"answers": "texts", "idx/passage": "number", "idx/query": "number"},
        postprocess=labelled_texts.grouped_answer,
        num_examples=(138854, 10000, 10000),
    ),
    "rte": Benchmark(examples=labelled("rte", CLAIMS, TWO_WAY), folder="RTE", num_examples=(2490, 277, 3000)),
    "wic": Benchmark(
        examples=labelled("wic", ("sentence1", "sentence2", "word"), WORDS),
        folder="WiC",
        num_examples=(5428, 638, 1400),
    ),
    "wsc": Benchmark(
        examples=pronouns.referent,
        folder="WSC",
        extras={"idx": "number", "label": "number"},
        postprocess=pronouns.predicted_referent,
        num_examples=(259, 104, 146),
    ),
    "wsc_marked": Benchmark(examples=pronouns.marked_spans, folder="WSC", num_examples=(554, 104, 146)),
    "axb": Benchmark(
        examples=Renamed(
            examples=labelled("rte", CLAIMS, TWO_WAY), names=(("premise", "sentence1"), ("hypothesis", "sentence2"))
        ),
        folder="AX-b",
        metrics=(label_metrics.matthews, *ACCURACY),
    ),
    "axg": Benchmark(
        examples=labelled("rte", CLAIMS, TWO_WAY),
        folder="AX-g",
        metrics=(label_metrics.gender_parity,),
        postprocess=functools.partial(labelled_texts.grouped_label, labels=TWO_WAY, by=("idx",), together=2),
    ),
}

FILES = {"train": "train.jsonl", "validation": "val.jsonl", "test": "test.jsonl"}
TEST_EXAMPLES = {"axb": 1104, "axg": 356}


for _key, _task in TASKS.items():
    _splits = ("test",) if _task.num_examples is None else tuple(FILES)
    _numbers = _task.num_examples or (TEST_EXAMPLES[_key],)
    _files = {"test": f"{_task.folder}.jsonl"} if _task.num_examples is None else FILES
    supervised.add(
        f"super_glue_{_key}",
        supervised.tfds(f"super_glue/{'wsc.fixed' if _key.startswith('wsc') else _key}:{VERSION}", _splits),
        supervised.Format(examples=_task.examples, extras=_task.extras, rows=official_files.super_glue),
        metric_fns=_task.metrics,
        postprocess_fn=_task.postprocess
        or functools.partial(labelled_texts.predicted_label, labels=getattr(_task.examples, "labels", WORDS)),
        num_examples=dict(zip(_splits, _numbers, strict=True)),
        local={split: f"super_glue/{_task.folder}/{file}" for split, file in _files.items()},
    )

supervised.add(
    "dpr",
    supervised.tfds("definite_pronoun_resolution:1.1.0", {"train": "train", "validation": "test", "test": "test"}),
    supervised.Format(examples=pronouns.definite_pronoun),
    metric_fns=[text_metrics.accuracy],
    num_examples={"train": 1322, "validation": 564, "test": 564},
)

EIGHT = tuple(f"super_glue_{key}" for key in ("boolq", "cb", "copa", "multirc", "record", "rte", "wic", "wsc"))

RATES = {
    "dpr": 1322.0,
    "super_glue_wsc": 259.0,
    "super_glue_boolq": 9427.0,
    "super_glue_cb": 250.0,
    "super_glue_copa": 400.0,
    "super_glue_multirc": 27243.0,
    "super_glue_record": 138854.0,
    "super_glue_rte": 2490.0,
    "super_glue_wic": 5428.0,
}
"""T5's rates: the examples of each task."""

registry.add_mixture("super_glue", {name: mixing.ExampleCount() for name in EIGHT})
registry.add_mixture("super_glue_t5", RATES)
registry.add_mixture("wsc_dpr", {name: RATES[name] for name in ("dpr", "super_glue_wsc")})
