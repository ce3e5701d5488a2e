"""Registering the objectives of pairs and of whole sentences, and those of translations.

Pairs and blocks are drawn once, before training (see `sentence_formats`); masks are drawn anew in each epoch.
"""

import dataclasses
import functools
from collections.abc import Mapping

from t2t.data.host_tensorflow import tf  # isort: skip - TensorFlow's settings come before seqio
import seqio

from t2t.data import masked_objectives, registry
from t2t.data.masked_tokens import MaskedTokens
from t2t.data.sentence_formats import (
    DocSentences,
    ElectraSegments,
    FullSentences,
    NextSentence,
    RandomFormat,
    SentenceFormat,
    SentenceOrder,
    SentencePairs,
    TokenizeSentences,
)
from t2t.data.translation_pairs import TranslationPairs

OBJECTIVES: Mapping[str, tuple[SentenceFormat, MaskedTokens]] = {
    "mlm_nsp": (NextSentence(), masked_objectives.EXACT),
    "mlm_sop": (SentenceOrder(), masked_objectives.EXACT),
    "mlm_sop_ngram": (SentenceOrder(), masked_objectives.NGRAMS),
    "full_sentences": (FullSentences(), masked_objectives.ROUNDED),
    "doc_sentences": (DocSentences(), masked_objectives.ROUNDED),
    "segment_pairs": (NextSentence(short_rate=0.0), masked_objectives.ROUNDED),
    "sentence_pairs": (SentencePairs(), masked_objectives.ROUNDED),
    "electra": (ElectraSegments(), masked_objectives.REPLACED_TOKENS),
    "electra_quarter": (ElectraSegments(), masked_objectives.REPLACED_QUARTER),
}
"""Format and masks of each objective, by the last part of the name of its task."""


TRANSLATED = MaskedTokens()
"""15 % of the words of both languages, 80/10/10; XLM may take rare words more often, by `smoothing`."""


def add_pair_objectives(
    name: str,
    source: seqio.DataSource,
    *,
    field: str = "text",
    wrapped: bool = False,
    duplicates: int = 1,
) -> tuple[str, ...]:
    """Register the formats of BERT, ALBERT, ELECTRA and RoBERTa on a source of documents, and return their names.

        NAME_mlm_nsp          pairs, half of them random: masked words and next sentence (BERT)
        NAME_mlm_sop          pairs, half of them swapped: masked words and sentence order (ALBERT)
        NAME_mlm_sop_ngram    the same with n-grams of words masked, as ALBERT was trained
        NAME_segment_pairs    RoBERTa's SEGMENT-PAIR: as BERT's, none of them short
        NAME_sentence_pairs   RoBERTa's SENTENCE-PAIR: single sentences
        NAME_full_sentences   RoBERTa's FULL-SENTENCES: whole sentences across documents
        NAME_doc_sentences    RoBERTa's DOC-SENTENCES: whole sentences of one document
        NAME_electra          one or two segments that follow each other (ELECTRA)
        NAME_electra_quarter  the same with 25 % of the tokens chosen (ELECTRA-large)

    All make inputs, targets and weights; those of pairs token_types, and the first five next_sentence_labels, for
    `t2t.objectives.sentence_pairs`. The whole split and its sequences are held in memory.

    Args:
        name: of the corpus, the first part of the names of the tasks.
        source: of examples with a field of text, or of a list of sentences.
        field: the name of that field.
        wrapped: whether lines of the text are broken at some width, so that only an empty line ends a sentence.
        duplicates: how often the corpus is gone through, with other random pairs each time.
    """
    for suffix, (sentence_format, corruption) in OBJECTIVES.items():
        if isinstance(sentence_format, RandomFormat):
            sentence_format = dataclasses.replace(sentence_format, duplicates=duplicates)
        features = {made: registry.feature(add_eos=False) for made in corruption.makes}
        if sentence_format.has_labels:
            features["next_sentence_labels"] = _labels()
        registry.add_task(
            f"{name}_{suffix}",
            source,
            output_features=features,
            preprocessors=[
                functools.partial(seqio.preprocessors.rekey, key_map={"targets": field}),
                TokenizeSentences(wrapped=wrapped),
                sentence_format,
                corruption,
            ],
        )
    return tuple(f"{name}_{suffix}" for suffix in OBJECTIVES)


def add_translations(
    name: str,
    source: seqio.DataSource,
    *,
    languages: tuple[str, ...] = (),
    pair: tuple[int, int] | None = None,
    fields: tuple[str, str] = ("source", "target"),
    corruption: MaskedTokens = TRANSLATED,
) -> str:
    """Register NAME_tlm, XLM's translation language modelling on a source of pairs, and return its name.

    Args:
        name: of the corpus.
        source: of records with two fields of text and, without `pair`, the languages of both in a field `languages`.
        languages: names of the languages in the order of their ids; empty where records hold ids.
        pair: ids of both languages, where all records have the same.
        fields: names of the fields of text.
        corruption: how words are masked.
    """
    registry.add_task(
        f"{name}_tlm",
        source,
        output_features={made: registry.feature(add_eos=False) for made in corruption.makes},
        preprocessors=[
            TranslationPairs(source=fields[0], target=fields[1], languages=languages, pair=pair),
            corruption,
        ],
    )
    return f"{name}_tlm"


def _labels() -> seqio.Feature:
    """The feature of one label an example."""
    return seqio.Feature(seqio.PassThroughVocabulary(size=2), add_eos=False, dtype=tf.int32, rank=0)
