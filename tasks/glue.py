"""GLUE in T5's text-to-text form: nine tasks and the diagnostics, from TFDS or from GLUE's own files.

    glue_cola   glue_sst2   glue_mrpc   glue_qqp   glue_stsb   glue_mnli   glue_qnli   glue_rte   glue_wnli
    glue_mnli_matched, glue_mnli_mismatched    validation and test of MNLI's two domains (glue_mnli has the matched one)
    glue_ax                                    the diagnostics, test alone
    glue_wnli_simple                           WNLI as a question for the referent, for models that have learned WSC

    glue         the nine tasks, proportional to their examples
    glue_t5      T5's: without WNLI, which it learns from WSC (tasks/super_glue.py)

Metrics: Matthews' correlation (CoLA, AX), F1 and accuracy (MRPC, QQP), Pearson's and Spearman's correlation (STS-B),
accuracy (all others). Predictions that are no label are wrong, and counted.

Registering needs no network. TFDS downloads the data when they are first read, unless GLUE's tsv files are in
corpora/glue (T2T_CORPORA names another place of corpora): CoLA/train.tsv, MNLI/dev_matched.tsv, and so on. Single files
are read by --data.files.

Reference: Wang et al., "GLUE", arXiv:1804.07461; Raffel et al., arXiv:1910.10683, appendix D.1 to D.9; the task names
are those of google-research/text-to-text-transfer-transformer without their versions.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

from t2t.data import labelled_texts, mixing, official_files, pronouns, registry, supervised
from t2t.data.labelled_texts import LabelledTexts
from t2t.train import label_metrics

ENTAILMENT = ("entailment", "neutral", "contradiction")
TWO_WAY = ("entailment", "not_entailment")

COLUMNS = {
    "sentence": ("text", "text_b"),
    "sentence1": ("#1 String", "text_a"),
    "sentence2": ("#2 String", "text_b"),
    "premise": ("sentence1", "text_a"),
    "hypothesis": ("sentence2", "text_b"),
    "question1": ("text_a",),
    "question2": ("text_b",),
    "question": ("text_a",),
    "label": ("gold_label", "is_duplicate", "Quality", "score"),
}
"""What GLUE's files call the fields of TFDS's rows."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Benchmark:
    """What is particular about one of the tasks."""

    fields: tuple[str, ...]
    labels: tuple[str, ...]
    metrics: tuple[Callable[..., Any], ...] = (label_metrics.label_accuracy,)
    name: str | None = None
    """What inputs begin with; None is the task's own name."""
    folder: str = ""
    """Of GLUE's files."""
    num_examples: Mapping[str, int] = dataclasses.field(default_factory=dict)
    splits: Mapping[str, str] = dataclasses.field(
        default_factory=lambda: {"train": "train", "validation": "validation", "test": "test"}
    )
    """What TFDS calls the splits."""


def examples(train: int, validation: int, test: int) -> dict[str, int]:
    """Numbers of examples as TFDS states them."""
    return {"train": train, "validation": validation, "test": test}


PAIR_METRICS = (label_metrics.binary_f1, label_metrics.label_accuracy)
SENTENCES = ("sentence1", "sentence2")
CLAIMS = ("hypothesis", "premise")

TASKS = {
    "cola": Benchmark(
        fields=("sentence",),
        labels=("unacceptable", "acceptable"),
        metrics=(label_metrics.matthews,),
        folder="CoLA",
        num_examples=examples(8551, 1043, 1063),
    ),
    "sst2": Benchmark(
        fields=("sentence",), labels=("negative", "positive"), folder="SST-2", num_examples=examples(67349, 872, 1821)
    ),
    "mrpc": Benchmark(
        fields=SENTENCES,
        labels=("not_equivalent", "equivalent"),
        metrics=PAIR_METRICS,
        folder="MRPC",
        num_examples=examples(3668, 408, 1725),
    ),
    "qqp": Benchmark(
        fields=("question1", "question2"),
        labels=("not_duplicate", "duplicate"),
        metrics=PAIR_METRICS,
        folder="QQP",
        num_examples=examples(363846, 40430, 390965),
    ),
    "mnli": Benchmark(
        fields=CLAIMS,
        labels=ENTAILMENT,
        folder="MNLI",
        num_examples=examples(392702, 9815, 9796),
        splits={"train": "train", "validation": "validation_matched", "test": "test_matched"},
    ),
    "mnli_matched": Benchmark(
        fields=CLAIMS,
        labels=ENTAILMENT,
        name="mnli",
        folder="MNLI",
        num_examples={"validation": 9815, "test": 9796},
        splits={"validation": "validation", "test": "test"},
    ),
    "mnli_mismatched": Benchmark(
        fields=CLAIMS,
        labels=ENTAILMENT,
        name="mnli",
        folder="MNLI",
        num_examples={"validation": 9832, "test": 9847},
        splits={"validation": "validation", "test": "test"},
    ),
    "qnli": Benchmark(
        fields=("question", "sentence"), labels=TWO_WAY, folder="QNLI", num_examples=examples(104743, 5463, 5463)
    ),
    "rte": Benchmark(fields=SENTENCES, labels=TWO_WAY, folder="RTE", num_examples=examples(2490, 277, 3000)),
    "wnli": Benchmark(
        fields=SENTENCES, labels=("not_entailment", "entailment"), folder="WNLI", num_examples=examples(635, 71, 146)
    ),
    "ax": Benchmark(
        fields=CLAIMS,
        labels=ENTAILMENT,
        metrics=(label_metrics.matthews, label_metrics.label_accuracy),
        name="mnli",
        folder="diagnostic",
        num_examples={"test": 1104},
        splits={"test": "test"},
    ),
}

