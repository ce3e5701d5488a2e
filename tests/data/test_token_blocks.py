import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t.data import cache_directory
from t2t.data.cache_directory import Group
from t2t.data.text_files import Skipped
from t2t.data.token_blocks import (
    BlockReader,
    BlockWriter,
    Cut,
    Prefix,
    Rekey,
    SentenceTokenizer,
    Tokenizer,
    blocks,
    text_size,
)
from t2t.vocabulary import ByteVocabulary

BYTES = ByteVocabulary()


def cut(**options):
    return Cut(**{"feature": "x", "eos_id": None, "length": None, "across_documents": True} | options)


def ids(text):
    return BYTES.encode(text)


def made(tokenizer, *rows):
    store = tokenizer(rows)
    return [{name: value.tolist() for name, value in store[i].items()} for i in range(len(store))]


def test_texts_become_tokens_and_numbers_stay():
    tokenizer = Tokenizer(vocabularies={"inputs": BYTES, "targets": BYTES})
    rows = [{"inputs": "ab", "targets": "é".encode(), "title": "no feature", "label": np.int64(3)}]
    assert made(tokenizer, *rows) == [{"inputs": ids("ab"), "targets": ids("é"), "label": 3}]


def test_steps_come_first():
    rekey = Rekey(names={"inputs": None, "targets": "text"})
    assert rekey({"text": "a", "other": "b"}) == {"inputs": "", "targets": "a"}
    prefix = Prefix(prefix="topic: ", inputs="text", targets="label")
    row = {"text": "a", "label": "b", "other": "c"}
    assert prefix(row) == {"inputs": "topic: a", "targets": "b"}
    tokenizer = Tokenizer(vocabularies={"inputs": BYTES, "targets": BYTES}, steps=(prefix,))
    assert made(tokenizer, row) == [{"inputs": ids("topic: a"), "targets": ids("b")}]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["abc", "defgh"]),
        ({"eos_id": 1}, ["abc\1", "defgh\1"]),
        ({"length": 2}, ["abc", "defgh"]),
        ({"length": 2, "eos_id": 1}, ["abc\1", "defgh\1"]),
        ({"length": 2, "across_documents": False}, ["ab", "c", "de", "fg", "h"]),
        ({"length": 2, "across_documents": False, "eos_id": 1}, ["ab", "c\1", "de", "fg", "h\1"]),
    ],
)
def test_cuts(options, expected):
    tokenizer = Tokenizer(vocabularies={"x": BYTES}, cut=cut(**options))
    rows = [{"x": "abc", "label": 1}, {"x": "", "label": 2}, {"x": "defgh", "label": 3}]
    wanted = [{"x": [1 if letter == "\1" else ids(letter)[0] for letter in text]} for text in expected]
    assert made(tokenizer, *rows) == wanted


def test_sentences_are_tokenised_one_by_one():
    tokenizer = SentenceTokenizer(
        vocabulary=BYTES, feature="x", wrapped=False, lengths="n", steps=(Rekey(names={"x": "text"}),)
    )
    rows = [{"text": "One. Two é!"}, {"text": ""}, {"text": "Three", "title": "no feature"}]
    assert made(tokenizer, *rows) == [
        {"x": ids("One. Two é!"), "n": [4, 8]}, {"x": [], "n": []}, {"x": ids("Three"), "n": [5]}
    ]  # fmt: skip


@given(sizes=st.lists(st.integers(0, 9), max_size=20), limit=st.integers(1, 15))
def test_blocks_hold_all_rows_and_end_when_they_are_full(sizes, limit):
    rows = [{"x": "a" * size, "i": i} for i, size in enumerate(sizes)]
    found = list(blocks(rows, limit, text_size))
    assert [row for block in found for row in block] == rows
    totals = [[text_size(row) for row in block] for block in found]
    assert all(sum(total) >= limit for total in totals[:-1])
    assert all(sum(total[:-1]) < limit for total in totals)


def rows_of(files, skipped):
    skipped.empty += 1
    yield from ({"x": text} for text in files)


def test_blocks_that_are_there_are_read_over(tmp_path):
    reader = BlockReader(directory=tmp_path, rows=rows_of, size=6, kept=frozenset(["g00002-00001"]))
    reader = pickle.loads(pickle.dumps(reader))
    found = list(reader(("g00002", ["abcde", "fghij", "kl"])))
    assert found == [("g00002-00000", [{"x": "abcde"}]), ("g00002-00002", [{"x": "kl"}])]
    assert cache_directory.read_groups(tmp_path) == {"g00002": Group(name="g00002", shards=3, skipped=Skipped(empty=1))}


def test_a_group_that_was_not_read_to_its_end_is_not_noted(tmp_path):
    next(iter(BlockReader(directory=tmp_path, rows=rows_of, size=1)(("g00000", ["a", "b"]))))
    assert cache_directory.read_groups(tmp_path) == {}


def test_a_writer_keeps_a_shard(tmp_path):
    writer = BlockWriter(directory=tmp_path, tokenizer=Tokenizer(vocabularies={"x": BYTES}, cut=cut(eos_id=1)))
    shard = pickle.loads(pickle.dumps(writer))(("g00000-00000", [{"x": "ab"}, {"x": "c"}]))
    assert (shard.rows, shard.values) == (2, {"x": 5})
    assert cache_directory.find_finished(tmp_path).shards == {"g00000-00000": shard}
