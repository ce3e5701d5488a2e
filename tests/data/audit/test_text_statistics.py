"""Numbers of texts against counting by hand, and the classes of lengths."""

import dataclasses
import statistics
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t.data.audit import languages, text_statistics, units
from t2t.data.audit.text_statistics import measure

TEXTS = [
    "The cat and the dog.\n",
    "東京はとても大きい",
    "bad \ufffd byte",
    "bell \x07 and \x85",
    "tab\tand line\r\n",
    "Привет, мир! Как дела?",
    "\U0001f600",
]


def test_sums_are_those_of_the_texts():
    found = measure(TEXTS, units.hash_units(TEXTS))
    assert found.documents == 7
    assert found.characters == sum(map(len, TEXTS))
    assert found.size == sum(len(text.encode()) for text in TEXTS)
    assert found.units == 5 + 9 + 2 + 2 + 3 + 4 + 0
    assert found.longest == max(map(len, TEXTS))
    assert found.with_replacements == 1
    assert found.with_controls == 1
    letters = [char for text in TEXTS for char in text if unicodedata.category(char)[0] == "L"]
    scripts = {
        name: sum(unicodedata.name(char).startswith(name.upper()) for char in letters) for name in ("Latin", "Cyrillic")
    }
    scripts |= {"Han": 3, "Kana": 6}
    by_name = dict(zip(languages.SCRIPTS, found.letters.tolist(), strict=True))
    assert {name: number for name, number in by_name.items() if number} == scripts


def test_parts_add_up_and_long_texts_are_cut(monkeypatch):
    texts = [*TEXTS, "the of and " * 50]
    whole = measure(texts, units.hash_units(texts))
    monkeypatch.setattr(units, "BLOCK", 40)
    parts = measure(texts[:3], units.hash_units(texts[:3])) + measure(texts[3:], units.hash_units(texts[3:]))
    for field in dataclasses.fields(whole):
        assert np.array_equal(getattr(parts, field.name), getattr(whole, field.name)), field.name


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=40))
def test_classes_of_lengths(lengths):
    classes = np.bincount(text_statistics.length_class(np.array(lengths)))
    for length, number in zip(lengths, text_statistics.length_class(np.array(lengths)).tolist(), strict=True):
        assert text_statistics.least_of_class(number) <= length < max(1, text_statistics.least_of_class(number + 1))
        if length <= 23:
            assert text_statistics.least_of_class(number) == length
    median = text_statistics.quantile(classes, 0.5)
    exact = statistics.median_low(lengths)
    assert median <= exact <= median * 1.05
    octaves = text_statistics.octaves(classes)
    assert sum(number for _, number in octaves) == len(lengths)
    for least, number in octaves:
        assert number == sum(least <= length < max(1, 2 * least) for length in lengths)
    assert octaves[0][1] and octaves[-1][1]


def test_nothing_has_no_lengths():
    assert text_statistics.quantile(np.zeros(5, int), 0.5) == 0
    assert text_statistics.octaves(np.zeros(5, int)) == []


@pytest.mark.parametrize("char", ["a", "é", "東", "\U0001f600"])
def test_bytes_of_any_character(char):
    assert measure([char], units.hash_units([char])).size == len(char.encode())