FILES = {"train": "train.tsv", "validation": "dev.tsv", "test": "test.tsv"}
"""GLUE's files of each split, where a task has no others."""

OWN_FILES = {
    "mnli": {"train": "train.tsv", "validation": "dev_matched.tsv", "test": "test_matched.tsv"},
    "mnli_matched": {"validation": "dev_matched.tsv", "test": "test_matched.tsv"},
    "mnli_mismatched": {"validation": "dev_mismatched.tsv", "test": "test_mismatched.tsv"},
    "ax": {"test": "diagnostic.tsv"},
}


def local_files(key: str, folder: str) -> dict[str, str]:
    """The files of a task below the directory of all corpora."""
    return {split: f"glue/{folder}/{file}" for split, file in OWN_FILES.get(key, FILES).items()}


def columns_of(fields: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """What files may call the fields of a task and its label."""
    return {field: COLUMNS[field] for field in (*fields, "label") if field in COLUMNS}


for _key, _task in TASKS.items():
    _read = (
        official_files.cola
        if _key == "cola"
        else functools.partial(official_files.records, columns=columns_of(_task.fields), may_be_short=_key == "qqp")
    )
    supervised.add(
        f"glue_{_key}",
        supervised.tfds(f"glue/{_key}:2.0.0", _task.splits),
        supervised.Format(
            examples=LabelledTexts(name=_task.name or _key, fields=_task.fields, labels=_task.labels),
            extras={"idx": "number"},
            rows=_read,
        ),
        metric_fns=[*_task.metrics, label_metrics.invalid_labels],
        postprocess_fn=functools.partial(labelled_texts.predicted_label, labels=_task.labels),
        num_examples=_task.num_examples,
        local=local_files(_key, _task.folder),
    )

supervised.add(
    "glue_stsb",
    supervised.tfds("glue/stsb:2.0.0"),
    supervised.Format(
        examples=labelled_texts.similarity,
        extras={"idx": "number"},
        rows=functools.partial(official_files.records, columns=columns_of(SENTENCES)),
    ),
    metric_fns=[label_metrics.correlations, label_metrics.invalid_labels],
    postprocess_fn=labelled_texts.predicted_number,
    num_examples=examples(5749, 1500, 1379),
    local=local_files("stsb", "STS-B"),
)

supervised.add(
    "glue_wnli_simple",
    supervised.tfds("glue/wnli:2.0.0", ("validation", "test")),
    supervised.Format(
        examples=pronouns.entailed_referent,
        extras={"idx": "number", "label": "number"},
        rows=functools.partial(official_files.records, columns=columns_of(SENTENCES)),
    ),
    metric_fns=[label_metrics.label_accuracy, label_metrics.invalid_labels],
    postprocess_fn=pronouns.predicted_referent,
    num_examples={"validation": 71, "test": 146},
    local={"validation": "glue/WNLI/dev.tsv", "test": "glue/WNLI/test.tsv"},
)

RATES = {
    "glue_cola": 8551.0,
    "glue_sst2": 67349.0,
    "glue_mrpc": 3668.0,
    "glue_qqp": 363849.0,
    "glue_stsb": 5749.0,
    "glue_mnli": 392702.0,
    "glue_qnli": 104743.0,
    "glue_rte": 2490.0,
}
"""T5's rates: the examples of each task as the first version of TFDS counted them."""

NINE = (*RATES, "glue_wnli")

registry.add_mixture("glue", {name: mixing.ExampleCount() for name in NINE})
registry.add_mixture("glue_t5", RATES)
