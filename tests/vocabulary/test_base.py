import pickle
import subprocess
import sys

import numpy as np
import pytest

from t2t import vocabulary as vocabularies
from t2t.vocabulary import base


def test_decode_stops_at_eos_and_drops_padding_and_the_leading_bos():
    vocabulary = toy("<s>", "<pad>", "</s>", "a", "b", "<unk>")
    assert vocabulary.decode([0, 3, 4, 2, 3]) == "a b"
    assert vocabulary.decode([1, 1, 3, 1, 4]) == "a b"
    assert vocabulary.decode(np.array([3, 4, 2, 1], np.int32)) == "a b"
    assert vocabulary.decode_batch(np.array([[3, 2, 1], [4, 3, 2]])) == ["a", "b a"]


def test_decode_survives_ids_beyond_the_vocabulary():
    assert toy("<pad>", "</s>", "a", "<unk>").decode([2, 7]) == "a <unk>"
    assert toy("<pad>", "</s>", "a").decode([2, 7, -1]) == "a"


def test_bos_may_be_eos():
    vocabulary = toy("a", "<|endoftext|>")
    assert (vocabulary.bos_id, vocabulary.eos_id, vocabulary.pad_id) == (1, 1, None)
    assert vocabulary.decode([1, 0, 0, 1, 0]) == "a a"


def test_equal_vocabularies_have_equal_fingerprints(tmp_path):
    first, same, other = (
        vocabularies.ByteVocabulary(),
        vocabularies.ByteVocabulary(),
        vocabularies.ByteVocabulary(mask=False),
    )
    assert first == same
    assert hash(first) == hash(same)
    assert first != other
    assert len(first.fingerprint) == 64
    assert first.fingerprint[:12] in repr(first)


def test_vocabularies_go_to_other_processes():
    for vocabulary in (vocabularies.ByteVocabulary(sentinels=3), toy("<pad>", "a")):
        copy = pickle.loads(pickle.dumps(vocabulary))
        assert copy == vocabulary
        assert copy.encode("a") == vocabulary.encode("a")


def test_sentinels_are_counted_without_a_gap():
    held = {"<extra_id_0>": 5, "▁<extra_id_1>": 4, "<extra_id_3>": 9, "<extra_id_4>": 8, "x<extra_id_2>": 1}
    assert base.sentinel_ids(held) == (5, 4)
    assert base.sentinel_ids({"<extra_id_1>": 4}) == ()


def test_roles_prefer_explicit_names():
    ids = {"<s>": 0, "[CLS]": 1, "weird": 2}
    assert base.roles(ids)["bos_id"] == 0
    assert base.roles(ids, {"bos": "weird"})["bos_id"] == 2
    assert base.roles(ids)["mask_id"] is None


def test_a_start_can_be_chosen_and_is_kept(tmp_path):
    usual = toy("<s>", "<pad>", "</s>", "a", "<unk>")
    chosen = usual.starting_with(2)
    assert (usual.start_id, chosen.start_id) == (0, 2)
    assert chosen != usual and chosen.pieces() == usual.pieces() and chosen.encode("a") == [3]
    assert chosen.starting_with(0) == usual and chosen.starting_with(None) == usual
    chosen.save(tmp_path)
    for copy in (vocabularies.Vocabulary.load(tmp_path), pickle.loads(pickle.dumps(chosen))):
        assert copy == chosen and copy.start_id == 2
    for wrong in (-1, 5):
        with pytest.raises(ValueError, match=f"start_id {wrong} is no id.*from 0 to 4"):
            usual.starting_with(wrong)


def test_nothing_needs_tensorflow_or_jax():
    code = "import sys; from t2t.vocabulary import ByteVocabulary as V; V().encode('a'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"tensorflow", "jax", "torch"} & set(done.stdout.split())


def toy(*words: str) -> vocabularies.Vocabulary:
    tokenizers = pytest.importorskip("tokenizers")
    unknown = "<unk>" if "<unk>" in words else words[0]
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({w: i for i, w in enumerate(words)}, unk_token=unknown)
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens([word for word in words if word[0] == "<"])
    return vocabularies.TokenizerVocabulary(tokenizer.to_str())
