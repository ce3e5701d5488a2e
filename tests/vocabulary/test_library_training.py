import json
import pydoc_data.topics
import subprocess
import sys

import hypothesis
import pytest
from hypothesis import strategies as st

from t2t import vocabulary as vocabularies

LINES = tuple("\n".join(text for _, text in sorted(pydoc_data.topics.topics.items())[:12]).splitlines())
FOREIGN = ("Ångström naïve Été été", "日本語 中文", "Ωμέγα")


@pytest.fixture(scope="module")
def pieces() -> vocabularies.TokenizerVocabulary:
    return vocabularies.train_wordpiece([*LINES, *FOREIGN * 9], size=700, sentinels=10, character_coverage=1.0)


@pytest.fixture(scope="module")
def byte_pairs() -> vocabularies.TokenizerVocabulary:
    return vocabularies.train_byte_bpe(LINES, size=700, sentinels=10)


def special(vocabulary) -> tuple[int | None, ...]:
    return tuple(getattr(vocabulary, f"{role}_id") for role in ("pad", "bos", "eos", "unk", "mask"))


def test_layout_of_word_pieces(pieces):
    assert pieces.size == 700
    assert special(pieces) == (0, 2, 3, 1, 4)
    assert pieces.sentinels == tuple(range(699, 689, -1))
    assert pieces.special_ids == (0, 1, 2, 3, 4, *range(690, 700))
    assert "" not in pieces.pieces()


def test_layout_of_byte_pairs(byte_pairs):
    assert byte_pairs.size == 700
    assert special(byte_pairs) == (1, 0, 2, 3, 689)
    assert byte_pairs.sentinels == tuple(range(699, 689, -1))
    assert byte_pairs.special_ids == (0, 1, 2, 3, *range(689, 700))
    end = vocabularies.train_byte_bpe(LINES, size=500, end_of_text=True, mask=False)
    assert special(end) == (None, 499, 499, None, None)
    assert (end.pieces()[0], end.pieces()[499], end.special_ids) == ("!", "<|endoftext|>", (499,))


def test_words_of_known_characters_are_never_unknown(pieces):
    words = {word for line in LINES for word in line.split() if len(word) <= 100}
    assert all(pieces.unk_id not in ids for ids in pieces.encode_batch(sorted(words)))
    assert pieces.encode("Ж") == [pieces.unk_id]
    assert pieces.decode(pieces.encode("unaffable return")) == "unaffable return"


def test_case_accents_and_chinese(pieces):
    assert pieces.encode("Été") == pieces.encode("ete")
    assert pieces.encode("中文") == pieces.encode("中 文")
    text = [*LINES, *FOREIGN * 9]
    cased = vocabularies.train_wordpiece(text, size=700, lowercase=False, space_chinese=False, character_coverage=1.0)
    assert cased.decode(cased.encode("Été")) == "Été"
    assert cased.encode("中文") != cased.encode("中 文")
    accents = vocabularies.train_wordpiece(text, size=700, strip_accents=False, character_coverage=1.0)
    assert accents.decode(accents.encode("Été")) == "été"
    bare = vocabularies.train_wordpiece(text, size=700, lowercase=False, strip_accents=True, character_coverage=1.0)
    assert bare.decode(bare.encode("Été")) == "Ete"


def test_the_mask_and_sentinels_in_text(pieces, byte_pairs):
    assert pieces.encode("a [MASK] b").count(4) == 1
    assert byte_pairs.encode("a <mask> b") == [*byte_pairs.encode("a"), 689, *byte_pairs.encode(" b")]
    for vocabulary in (pieces, byte_pairs):
        assert [i for i in vocabulary.encode("x <extra_id_0>y<extra_id_9>") if i >= 690] == [699, 690]


@hypothesis.given(st.text(st.characters(codec="utf-8")))
def test_every_text_comes_back_from_byte_pairs(byte_pairs, text):
    hypothesis.assume(not any(name in text for name in ("<s>", "<pad>", "</s>", "<unk>", "<mask>", "<extra_id_")))
    ids = byte_pairs.encode(text)
    assert byte_pairs.unk_id not in ids
    assert byte_pairs.decode(ids) == text


@hypothesis.given(st.binary())
def test_every_byte_has_an_id(byte_pairs, content):
    assert byte_pairs.unk_id not in byte_pairs.encode(content.decode("utf-8", errors="replace"))
    assert byte_pairs.decode(byte_pairs.encode(content.decode("latin-1"))) == content.decode("latin-1")


def test_add_prefix_space():
    spaced = vocabularies.train_byte_bpe(LINES, size=400, add_prefix_space=True)
    assert spaced.encode("the") == spaced.encode(" the")


CODE = """
import json, sys
from t2t import vocabulary
text = json.load(sys.stdin)
print(vocabulary.train_wordpiece(text, size=400, character_coverage=0.9).fingerprint)
print(vocabulary.train_byte_bpe(text, size=400).fingerprint)
"""


@pytest.mark.slow
def test_other_processes_train_the_same():
    rare = [*LINES, *(chr(code) + chr(code) for code in range(0x400, 0x450))]
    done = [
        subprocess.run([sys.executable, "-c", CODE], input=json.dumps(rare), capture_output=True, text=True, check=True)
        for _ in range(3)
    ]
    assert len({one.stdout for one in done}) == 1
    assert len(done[0].stdout.split()) == 2


@pytest.mark.parametrize("kind", ["pieces", "byte_pairs"])
def test_saved_ones_load_again(kind, request, tmp_path):
    vocabulary = request.getfixturevalue(kind)
    vocabulary.save(tmp_path)
    assert vocabularies.Vocabulary.load(tmp_path) == vocabulary


def test_sizes_that_cannot_be_say_what_can():
    with pytest.raises(ValueError, match=r"size=5000 is too large .* largest possible is (\d+)") as error:
        vocabularies.train_wordpiece(["abc abd"], size=5000)
    largest = int(str(error.value).split("possible is ")[1].split(".")[0])
    assert vocabularies.train_wordpiece(["abc abd"], size=largest).size == largest
    with pytest.raises(ValueError, match="size=10 is too small.* need 12 ids, 0 sentinels"):
        vocabularies.train_wordpiece(["abc abd"], size=10)
    assert vocabularies.train_wordpiece(["abc abd"], size=12).size == 12
    with pytest.raises(ValueError, match="size=260 is too small.* need 261 ids"):
        vocabularies.train_byte_bpe(["abc"], size=260)
    with pytest.raises(ValueError, match="size=300 is too large"):
        vocabularies.train_byte_bpe(["abc"], size=300)
    with pytest.raises(ValueError, match="no text"):
        vocabularies.train_wordpiece(["", " "], size=300)


def test_mode_tokens_are_one_token_each():
    pieces = vocabularies.train_wordpiece(LINES, size=400, sentinels=10, modes=True)
    byte_pairs = vocabularies.train_byte_bpe(LINES, size=400, sentinels=10, modes=True)
    for vocabulary in (pieces, byte_pairs):
        assert vocabulary.size == 400
        assert vocabulary.modes == {"[NLU]": 387, "[NLG]": 388, "[S2S]": 389}
        assert {*vocabulary.modes.values()} <= {*vocabulary.special_ids}
        assert vocabulary.encode("[NLG] the")[0] == 388
        assert vocabulary.encode("the[S2S]")[-1] == 389
