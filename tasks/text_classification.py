"""Reviews and news with a label, in the form that T5 gives GLUE: IMDB and AG News.

    imdb      imdb text: a film's review -> negative or positive                                  25,000 / 25,000
    ag_news   ag_news title: ... description: ... -> World, Sports, Business or Sci/Tech        120,000 / 7,600

Their test set stands for validation too, since neither has another held-out one; choose checkpoints with part of the
training set (`supervised.tfds("imdb_reviews:1.0.0", {"train": "train[:90%]", "validation": "train[90%:]"})`).
Metric: accuracy.

Registering needs no network; TFDS downloads the data when they are first read. Files for --data.files: the folder
aclImdb/train with pos/ and neg/, AG News' csv with a header; jsonl, tsv and parquet with these columns.

Reference: Maas et al., "Learning Word Vectors for Sentiment Analysis", 2011, https://aclanthology.org/P11-1015; Zhang
et al., "Character-level Convolutional Networks for Text Classification", arXiv:1509.01626.
"""

import functools

from t2t.data import labelled_texts, official_files, supervised
from t2t.train import label_metrics

SPLITS = {"train": "train", "validation": "test", "test": "test"}

AG_NEWS_LABELS = ("World", "Sports", "Business", "Sci/Tech")


def ag_news_rows(path, on_error="stop"):
    """AG News' rows; the classes of its csv count from 1."""
    columns = {"title": ("Title",), "description": ("Description", "text"), "label": ("class",)}
    for row in official_files.records(path, on_error, columns=columns):
        yield row | {"label": int(row["Class Index"]) - 1} if "Class Index" in row else row


for _name, _tfds, _fields, _labels, _rows, _numbers in (
    (
        "imdb",
        "imdb_reviews/plain_text:1.0.0",
        ("text",),
        ("negative", "positive"),
        functools.partial(official_files.folders, labels={"neg": "negative", "pos": "positive"}),
        (25000, 25000, 25000),
    ),
    ("ag_news", "ag_news_subset:1.0.0", ("title", "description"), AG_NEWS_LABELS, ag_news_rows, (120000, 7600, 7600)),
):
    supervised.add(
        _name,
        supervised.tfds(_tfds, SPLITS),
        supervised.Format(
            examples=labelled_texts.LabelledTexts(name=_name, fields=_fields, labels=_labels), rows=_rows
        ),
        metric_fns=[label_metrics.label_accuracy, label_metrics.invalid_labels],
        postprocess_fn=functools.partial(labelled_texts.predicted_label, labels=_labels),
        num_examples=dict(zip(SPLITS, _numbers, strict=True)),
    )
