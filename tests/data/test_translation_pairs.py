import logging

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from t2t import heads
from t2t.data import translation_pairs
from t2t.data.features import EncoderFeatures
from t2t.data.host_tensorflow import tf
from t2t.data.preprocessors import MaskedTokens
from t2t.data.translation_pairs import Language, TranslationPairs, fit_translations, join_translations
from t2t.errors import UsageError
from t2t.families import xlm
from t2t.models.base import Network
from t2t.objectives.masked import MaskedLanguageModeling
from tests.data import toy
from tests.models import tiny

WORDS = toy.word_vocabulary("<pad>", "</s>", "<mask>", "<unk>", *toy.words(60))
FEATURES = toy.features(WORDS, "inputs", "targets", add_eos=False)
END = 1
LENGTHS = {"inputs": 12, "targets": 12}

RECORDS = {
    "source": ["w0 w1 w2", "w3", "w4 w5 w6 w7 w8 w9 w10", ""],
    "target": ["w20 w21", "w22 w23", "w24 w25", "w26"],
    "languages": [["en", "fr"], ["de", "en"], ["fr", "de"], ["en", "de"]],
}
NAMES = ("en", "fr", "de")


def read(preprocessor, lengths=LENGTHS, features=FEATURES, **changes):
    dataset = tf.data.Dataset.from_tensor_slices({**RECORDS, **changes})
    return list(preprocessor(dataset, lengths, features).as_numpy_iterator())


def test_pairs_by_hand(caplog):
    with caplog.at_level(logging.WARNING, logger=translation_pairs.__name__):
        first, second, third = read(TranslationPairs(languages=NAMES))
    assert "1 pairs of translations are cut so far: beyond 8" in caplog.text
    assert first["targets"].tolist() == [END, 4, 5, 6, END, END, 24, 25, END]
    assert first["positions"].tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 3]
    assert first["language_ids"].tolist() == [0] * 5 + [1] * 4
    assert second["targets"].tolist() == [END, 7, END, END, 26, 27, END]
    assert second["language_ids"].tolist() == [2] * 3 + [0] * 4
    # 12 tokens have room for 8 of text: the longer one is cut.
    assert third["targets"].tolist() == [END, 8, 9, 10, 11, 12, 13, END, END, 28, 29, END]
    assert third["positions"].tolist() == [*range(8), *range(4)]
    assert {values.dtype for values in first.values()} == {np.dtype(np.int32)}


@pytest.mark.slow
def test_languages_as_ids_in_the_record_or_the_same_for_all():
    ids = read(TranslationPairs(), languages=[[0, 4], [4, 0], [1, 1], [2, 3]])
    assert [sorted(set(row["language_ids"].tolist())) for row in ids] == [[0, 4], [0, 4], [1]]
    fixed = read(TranslationPairs(pair=(3, 1)), lengths=None)  # of any length
    assert [len(row["targets"]) for row in fixed] == [9, 7, 13]
    assert all(set(row["language_ids"].tolist()) == {1, 3} for row in fixed)


def test_pairs_that_are_too_long_can_be_left_out_and_all_is_counted(caplog):
    with caplog.at_level(logging.WARNING, logger=translation_pairs.__name__):
        assert len(read(TranslationPairs(languages=NAMES, overlong="skip"))) == 2
    assert "2 pairs of translations are left out so far" in caplog.text


