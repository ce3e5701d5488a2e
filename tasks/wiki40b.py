"""The pretraining objectives on Wiki-40B, the articles of Wikipedia in 41 languages without markup, from TFDS.

    wiki40b_LANGUAGE_span_corruption   wiki40b_LANGUAGE_mlm   wiki40b_LANGUAGE_causal_lm   wiki40b_LANGUAGE_prefix_lm
    wiki40b_span_corruption   wiki40b_mlm   wiki40b_causal_lm   wiki40b_prefix_lm

The latter mix all languages with exponent 0.7, as multilingual BERT does; zh-cn is wiki40b_zh_cn_mlm. Splits are train,
validation and test. The marks of articles, sections and paragraphs become empty lines, so that a document is a title
and, below it, headings and paragraphs.

Registering needs no network; TFDS downloads the prepared articles when they are first read.

Reference: Guo et al., "Wiki-40B: Multilingual Language Model Dataset", LREC 2020.
"""

from t2t.data import languages, public_sources
from t2t.data.host_tensorflow import tf

import seqio  # isort: skip - after TensorFlow's settings

LANGUAGES = tuple(
    """
    en ar zh-cn zh-tw nl fr de it ja ko pl pt ru es th tr bg ca cs da el et fa fi he hi hr hu id lt lv ms no ro sk sl sr
    sv tl uk vi
    """.split()
)
"""Codes of the languages, by their names in TFDS."""

EXPONENT = 0.7


def without_marks(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Articles as plain text."""

    def apply(article: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        text = tf.strings.regex_replace(article["text"], r"\s*_START_(ARTICLE|SECTION|PARAGRAPH)_\s*", "\n\n")
        return {"text": tf.strings.strip(tf.strings.regex_replace(text, "_NEWLINE_", "\n"))}

    return dataset.map(apply, num_parallel_calls=tf.data.AUTOTUNE)


def source(language: str) -> public_sources.PreparedSource:
    """The articles of a language."""
    articles = seqio.TfdsDataSource(f"wiki40b/{language}:1.3.0", splits=("train", "validation", "test"))
    return public_sources.PreparedSource(articles, without_marks)


languages.add_languages("wiki40b", {language: source(language) for language in LANGUAGES}, exponent=EXPONENT)
