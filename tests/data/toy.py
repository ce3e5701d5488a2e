"""Vocabularies and features for tests of the data code."""

import seqio
import tokenizers

from t2t import vocabulary as vocabularies
from t2t.data.vocabularies import SeqioVocabulary


def word_vocabulary(*words: str) -> vocabularies.Vocabulary:
    """A vocabulary of words divided by spaces, the i-th with id i; names such as [MASK] or <extra_id_0> are special."""
    ids = {word: i for i, word in enumerate(words)}
    unknown = next((word for word in words if word in ("[UNK]", "<unk>")), words[0])
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(ids, unk_token=unknown))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens([word for word in words if word[0] in "[<"])
    return vocabularies.TokenizerVocabulary(tokenizer.to_str())


def words(number: int) -> list[str]:
    """w0, w1, ..."""
    return [f"w{i}" for i in range(number)]


def features(vocabulary: vocabularies.Vocabulary, *names: str, add_eos: bool = True) -> dict[str, seqio.Feature]:
    """Output features of a task, all with one vocabulary."""
    return {name: seqio.Feature(SeqioVocabulary(vocabulary), add_eos=add_eos) for name in names}
