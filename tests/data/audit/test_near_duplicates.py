"""Signatures estimate Jaccard's coefficient, bands miss what the formula says, and groups are all that is equal."""

import itertools

import numpy as np
import pytest
from data.audit import texts
from reference import audit as oracle

from t2t.data.audit import near_duplicates, units
from t2t.data.audit.units import Ragged


def signatures(rows: list[list[int]], hashes: int) -> np.ndarray:
    values = units.mix(np.array(sum(rows, []), np.uint64) + 1)
    return near_duplicates.signatures(Ragged.of(values, np.array([len(row) for row in rows])), hashes=hashes)


@pytest.mark.parametrize("common", [0, 10, 60, 95, 100])
def test_signatures_estimate_the_similarity(common):
    """Within four standard errors; sets of very different sizes, so that minima do too."""
    hashes = 4096
    for size in (100, 3000):
        k = common * size // 100
        a, b = list(range(size)), list(range(size - k, 2 * size - k))
        similarity = oracle.jaccard(set(a), set(b))
        found = near_duplicates.agreement(signatures([a, [], b], hashes), np.array([[0, 2]]))[0]
        assert abs(found - similarity) <= 4 * np.sqrt(similarity * (1 - similarity) / hashes) + 4 / np.sqrt(
            2**16 * hashes
        )


def test_a_signature_does_not_depend_on_order_or_repetition_or_neighbours():
    a, b = [5, 1, 9], list(range(50))
    together = signatures([a, b, [9, 9, 1, 5, 1], []], 7)
    assert np.array_equal(together[0], together[2])
    assert np.array_equal(together[1], signatures([b], 7)[0])
    assert (together[3] == 0xFFFF).all()


