"""Permutation language modelling as a corruption: `t2t.data.permutation_lm`."""

import dataclasses

import hypothesis
import numpy as np
import pytest
import seqio
from hypothesis import strategies as st

from t2t.data import corruption, permutation, registry
from t2t.data.permutation_lm import PermutationLM
from t2t.data.preprocessors import Chunk
from t2t.data.vocabularies import bind_vocabulary
from t2t.vocabulary import ByteVocabulary
from tests.data import toy

VOCABULARY = toy.word_vocabulary("[PAD]", "[UNK]", "[CLS]", "[SEP]", *toy.words(60))
CLS, SEP, FIRST = 2, 3, 4
few = hypothesis.settings(max_examples=15)


def bound(lm: PermutationLM, length: int | None = None, *, add_eos: bool = True):
    lengths = None if length is None else {"inputs": length, "targets": length}
    return lm.bind(lengths, toy.features(VOCABULARY, "inputs", "targets", add_eos=add_eos))


def make(lm: PermutationLM, tokens, *, length: int | None = None, index: int = 0, epoch: int = 0):
    features = {"targets": np.asarray(tokens, np.int32)}
    return bound(lm, length).example(features, corruption.example_rng(0, epoch, index))


def text(number: int) -> np.ndarray:
    return np.arange(number, dtype=np.int32) % 60 + FIRST


def test_the_published_lengths():
    """85 of 512 tokens; 43 and 42 of two halves, of which the first reads nothing of the second."""
    lm = PermutationLM(reuse=0.5)
    assert (bound(lm, 512).raw_length, lm.step(bound(lm, 512).sides)) == (510, 256)
    made = make(lm, text(510), length=512)
    weights, order = made["weights"], made["order"]
    assert (weights.sum(), weights[:256].sum(), weights[256:].sum()) == (85, 43, 42)
    mask = permutation.permutation_mask(order, is_target=weights != 0)
    assert mask[:256, 256:].all()
    assert not mask[256:, :256].any()
    assert made["reuse"].tolist() == [256]


def test_the_text_ends_in_sep_and_cls_and_is_not_changed():
    made = make(PermutationLM(), text(28))
    np.testing.assert_array_equal(made["inputs"], [*text(28), SEP, CLS])
    np.testing.assert_array_equal(made["targets"], made["inputs"])
    np.testing.assert_array_equal(made["token_types"], [0] * 29 + [2])
    assert set(made) == {"inputs", "targets", "weights", "order", "token_types"}
    assert {value.dtype for value in made.values()} == {np.dtype(np.int32)}
    assert made["weights"].sum() == 5
    plain = bound(PermutationLM(), add_eos=False)
    found = plain.example({"targets": text(9)}, corruption.example_rng(0, 0, 0))
    np.testing.assert_array_equal(found["inputs"], text(9))
    assert not found["token_types"].any()


