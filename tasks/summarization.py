"""Summaries of news in T5's text-to-text form, from TFDS or from a user's files.

    cnn_dailymail   summarize: an article -> its highlights     287,113 / 13,368 / 11,490 examples
    xsum            summarize: an article -> one sentence       204,045 / 11,332 / 11,334

Metric: ROUGE-1, -2 and -Lsum as T5 reports them, medians of 1,000 bootstrap samples, with their 95 % intervals.

Registering needs no network; TFDS downloads CNN/DailyMail when it is first read, XSum by hand (its page says how).
Files for --data.files are jsonl, csv, tsv or parquet with the columns article and highlights, or document and summary.

Reference: See et al., "Get To The Point", arXiv:1704.04368; Narayan et al., "Don't Give Me the Details, Just the
Summary!", arXiv:1808.08745; Raffel et al., arXiv:1910.10683, section 2.3 and appendix D.14.
"""

import functools

from t2t.data import official_files, supervised
from t2t.data.written_texts import Summary
from t2t.train import text_metrics

SPLITS = ("train", "validation", "test")

COLUMNS = {
    "article": ("document", "text", "source"),
    "highlights": ("summary", "target"),
    "document": ("article", "text", "source"),
    "summary": ("highlights", "target"),
}
"""What files may call the fields."""

for _name, _tfds, _fields, _numbers in (
    ("cnn_dailymail", "cnn_dailymail:3.4.0", ("article", "highlights"), (287113, 13368, 11490)),
    ("xsum", "xsum:1.1.0", ("document", "summary"), (204045, 11332, 11334)),
):
    supervised.add(
        _name,
        supervised.tfds(_tfds, SPLITS),
        supervised.Format(
            examples=Summary(text=_fields[0], summary=_fields[1]),
            rows=functools.partial(official_files.records, columns={field: COLUMNS[field] for field in _fields}),
        ),
        metric_fns=[text_metrics.rouge_bootstrap],
        num_examples=dict(zip(SPLITS, _numbers, strict=True)),
        local={split: f"{_name}/{split}.jsonl" for split in SPLITS},
    )
