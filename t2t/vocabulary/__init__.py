"""Vocabularies: text to token ids and back, without TensorFlow.

Four kinds share one interface, `Vocabulary`: bytes (`ByteVocabulary`), SentencePiece models
(`SentencePieceVocabulary`), what the tokenizers library reads (`TokenizerVocabulary`: tokenizer.json, BERT's vocab.txt,
vocab.json with merges.txt of GPT, GPT-2 and RoBERTa) and byte-pair encoding of the words of the Moses toolkit
(`MosesVocabulary`: XLM).
`Vocabulary.load` recognises what a path holds; `train_sentencepiece`, `train_wordpiece` and `train_byte_bpe` make new
ones. Special ids come from the vocabulary object and are never computed from its size.
"""

from t2t.vocabulary.base import Vocabulary, sentinel_name
from t2t.vocabulary.byte_level import ByteVocabulary
from t2t.vocabulary.library_training import train_byte_bpe, train_wordpiece
from t2t.vocabulary.moses_bpe import MosesVocabulary
from t2t.vocabulary.sentencepiece_model import SentencePieceVocabulary
from t2t.vocabulary.tokenizers_library import TokenizerVocabulary
from t2t.vocabulary.training import train_sentencepiece

__all__ = [
    "ByteVocabulary",
    "MosesVocabulary",
    "SentencePieceVocabulary",
    "TokenizerVocabulary",
    "Vocabulary",
    "sentinel_name",
    "train_byte_bpe",
    "train_sentencepiece",
    "train_wordpiece",
]
