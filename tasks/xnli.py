"""XNLI in mT5's text-to-text form: learned in English, evaluated in 15 languages.

    xnli_train        xnli: premise: ... hypothesis: ... -> 0, 1 or 2, from MNLI       392,702 examples
    xnli_LANGUAGE     validation 2,490 and test 5,010 in ar bg de el en es fr hi ru sw th tr ur vi zh

    xnli_zero_shot    xnli_train; evaluate.tasks names the languages

Targets are numbers: 0 entailment, 1 neutral, 2 contradiction. Metric: accuracy. Registering needs no network; TFDS
downloads the data when they are first read. Files for --data.files are XNLI's tsv or jsonl, of which the rows of the
task's language are taken, and those of MNLI.

Reference: Conneau et al., "XNLI", arXiv:1809.05053; Xue et al., "mT5", arXiv:2010.11934, section 4.1, and its code.
"""

import dataclasses
import functools

from t2t.data import labelled_texts, official_files, registry, supervised
from t2t.train import label_metrics

LANGUAGES = ("ar", "bg", "de", "el", "en", "es", "fr", "hi", "ru", "sw", "th", "tr", "ur", "vi", "zh")
LABELS = ("entailment", "neutral", "contradiction")
NUMBERS = tuple(map(str, range(len(LABELS))))
COLUMNS = {
    "premise": ("sentence1", "text_a"),
    "hypothesis": ("sentence2", "text_b"),
    "label": ("gold_label",),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class CrossLingual:
    """Rows of XNLI, which hold all languages as TFDS has them and one where files do.

    Example:
        >>> CrossLingual(language="de")({"premise": "Es regnet.", "hypothesis": "Es ist nass.", "label": 0}, "test")
        [{'inputs': 'xnli: premise: Es regnet. hypothesis: Es ist nass.', 'targets': '0', 'idx': -1}]
    """

    language: str

    def __call__(self, row: supervised.Row, split: str) -> list[supervised.Example]:
        """The example of a row; none for rows of another language."""
        if row.get("language", self.language) != self.language:
            return []
        premise, hypothesis = row["premise"], row["hypothesis"]
        if isinstance(premise, dict):
            premise = premise[self.language]
        if isinstance(hypothesis, dict):
            texts = dict(zip(hypothesis["language"], hypothesis["translation"], strict=True))
            hypothesis = texts[self.language]
        label = labelled_texts.label_id(row.get("label"), LABELS)
        return [
            {
                "inputs": f"xnli: premise: {premise} hypothesis: {hypothesis}",
                "targets": labelled_texts.UNKNOWN if label == labelled_texts.NO_LABEL else NUMBERS[label],
                **labelled_texts.numbers(row),
            }
        ]


def _add(name: str, source, language: str, num_examples: dict[str, int]) -> None:
    supervised.add(
        name,
        source,
        supervised.Format(
            examples=CrossLingual(language=language),
            extras={"idx": "number"},
            rows=functools.partial(official_files.records, columns=COLUMNS),
        ),
        metric_fns=[label_metrics.label_accuracy, label_metrics.invalid_labels],
        postprocess_fn=functools.partial(labelled_texts.predicted_label, labels=NUMBERS),
        num_examples=num_examples,
    )


_add(
    "xnli_train",
    supervised.tfds("glue/mnli:2.0.0", {"train": "train", "validation": "validation_matched"}),
    "en",
    {"train": 392702, "validation": 9815},
)
for _language in LANGUAGES:
    _add(
        f"xnli_{_language}",
        supervised.tfds("xnli:1.1.0", ("validation", "test")),
        _language,
        {"validation": 2490, "test": 5010},
    )
registry.add_mixture("xnli_zero_shot", {"xnli_train": 1.0})
