r"""XLM's objectives on its 15 languages: masked words of Wikipedia's articles, from TFDS, and of pairs, from files.

    xlm_LANGUAGE_mlm   xlm_mlm    articles in one language and in all of `LANGUAGES`, sampled with exponent 0.7
    xlm_en_LANGUAGE_tlm   xlm_tlm    pairs of an English sentence and its translation, one pair of languages and all
    xlm_mlm_tlm                   both in turn, which XLM learns from

Rare words are masked more often than frequent ones, and every token carries the id of its language, its place in
`LANGUAGES`, for models with an embedding of each. Other text: `--data.train xlm_fr_mlm --data.files ...`; of pairs,
records with the fields source and target.

Translations are one file each, corpora/xlm/en-LANGUAGE.tsv and en-LANGUAGE.valid.tsv (or in the directory that
T2T_CORPORA names), whose first line is source, a tab, target. The paper took them from MultiUN (fr, es, ru, ar, zh),
IIT Bombay (hi), EUbookshop (de, el, bg), OpenSubtitles (tr, vi, th), and Tanzil and GlobalVoices (ur, sw), all of which
OPUS (https://opus.nlpl.eu) has in two files with a sentence a line:

    curl -LO https://object.pouta.csc.fi/OPUS-MultiUN/v1/moses/en-fr.txt.zip && unzip en-fr.txt.zip
    { printf 'source\ttarget\n'; paste MultiUN.en-fr.en MultiUN.en-fr.fr; } > corpora/xlm/en-fr.tsv

and the last lines of the file in the second one. Registering needs no network; TFDS downloads the prepared articles
when they are first read. Validation is the last hundredth of the articles.

Reference: Conneau and Lample, "Cross-lingual Language Model Pretraining", arXiv:1901.07291, sections 3 and 5.1.
"""

from t2t.data import public_sources, registry  # isort: skip - sets up TensorFlow
import seqio

from t2t.data import masked_objectives, mixing, pair_objectives
from t2t.data.translation_pairs import Language

LANGUAGES = ("ar", "bg", "de", "el", "en", "es", "fr", "hi", "ru", "sw", "th", "tr", "ur", "vi", "zh")
"""Those of XNLI, in the order of their ids (as in the published model)."""

EXPONENT = 0.7


def articles(language: str) -> seqio.TfdsDataSource:
    """The articles of a language."""
    splits = {"train": "train[:99%]", "validation": "train[99%:]"}
    return seqio.TfdsDataSource(f"wikipedia/20230601.{language}:1.0.0", splits=splits)


def translations(language: str) -> public_sources.FolderSource:
    """English sentences and their translations."""
    return public_sources.FolderSource(
        "xlm",
        {"train": [f"en-{language}.tsv"], "validation": [f"en-{language}.valid.tsv"]},
        how="tasks/xlm.py says where translations are and how they become such files",
        fields=("source", "target"),
    )


_rate = mixing.by_exponent(EXPONENT)
_texts, _pairs = {}, {}
for _id, _language in enumerate(LANGUAGES):
    _name = f"xlm_{_language}_mlm"
    registry.add_objective(_name, articles(_language), masked_objectives.SMOOTHED, marks=[Language(id=_id)])
    _texts[_name] = _rate
    if _language != "en":
        _name = pair_objectives.add_translations(
            f"xlm_en_{_language}",
            translations(_language),
            pair=(LANGUAGES.index("en"), _id),
            corruption=masked_objectives.SMOOTHED,
        )
        _pairs[_name] = _rate
registry.add_mixture("xlm_mlm", _texts)
registry.add_mixture("xlm_tlm", _pairs)
registry.add_mixture("xlm_mlm_tlm", {"xlm_mlm": 1.0, "xlm_tlm": 1.0})