@pytest.mark.parametrize("number", [1, 2, 5, 7, 11])
def test_short_and_odd_texts(number):
    """Transformers' collator refuses texts of an odd length (huggingface/transformers#7341)."""
    for lm in (PermutationLM(), PermutationLM(block=3), PermutationLM(reuse=0.5, direction="backward")):
        made = make(lm, text(number), length=14)
        assert made["weights"].sum() == max(1, (number + 2) // 6)
        assert len(made["order"]) == number + 2


@few
@hypothesis.given(st.lists(st.integers(0, 63), max_size=40), st.integers(0, 50), st.booleans())
def test_special_tokens_are_never_predicted_and_the_targets_are_the_text(tokens, index, backward):
    made = make(PermutationLM(direction="backward" if backward else "forward"), tokens, index=index)
    special = made["inputs"] < FIRST
    assert not made["weights"][special].any()
    expected = min(max(1, (len(tokens) + 2) // 6), sum(token >= FIRST for token in tokens))
    assert made["weights"].sum() == expected
    assert made["targets"].tolist() == [*(tokens[::-1] if backward else tokens), SEP, CLS]
    assert made["reversed"].tolist() == [int(backward)]
    # Special tokens are ordered, all that is not predicted else is read by all.
    np.testing.assert_array_equal(made["order"] == -1, ~special & (made["weights"] == 0))
    ranks = made["order"][made["order"] >= 0]
    assert len(set(ranks.tolist())) == len(ranks)


def test_a_sixth_of_the_tokens_at_any_place():
    rows = 300
    tokens = np.broadcast_to(text(94), (rows, 94))
    made = bound(PermutationLM(), 96).batch(tokens, seed=0, epoch=0, indices=np.arange(rows))
    assert (made["weights"].sum(-1) == 16).all()
    share = made["weights"][:, :94].mean(0)
    assert share[12:-12].min() > 0.05
    assert share[12:-12].max() < 0.35
    assert not made["weights"][:, 94:].any()


def test_reversed_text_is_chosen_from_where_its_words_begin():
    """Words of three bytes and a space: forwards and backwards, spans begin at the space."""
    vocabulary = ByteVocabulary()
    features = toy.features(vocabulary, "inputs", "targets")
    tokens = np.array(vocabulary.encode(" abc" * 20), np.int32)
    for direction in ("forward", "backward"):
        lm = PermutationLM(direction=direction, unit="words", longest=1, rate=0.1)
        made = lm.bind({"inputs": 90, "targets": 90}, features).example(
            {"targets": tokens}, corruption.example_rng(0, 0, 0)
        )
        chosen = made["weights"][:80].reshape(20, 4)
        assert made["weights"].sum() == 8
        assert (chosen.all(-1) == chosen.any(-1)).all()


def test_a_batch_is_its_examples():
    tokens = np.random.default_rng(0).integers(0, 64, (5, 30)).astype(np.int32)
    for lm in (PermutationLM(), PermutationLM(reuse=0.4, block=5, direction="backward", unit="words")):
        fitted = bound(lm, 32)
        together = fitted.batch(tokens, seed=3, epoch=2, indices=np.arange(5))
        assert list(together) == list(fitted.names)
        for row, index in enumerate(range(5)):
            alone = fitted.example({"targets": tokens[row]}, corruption.example_rng(3, 2, index))
            for name in fitted.names:
                np.testing.assert_array_equal(together[name][row], alone[name], err_msg=name)


def test_every_epoch_has_an_order_of_its_own():
    lm = PermutationLM()
    first, again, other = (make(lm, text(60), epoch=epoch)["order"] for epoch in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert (make(lm, text(60), index=1)["order"] != first).any()


def test_in_plain_seqio_the_features_are_there():
    source = registry.TextSource(lambda split: [{"text": " ".join(toy.words(50))}] * 3, splits=("train",))
    task = registry.add_objective("toy_permutation", source, PermutationLM(reuse=0.5, direction="forward"))
    dataset = bind_vocabulary(task, VOCABULARY).get_dataset({"inputs": 24, "targets": 24}, shuffle=False, seed=0)
    rows = list(dataset.as_numpy_iterator())
    assert [len(row["inputs"]) for row in rows] == [24] * 6 + [20]
    assert {name for row in rows for name in row} == {
        "inputs", "targets", "weights", "order", "token_types", "reuse", "reversed"
    }  # fmt: skip
    assert [int(row["weights"].sum()) for row in rows] == [4] * 6 + [3]
    seqio.TaskRegistry.remove("toy_permutation")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": 0.0}, "rate=0.0 must lie strictly between 0 and 1"),
        ({"reuse": 1.0}, "reuse=1.0 must lie strictly"),
        ({"longest": 0}, "longest=0 must be at least 1"),
        ({"context": 0.5}, "context=0.5 must be at least 1"),
        ({"block": 0}, "block=0 must be at least 1"),
    ],
)
def test_settings_without_meaning_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        PermutationLM(**options)


def test_lengths_and_vocabularies_that_do_not_suit_are_refused():
    with pytest.raises(ValueError, match="leave no room for text"):
        bound(PermutationLM(), 2)
    with pytest.raises(ValueError, match="a part of them without text"):
        bound(PermutationLM(reuse=0.1), 5)
    with pytest.raises(ValueError, match="give sequence_length"):
        make(PermutationLM(reuse=0.5), text(9))
    foreign = {name: seqio.Feature(seqio.ByteVocabulary()) for name in ("inputs", "targets")}
    with pytest.raises(ValueError, match="cannot tell where words begin"):
        PermutationLM().bind({"inputs": 9, "targets": 9}, foreign)
    with pytest.raises(ValueError, match=r"31 raw tokens .* at most 30"):
        make(PermutationLM(), text(31), length=32)


def test_fewer_predictions_where_a_limit_says_so():
    assert make(PermutationLM(max_predictions=3), text(94))["weights"].sum() == 3
    assert dataclasses.replace(PermutationLM(), rate=0.3).rate == 0.3
    assert make(PermutationLM(rate=0.3), text(94))["weights"].sum() == 28
    assert Chunk(corruption=PermutationLM()).corruption == PermutationLM()
