"""The pretraining objectives on mC4, web pages in 107 languages and scripts, from TFDS.

    mc4_LANGUAGE_span_corruption   mc4_LANGUAGE_mlm   mc4_LANGUAGE_causal_lm   mc4_LANGUAGE_prefix_lm
    mc4_span_corruption   mc4_mlm   mc4_causal_lm   mc4_prefix_lm     all languages, sampled with exponent 0.3 as in mT5

Languages are those of `LANGUAGES`; bg-Latn is mc4_bg_Latn_mlm. Each has a split train and, a thousandth, validation. A
mixture of some of them, in your own module or with another exponent:

    languages.add_languages("mine", {language: mc4.source(language) for language in ("en", "sw")}, exponent=0.5)

Registering needs no network. The data must have been prepared once, by `tfds build c4/multilingual` on a cluster
(Apache Beam), or stand in a bucket already: set TFDS_DATA_DIR; and read from a token cache (`t2t cache`).

Reference: Xue et al., "mT5: A massively multilingual pre-trained text-to-text transformer", arXiv:2010.11934.
"""

from t2t.data import languages  # isort: skip - sets up TensorFlow
import seqio

LANGUAGES = tuple(
    """
    af am ar az be bg bg-Latn bn ca ceb co cs cy da de el el-Latn en eo es et eu fa fi fil fr fy ga gd gl gu ha haw hi
    hi-Latn hmn ht hu hy id ig is it iw ja ja-Latn jv ka kk km kn ko ku ky la lb lo lt lv mg mi mk ml mn mr ms mt my ne
    nl no ny pa pl ps pt ro ru ru-Latn sd si sk sl sm sn so sq sr st su sv sw ta te tg th tr uk ur uz vi xh yi yo zh
    zh-Latn zu
    """.split()
)
"""Codes of the languages, by their names in TFDS; und, of an unknown language, is left out."""

EXPONENT = 0.3


def source(language: str) -> seqio.TfdsDataSource:
    """The pages of a language."""
    return seqio.TfdsDataSource(
        "c4/multilingual:3.1.0", splits={"train": language, "validation": f"{language}-validation"}
    )


languages.add_languages("mc4", {language: source(language) for language in LANGUAGES}, exponent=EXPONENT)
