"""Leaks against sets of tuples of strings: what is covered, by which document, and what cannot be looked for."""

import numpy as np
import pytest
from data.audit import texts
from reference import audit as oracle

from t2t.data.audit import contamination, units
from t2t.data.audit.contamination import EvaluationIndex, Leaks


def search(corpus: list[str], index: EvaluationIndex, *, at_once: int = 100) -> Leaks:
    """The leaks of a corpus that is read some documents at a time, the last first."""
    leaks = Leaks.none(index)
    for start in reversed(range(0, len(corpus), at_once)):
        leaks.add(index.find(units.hash_units(corpus[start : start + at_once])), index, first=start)
    return leaks


@pytest.fixture(scope="module")
def planted():
    """A corpus of few words, so that chance n-grams are common, and evaluation documents of all lengths in it."""
    rng = np.random.default_rng(0)
    evaluation = [texts.words(rng, number, names=40) for number in (3, 5, 6, 12, 13, 14, 30, 80, 80)]
    corpus = [texts.words(rng, 50, names=40) for _ in range(20)]
    for document, text in enumerate(evaluation[:-1]):
        corpus[document] += " " + texts.change(text, rng, 0) + " " + texts.words(rng, 5, names=40)
    corpus[12] += " " + " ".join(evaluation[7].split()[:20])
    corpus[13] += " " + " ".join(evaluation[7].split()[30:70])
    return evaluation, corpus


@pytest.mark.parametrize(("n", "at_once"), [(2, 100), (4, 3), (13, 1)])
def test_coverage_is_that_of_the_oracle(planted, n, at_once):
    evaluation, corpus = planted
    index = EvaluationIndex.of(evaluation, n=n)
    leaks = search(corpus, index, at_once=at_once)
    coverage = leaks.coverage(index)
    for number, text in enumerate(evaluation):
        if number == 0:
            assert index.short[0] and index.sizes[0] == 0 and coverage[0] == 0 and leaks.holder[0] == -1
            continue
        whole, shares = oracle.coverage(corpus, text, n=n)
        assert coverage[number] == pytest.approx(whole, abs=1e-12)
        assert leaks.best[number] == pytest.approx(max(shares), abs=1e-12)
        assert leaks.holders[number] == np.count_nonzero(shares)
        assert leaks.holder[number] == (int(np.argmax(shares)) if max(shares) else -1)


def test_planted_leaks_are_all_found_and_nothing_else(planted):
    evaluation, corpus = planted
    index = EvaluationIndex.of(evaluation, n=13)
    leaks = search(corpus, index)
    assert (leaks.coverage(index) == 1).tolist() == [False] + [True] * 7 + [False]
    assert leaks.holder[1:8].tolist() == list(range(1, 8))
    assert leaks.holder[8] == -1


def test_parts_of_a_corpus_add_up(planted):
    evaluation, corpus = planted
    index = EvaluationIndex.of(evaluation, n=4)
    whole, parts = search(corpus, index), Leaks.none(index)
    for start in (12, 0, 5):
        stop = {0: 5, 5: 12, 12: 20}[start]
        parts.merge(search(corpus[start:stop], index), first=start)
    assert np.array_equal(parts.seen, whole.seen)
    assert np.array_equal(parts.holder, whole.holder)
    assert np.array_equal(parts.holders, whole.holders)
    assert np.array_equal(parts.best, whole.best)


def test_documents_of_the_corpus_that_leak(planted):
    evaluation, corpus = planted
    piece = " ".join(evaluation[7].split()[40:60])
    index = EvaluationIndex.of(evaluation, n=13)
    some = [corpus[7], corpus[13], piece, corpus[15], evaluation[4]]
    found = units.hash_units(some)
    ngrams = np.maximum(found.sizes - 12, 1)
    hits = index.find(found)

    def holds(share):
        return contamination.holds_leak(hits, index, ngrams=ngrams, share=share).tolist()

    # Of the eighth document's 68 n-grams the second text has 28; the third is made of it, and small.
    assert holds(0.5) == [True, False, True, False, True]
    assert holds(28 / 68) == [True, True, True, False, True]
    assert holds(1.0) == [True, False, True, False, True]


def test_what_an_earlier_document_says_is_looked_for_once():
    index = EvaluationIndex.of(["one two three four five", "ONE, two three: four (five)", "a b"], n=13)
    assert index.repeated.tolist() == [False, True, False]
    assert index.short.tolist() == [False, False, True]
    assert index.sizes.tolist() == [1, 0, 0]


def test_n_grams_of_many_documents_tell_nothing(monkeypatch):
    monkeypatch.setattr(contamination, "COMMON", 3)
    form = "is the following sentence true or false"
    index = EvaluationIndex.of([*(f"{form} animal{i} can fly very high" for i in range(5)), form, "b c d e f g"], n=4)
    assert index.common.tolist() == [False] * 5 + [True, False]
    leaks = search([f"{form} animal1 can fly very high", form], index)
    assert leaks.coverage(index).tolist() == [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert leaks.holders.tolist() == [0, 1, 0, 0, 0, 0, 0]


def test_evaluation_sets_without_anything_to_look_for():
    for evaluation in ([], ["too short"], [""]):
        index = EvaluationIndex.of(evaluation, n=13)
        hits = index.find(units.hash_units(["any text that there may be in a corpus", ""]))
        assert not len(hits.documents) and not len(hits.grams)
        leaks = Leaks.none(index)
        leaks.add(hits, index, first=0)
        assert leaks.coverage(index).tolist() == [0.0] * len(evaluation)


def test_batches_of_evaluation_documents_do_not_matter(monkeypatch, planted):
    evaluation, _ = planted
    whole = EvaluationIndex.of(evaluation, n=5)
    monkeypatch.setattr(contamination, "_TOGETHER", 2)
    parts = EvaluationIndex.of(iter(evaluation), n=5)
    assert np.array_equal(parts.hashes, whole.hashes) and np.array_equal(parts.sizes, whole.sizes)
    assert np.array_equal(parts.owners.values, whole.owners.values) and parts.lengths == whole.lengths
