import hypothesis
import pytest
from hypothesis import strategies as st

from t2t import vocabulary as vocabularies
from tests.hf import lines

BYTES = vocabularies.ByteVocabulary()


def test_ids():
    assert (BYTES.pad_id, BYTES.bos_id, BYTES.eos_id, BYTES.unk_id, BYTES.mask_id) == (0, None, 1, 2, 259)
    assert BYTES.size == 3 + 256 + 1 + 100
    assert BYTES.sentinels[:2] == (359, 358)
    assert BYTES.special_ids == (0, 1, 2, *range(259, 360))
    bare = vocabularies.ByteVocabulary(sentinels=0, mask=False)
    assert (bare.size, bare.mask_id, bare.sentinels) == (259, None, ())


def test_text_and_specials():
    assert BYTES.encode("aé") == [100, 0xC3 + 3, 0xA9 + 3]
    assert BYTES.encode("a<mask>b <extra_id_0><extra_id_100>")[:5] == [100, 259, 101, 35, 359]
    assert BYTES.decode([100, 259, 101, 359, 1, 102]) == "a<mask>b<extra_id_0>"
    assert BYTES.decode([100, 259, 359, 358, 0, 2], skip_sentinels=True) == "a<mask>"


@hypothesis.given(st.text())
def test_every_text_comes_back(text):
    assert BYTES.decode(BYTES.encode(text)) == text
    assert max(BYTES.encode(text), default=0) < BYTES.size


def test_half_a_character_is_left_out():
    assert BYTES.decode(BYTES.encode("aé")[:2]) == "a"


def test_lone_surrogates_are_replaced():
    assert BYTES.decode(BYTES.encode("a\udc80b")) == "a?b"


def test_pieces():
    pieces = BYTES.pieces()
    assert len(pieces) == BYTES.size
    assert (pieces[0], pieces[100], pieces[0xE2 + 3], pieces[259], pieces[359]) == (
        "<pad>", "a", "<0xE2>", "<mask>", "<extra_id_0>",
    )  # fmt: skip


def test_negative_sentinels_are_refused():
    with pytest.raises(ValueError, match="sentinels=-1"):
        vocabularies.ByteVocabulary(sentinels=-1)


def test_sentinels_may_count_upwards():
    upwards = vocabularies.ByteVocabulary(sentinels=3, mask=False, ascending=True)
    assert (upwards.sentinels, upwards.size) == ((259, 260, 261), 262)
    assert upwards.encode("a<extra_id_0><extra_id_2>") == [100, 259, 261]
    assert upwards.decode([261, 100]) == "<extra_id_2>a"
    assert upwards != vocabularies.ByteVocabulary(sentinels=3, mask=False)


@pytest.mark.hf
def test_ids_equal_those_of_transformers():
    import transformers

    ours = vocabularies.ByteVocabulary(sentinels=125, mask=False, ascending=True)
    theirs = transformers.ByT5Tokenizer()
    some = list(lines.ten_thousand("<extra_id_3>", "<extra_id_124>"))
    assert ours.encode_batch(some) == theirs(some, add_special_tokens=False)["input_ids"]
    assert len(theirs) == ours.size


def test_mode_tokens():
    modes = vocabularies.ByteVocabulary(sentinels=2, modes=True)
    assert modes.modes == {"[NLU]": 260, "[NLG]": 261, "[S2S]": 262}
    assert (modes.size, modes.sentinels) == (265, (264, 263))
    assert modes.special_ids == (0, 1, 2, *range(259, 265))
    assert modes.encode("[S2S]a[NLX]") == [262, 100, *(ord(letter) + 3 for letter in "[NLX]")]
    assert modes.decode([261, 100]) == "[NLG]a"
    assert modes.pieces()[260:263] == ["[NLU]", "[NLG]", "[S2S]"]
    assert BYTES.modes == {}
    assert BYTES.encode("[NLU]") == [ord(letter) + 3 for letter in "[NLU]"]


def test_mode_tokens_are_saved(tmp_path):
    for modes in (False, True):
        vocabulary = vocabularies.ByteVocabulary(sentinels=4, mask=False, modes=modes)
        vocabulary.save(tmp_path)
        loaded = vocabularies.Vocabulary.load(tmp_path)
        assert (loaded, loaded.modes) == (vocabulary, vocabulary.modes)
        assert ("modes" in (tmp_path / "vocabulary.json").read_text()) == modes