@pytest.mark.parametrize("similarity", [0.5, 0.8, 0.9, 1.0])
def test_the_banding_misses_one_in_ten_thousand_and_no_wider_one_does(similarity):
    found = near_duplicates.choose_banding(similarity, hashes=128)
    assert found.missed(similarity) <= 1e-4
    assert found.bands * found.rows <= 128
    if found.rows < 128:
        wider = near_duplicates.Banding(bands=128 // (found.rows + 1), rows=found.rows + 1)
        assert wider.missed(similarity) > 1e-4


def test_impossible_bandings_are_refused():
    with pytest.raises(ValueError, match="signatures of 8 hashes would miss 43.05% of the pairs of similarity 0.1"):
        near_duplicates.choose_banding(0.1, hashes=8)
    with pytest.raises(ValueError, match=r"similarity=1.5 must lie in \(0, 1\]"):
        near_duplicates.choose_banding(1.5, hashes=8)


def test_bands_are_equal_where_their_places_are():
    banding = near_duplicates.Banding(bands=4, rows=3)
    signature = np.random.default_rng(0).integers(2, size=(60, 13)).astype(np.uint16)
    keys = near_duplicates.band_keys(signature, banding)
    for band in range(4):
        places = signature[:, band * 3 : band * 3 + 3]
        equal = (places[:, None] == places[None]).all(-1)
        assert np.array_equal(keys[:, band, None] == keys[None, :, band], equal)


def test_measured_misses_are_those_of_the_formula():
    """Pairs of similarity 1/2 (100 of 200 n-grams) under bands that miss many."""
    rng, banding = np.random.default_rng(1), near_duplicates.Banding(bands=6, rows=3)
    missed = 0
    rows = []
    for _ in range(400):
        ids = rng.integers(2**60, size=200).tolist()
        rows += [ids[:150], ids[50:]]
    keys = near_duplicates.band_keys(signatures(rows, 18), banding)
    missed = np.count_nonzero(~(keys[::2] == keys[1::2]).any(axis=1))
    law = banding.missed(0.5)
    assert abs(missed - 400 * law) <= 4 * np.sqrt(400 * law * (1 - law))


@pytest.mark.parametrize("at_once", [1, 7, 1000])
def test_groups_are_all_that_is_equal(monkeypatch, at_once):
    monkeypatch.setattr(near_duplicates, "_BLOCK", 11)
    rng = np.random.default_rng(2)
    keys = units.mix(rng.integers(40, size=100).astype(np.uint64))
    chosen = rng.random(100) < 0.8
    for mask in (None, chosen):
        found = {}
        for groups in near_duplicates.equal_groups(keys, chosen=mask, at_once=at_once):
            for row in range(len(groups)):
                assert groups[row].tolist() == sorted(groups[row].tolist())
                assert keys[groups[row][0]] not in found
                found[keys[groups[row][0]]] = groups[row].tolist()
        places = np.arange(100) if mask is None else np.flatnonzero(mask)
        expected = {key: places[keys[places] == key].tolist() for key in keys}
        assert found == {key: row for key, row in expected.items() if len(row) > 1}
    assert not list(near_duplicates.equal_groups(keys[:0], at_once=at_once))


@pytest.mark.parametrize("small", [1, 3, 64])
def test_candidates_connect_what_is_similar(monkeypatch, small):
    """All pairs of small groups; of great ones what connects the same texts where similarity is clear."""
    monkeypatch.setattr(near_duplicates, "SMALL", small)
    monkeypatch.setattr(near_duplicates, "_PAIRS", 5)
    rng = np.random.default_rng(3)
    rows = [[kind * 1000 + i for i in rng.permutation(100)[:95]] for kind in rng.integers(4, size=30)]
    signature = signatures(rows, 64)
    groups = Ragged.of(np.r_[0:2, 2:5, 5:30], np.array([2, 3, 25]))
    found = np.concatenate(list(near_duplicates.candidates(groups, signature, similarity=0.5)))
    pairs = {tuple(sorted(pair)) for pair in found.tolist()}
    expected = {
        (i, j)
        for row in range(3)
        for i, j in itertools.combinations(groups[row].tolist(), 2)
        if rows[i][0] // 1000 == rows[j][0] // 1000
    }
    if small == 64:
        assert pairs == expected and len(found) == len(pairs)
    assert pairs <= expected
    assert oracle.first_of_clusters(30, pairs) == oracle.first_of_clusters(30, expected)


def test_clusters_are_known_by_their_first_text():
    rng = np.random.default_rng(4)
    pairs = {tuple(sorted(pair)) for pair in rng.integers(40, size=(25, 2)).tolist() if pair[0] != pair[1]}
    clusters = near_duplicates.Clusters(np.arange(40))
    before = oracle.first_of_clusters(40, pairs)
    for i, j in sorted(pairs, reverse=True):
        joined = clusters.find(i) != clusters.find(j)
        assert clusters.join(i, j) == joined
    assert [clusters.find(i) for i in range(40)] == before
    deep = near_duplicates.Clusters(np.array([0, 0, 1, 2, 3, 5]))
    assert deep.flatten(1, 6).tolist() == [0, 0, 0, 0, 5]


def test_similar_texts_are_found_in_any_words():
    rng = np.random.default_rng(5)
    originals = [texts.words(rng, 100) for _ in range(30)]
    all_texts = originals + [texts.change(text, rng, 1) for text in originals]
    grams = units.ngrams(units.hash_units(all_texts), 5)
    signature = near_duplicates.signatures(grams, hashes=128)
    keys = near_duplicates.band_keys(signature, near_duplicates.choose_banding(0.8, hashes=128))
    pairs = set()
    for band in keys.T:
        for groups in near_duplicates.equal_groups(band, at_once=1000):
            for found in near_duplicates.candidates(groups, signature, similarity=0.7):
                pairs |= set(map(tuple, found.tolist()))
    assert pairs == oracle.similar_pairs(all_texts, n=5, similarity=0.8) == {(i, 30 + i) for i in range(30)}