@hypothesis.given(st.integers(1, 20), st.integers(1, 20), st.integers(2, 25))
def test_the_longer_side_is_cut(source, target, room):
    kept = fit_translations(source, target, room=room)
    assert sum(kept) == min(source + target, room)
    assert min(kept) >= min(source, target, room // 2)
    assert kept[0] <= source and kept[1] <= target


@hypothesis.given(
    st.lists(st.tuples(st.lists(st.integers(5, 9), max_size=6), st.lists(st.integers(5, 9), max_size=6)), max_size=5)
)
def test_joined_pairs_hold_both_texts(pairs):
    made = join_translations(pairs, languages=[(0, 1)] * len(pairs), boundary_id=END)
    ends = np.cumsum(made.lengths)[:-1]
    rows = zip(*(np.split(part, ends) for part in made[:3]), pairs, strict=True) if pairs else ()
    for tokens, positions, languages, (source, target) in rows:
        assert tokens.tolist() == [END, *source, END, END, *target, END]
        assert positions.tolist() == [*range(len(source) + 2), *range(len(target) + 2)]
        assert languages.tolist() == [0] * (len(source) + 2) + [1] * (len(target) + 2)


def test_masked_pairs_become_batches_with_positions_and_languages():
    """Words of both languages are predicted, boundaries never."""
    joined = join_translations([([4, 5, 6], [24, 25])], languages=[(0, 1)], boundary_id=END)
    row = dict(zip(("targets", "positions", "language_ids"), joined, strict=False))
    bound = MaskedTokens(rate=0.5).bind(LENGTHS, FEATURES)
    chosen = np.zeros(9, int)
    for index in range(200):
        made = bound.example(row, np.random.default_rng(index))
        chosen += made["weights"]
        assert made["positions"].tolist() == row["positions"].tolist()
    assert chosen[[0, 4, 5, 8]].tolist() == [0] * 4
    assert chosen[[1, 2, 3, 6, 7]].min() > 60
    converter = EncoderFeatures(lengths=LENGTHS, num_languages=3)
    batch = converter.convert([[made]])
    assert batch["encoder_positions"].tolist() == [[0, 1, 2, 3, 4, 0, 1, 2, 3, 0, 0, 0]]
    assert batch["encoder_language_ids"].tolist() == [[0] * 5 + [1] * 4 + [-1] * 3]
    assert batch["encoder_segment_ids"].tolist() == [[1] * 9 + [0] * 3]


def test_texts_of_one_language_say_which():
    rows = tf.data.Dataset.from_tensor_slices({"targets": [[5, 6], [7, 8]]})
    made = list(Language(id=2)(rows).as_numpy_iterator())
    assert [int(row["language_ids"]) for row in made] == [2, 2]
    example = {"inputs": np.array([5, 6]), "targets": np.array([5, 6]), **made[0]}
    batch = EncoderFeatures(lengths={"inputs": 3}, num_languages=3).convert([[example]])
    assert batch["encoder_language_ids"].tolist() == [[2, 2, -1]]


@pytest.mark.parametrize(
    ("preprocessor", "changes", "error", "message"),
    [
        (TranslationPairs(languages=("en", "fr")), {}, ValueError, r"languages \['de'\]"),
        (TranslationPairs(source="english"), {}, ValueError, r"lack \['english'\].*they have \['languages', 'source'"),
        (TranslationPairs(), {"lengths": {"inputs": 5}}, UsageError, "at least 6"),
        (TranslationPairs(), {"features": toy.features(WORDS, "targets")}, ValueError, "add_eos=False"),
        (
            TranslationPairs(),
            {"features": toy.features(toy.word_vocabulary("<pad>", "w0"), "targets", add_eos=False)},
            UsageError,
            "a token that ends a text",
        ),
    ],
)
def test_what_cannot_work_is_refused(preprocessor, changes, error, message):
    with pytest.raises((error, tf.errors.InvalidArgumentError, tf.errors.UnknownError), match=message):
        read(preprocessor, **changes)


@pytest.mark.slow
def test_xlm_reads_positions_and_languages_of_a_batch():
    model = xlm.with_head(
        xlm.xlm(num_layers=1, d_model=8, num_heads=2, vocab_size=64, num_languages=3, dropout=0.0), heads.MaskedLM()
    )
    network = Network(model)
    params = tiny.params(model)
    bound = MaskedTokens().bind(LENGTHS, FEATURES)
    made = [bound.example(row, np.random.default_rng(1)) for row in read(TranslationPairs(languages=NAMES))]
    batch = EncoderFeatures(lengths=LENGTHS, num_languages=3).convert([[made[0]], [made[1]], []])
    objective = MaskedLanguageModeling()

    def loss(batch):
        terms, _, _ = objective.loss({"model": network}, {"model": params}, batch, key=None, carry=())
        return float(terms["cross_entropy"].sum)

    usual = loss(batch)
    assert np.isfinite(usual) and usual > 0
    for name in ("encoder_positions", "encoder_language_ids"):
        assert loss({key: value for key, value in batch.items() if key != name}) != pytest.approx(usual)
