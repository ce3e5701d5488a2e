import itertools
import re

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from t2t import vocabulary as vocabularies
from t2t.vocabulary import tokenizers_library, words
from tests.data import toy
from tests.shared_data import shared_data
from tests.vocabulary.trained import KINDS, LINES, trained


def split(vocabulary, text: str) -> list[str]:
    """The words of a text, as the tokens of each read."""
    ids = vocabulary.encode(text)
    bounds = [*np.flatnonzero(vocabulary.word_marks.starts(np.array(ids))).tolist(), len(ids)]
    return [vocabulary.decode(ids[start:stop]) for start, stop in itertools.pairwise(bounds)]


# Rules.


@pytest.mark.parametrize(
    ("piece", "begins"),
    [
        ("▁", True), ("▁the", True), ("the", False), ("The", False), ("öße", False), ("ции", False), ("19", False),
        ("\u0301", False), (".", True), ("'", True), ("...", True), ("(", True), ("<", True), ("€", True), ("_", True),
        ("日", True), ("の", True), ("ไทย", True), ("한", False), ("", True), ("😀", True),
        ("<0x61>", False), ("<0x2E>", True), ("<0xC3>", False), ("<0xA9>", False), ("<0xE6>", True), ("<0xF0>", True),
    ],
)  # fmt: skip
def test_rule_of_sentence_pieces(piece, begins):
    assert words.begins_sentence_piece(piece) is begins


@pytest.mark.parametrize(
    ("rule", "begin", "continue_"),
    [
        (words.begins_word_piece, ["the", "#", ".", "日"], ["##s", "##"]),
        (words.begins_byte_level, ["Ġthe", "Ġ", "Ċ", "ĊĊ", "ĉ", "č"], ["the", ".", "Ã©", "'s", ""]),
        (words.begins_byte, [" ", "<0x0A>", "<0x09>"], ["a", ".", "<0xC3>", "<0x00>"]),
    ],
)
def test_other_rules(rule, begin, continue_):
    assert [rule(piece) for piece in begin] == [True] * len(begin)
    assert [rule(piece) for piece in continue_] == [False] * len(continue_)


# Tables.


def test_special_tokens_stand_alone_and_the_first_token_begins():
    marks = words.mark_words(["<s>", "a", "b", "▁c"], [0], begins=words.begins_sentence_piece)
    tokens = np.array([[1, 2, 3, 1], [3, 0, 1, 2]])
    assert marks.starts(tokens).tolist() == [[True, False, True, False], [True, True, True, False]]
    assert marks.starts(np.zeros(0, np.int32)).tolist() == []


def test_marks_at_the_end_of_words():
    marks = words.mark_words(["a", "b", "a</w>", "<unk>"], [3], ends=lambda piece: piece.endswith("</w>"))
    assert marks.starts(np.array([0, 2, 1, 0, 2, 2, 3, 0])).tolist() == [1, 0, 1, 0, 0, 1, 1, 1]


# Vocabularies.


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("word pieces", ["undefinable", "objects", ",", "don", "'", "t", "."]),
        ("sentence pieces", ["undefinable", "objects", ",", "don", "'t", "."]),
        ("byte pairs", ["undefinable", " objects,", " don't."]),
        ("bytes", ["undefinable", " objects,", " don't."]),
    ],
)
def test_words_of_a_text(kind, expected):
    vocabulary = trained(kind)
    assert len(vocabulary.encode("undefinable")) > 2
    assert split(vocabulary, "undefinable objects, don't.") == expected


@pytest.mark.parametrize("kind", KINDS)
@hypothesis.given(st.lists(st.text("abdeinorst.,()'", min_size=1, max_size=9), min_size=1, max_size=8))
def test_words_between_spaces_begin_and_letters_stay_together(kind, written):
    found = [word.strip() for word in split(trained(kind), " ".join(written))]
    assert "".join(found) == "".join(written)
    starts = set(itertools.accumulate(map(len, found), initial=0))
    assert set(itertools.accumulate(map(len, written), initial=0)) <= starts
    place = 0
    for word in written:
        for run in re.finditer(r"\w+", word):
            assert not starts.intersection(range(place + run.start() + 1, place + run.end()))
        place += len(word)


def test_other_tokenizers():
    assert split(toy.word_vocabulary("[UNK]", "a", "b"), "a b a") == ["a", "b", "a"]
    vocab = {"<unk>": 0, "a": 1, "b": 2, "a</w>": 3, "b</w>": 4, "ab</w>": 5}
    gpt = vocabularies.TokenizerVocabulary(tokenizers_library._gpt_bpe(vocab, [("a", "b</w>")]))
    assert split(gpt, "ab aab ba") == ["ab", "aab", "ba"]


def test_definitions_of_other_programs():
    bpe = {"vocab": {"▁a": 0, "b": 1}, "merges": []}
    assert tokenizers_library.word_rules({"model": {"type": "BPE", **bpe}}) == {"begins": words.begins_sentence_piece}
    byte_level = {"model": bpe, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}]}}
    assert tokenizers_library.word_rules(byte_level) == {"begins": words.begins_byte_level}
    unigram = {"model": {"type": "Unigram", "vocab": [["<unk>", 0.0], ["▁a", -1.0]]}}
    assert tokenizers_library.word_rules(unigram) == {"begins": words.begins_sentence_piece}
    (rule,) = tokenizers_library.word_rules({"model": {"continuing_subword_prefix": "@@", "vocab": {}}}).values()
    assert [rule("a"), rule("@@a")] == [True, False]
    with pytest.raises(ValueError, match=r"\(BPE\) marks neither where words begin \(##, ▁, Ġ\) nor where they end"):
        tokenizers_library.word_rules({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})


@pytest.mark.slow
def test_published_vocabularies():
    for name, expected in {
        "roberta": ["Unfathomably", " deep", " seas."],
        "albert": ["unfathomably", "deep", "seas", "."],
        "bert-base-uncased": ["unfathomably", "deep", "seas", "."],
    }.items():
        vocabulary = vocabularies.Vocabulary.load(shared_data("tokenizers", name))
        assert split(vocabulary, "Unfathomably deep seas.") == expected


def test_marks_of_a_whole_vocabulary_are_made_once():
    vocabulary = trained("byte pairs")
    assert vocabulary.word_marks is vocabulary.word_marks
    assert vocabulary.word_marks.begins.shape == vocabulary.word_marks.ends.shape == (vocabulary.size,)
    assert np.flatnonzero(vocabulary.word_marks.ends).tolist() == list(vocabulary.special_ids)
    assert len(split(vocabulary, LINES[0])) == len(LINES[0].split())
