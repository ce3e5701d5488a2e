"""Units and n-grams against strings and tuples: equal hashes where those are equal, and nowhere else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import audit as oracle

from t2t.data.audit import units as units_lib

TEXTS = [
    "Don't panic: 東京 is FINE.",
    "",
    "don t PANIC — 東 京 is fine",
    " .,;!\n",
    "e\u0301té été ÉTÉ ete",
    "नमस्ते दुनिया",
    "ภาษาไทย",
    "soft\u00adhyphen zero\u200bwidth ❤\ufe0f ﬁne ｗｉｄｅ",
    "x" * 70 + " 123 4_5",
    "Straße STRASSE",
    "a",
]


def check(texts: list[str], n: int) -> None:
    """Hashes tell units and n-grams apart as the oracle does."""
    units = units_lib.hash_units(texts)
    expected = [oracle.split_units(text) for text in texts]
    assert units.sizes.tolist() == [len(row) for row in expected]
    names = dict(zip(units.values.tolist(), sum(expected, []), strict=True))
    assert [names[value] for value in units.values.tolist()] == sum(expected, [])
    assert len(set(names.values())) == len(names)
    grams = units_lib.ngrams(units, n)
    sets = [oracle.ngrams(text, n) for text in texts]
    found = [set(grams[row].tolist()) for row in range(len(texts))]
    assert [len(row) for row in found] == [len(row) for row in sets]
    for i in range(len(texts)):
        for j in range(i):
            assert len(found[i] & found[j]) == len(sets[i] & sets[j])


@pytest.mark.parametrize("n", [1, 2, 3, 9])
def test_units_and_ngrams_are_those_of_the_oracle(n):
    check(TEXTS, n)


@given(
    st.lists(st.text(st.sampled_from("aBß é\u0301.-日本ก\u00ad9_\U0001f600\U00020000"), max_size=12), max_size=5),
    st.integers(1, 4),
)
def test_any_text(texts, n):
    check(texts, n)


def test_texts_are_cut_for_hashing_only(monkeypatch):
    long = " ".join(f"word{i}" for i in range(300))
    texts = [long, "short one", "z" * 120, long + " 東京" * 30]
    whole = units_lib.hash_units(texts)
    monkeypatch.setattr(units_lib, "BLOCK", 100)
    cut = units_lib.hash_units(texts)
    assert cut.sizes[:2].tolist() == whole.sizes[:2].tolist()
    assert np.array_equal(cut[0], whole[0]) and np.array_equal(cut[1], whole[1]) and np.array_equal(cut[3], whole[3])
    assert cut.sizes[2] == 2  # a word without end is cut where it must be


def test_windows_are_the_runs_of_exactly_so_many_units():
    texts = ["a b c d e", "b c", "", "c d e f"]
    units = units_lib.hash_units(texts)
    for size, windows in zip((1, 2, 4), units_lib.windows(units, (1, 2, 4)), strict=True):
        expected = [oracle.windows(text, size) for text in texts]
        assert windows.sizes.tolist() == [len(row) for row in expected]
        names = {}
        for row, text in enumerate(texts):
            words = text.split()
            runs = [tuple(words[i : i + size]) for i in range(len(words) - size + 1)]
            assert all(names.setdefault(v, run) == run for v, run in zip(windows[row].tolist(), runs, strict=True))
        assert len(set(names.values())) == len(names)


def test_runs_of_different_lengths_differ():
    units = units_lib.hash_units(["a a a a"])
    seen = [set(windows.values.tolist()) for windows in units_lib.windows(units, (1, 2, 3))]
    assert [len(values) for values in seen] == [1, 1, 1]
    assert len(set().union(*seen)) == 3


def test_hashes_are_those_of_the_formula():
    """So they are the same in every process and on every machine."""

    def mix(value):
        value ^= value >> 30
        value = value * 0xBF58476D1CE4E5B9 % 2**64
        value ^= value >> 27
        value = value * 0x94D049BB133111EB % 2**64
        return value ^ value >> 31

    unit = mix(sum(mix(ord(char) + 1) * 0x9E3779B97F4A7C15**i for i, char in enumerate("hello")) % 2**64)
    units = units_lib.hash_units(["!Hello hello"])
    assert units.values.tolist() == [unit, unit]
    pair = mix((unit + unit * 0xD1342543DE82EF95 + 2 * 0x2545F4914F6CDD1D) % 2**64)
    assert units_lib.ngrams(units, 2).values.tolist() == [pair]
