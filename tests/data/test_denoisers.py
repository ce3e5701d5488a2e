import math

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from t2t import vocabulary as vocabularies
from t2t.data import corruption, denoisers
from tests.data import toy
from tests.reference import corruption as oracle
from tests.shared_data import shared_data

BOTH = ("inputs", "targets")
BYTES = vocabularies.ByteVocabulary()


def bind(objective, vocabulary, inputs=None, targets=None, add_eos=True):
    lengths = {name: length for name, length in (("inputs", inputs), ("targets", targets)) if length}
    return objective.bind(lengths, toy.features(vocabulary, *BOTH, add_eos=add_eos))


def run(bound, tokens, *key):
    return bound.example({"targets": np.asarray(tokens, np.int32)}, corruption.example_rng(*(key or (0, 0, 0))))


def golden(name):
    """The recorded examples of an objective of t5, and how many there are in all."""
    data = np.load(shared_data("t5x_golden", f"objective_{name}.npz"))
    sides = [side for side in BOTH if f"0_{side}" in data]
    return [{side: data[f"{i}_{side}"] for side in sides} for i in range(40)], int(data["total"])


def c4_documents():
    data = np.load(shared_data("t5x_golden", "c4_500_docs_tokens.npz"))
    return np.split(data["flat"], np.cumsum(data["lens"])[:-1])


def t5_vocabulary():
    return vocabularies.Vocabulary.load(shared_data("tokenizers", "t5", "spiece.model"))


# Span corruption.


def test_published_lengths_hold_exactly():
    for inputs, targets, raw in ((512, 114, 568), (1024, 229, 1137), (128, 29, 141)):
        bound = bind(denoisers.SpanCorruption(), BYTES, inputs, targets)
        assert bound.raw_length == raw
        made = run(bound, np.arange(raw) % 200 + 3)
        assert (len(made["inputs"]), len(made["targets"])) == (inputs, targets)


def test_recorded_examples_of_t5_have_our_shape_and_come_back():
    examples, total = golden("span_corruption_512_114")
    bound = bind(denoisers.SpanCorruption(), t5_vocabulary(), 512, 114)
    sentinels, eos = bound.sides["inputs"].sentinels, 1
    text = np.concatenate(c4_documents()[:128])
    groups = [sum(map(len, c4_documents()[i : i + 128])) for i in range(0, 500, 128)]
    assert total == sum(math.ceil(tokens / bound.raw_length) for tokens in groups)
    for i, example in enumerate(examples):
        raw = text[i * 568 : (i + 1) * 568]
        ours = run(bound, raw, 0, 0, i)
        for side in BOTH:
            assert ours[side].shape == example[side].shape
            assert ours[side][-1] == example[side][-1] == eos
            used = [np.isin(made[side], sentinels).sum() for made in (ours, example)]
            assert used == [28, 28]
        for made in (ours, example):
            back = oracle.invert_span_corruption(made["inputs"][:-1], made["targets"][:-1], sentinels)
            np.testing.assert_array_equal(back, raw)


@hypothesis.given(
    hnp.arrays(np.int32, st.integers(0, 150), elements=st.integers(0, 258)),
    st.sampled_from([0.05, 0.15, 0.3, 0.5, 0.8]),
    st.sampled_from([1.0, 2.0, 3.0, 8.0]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 99),
)
def test_inputs_and_targets_recombine_to_any_text(tokens, density, mean, roll, final, index):
    objective = denoisers.SpanCorruption(
        noise_density=density, mean_noise_span_length=mean, random_roll=roll, final_sentinel=final
    )
    bound = bind(objective, BYTES)
    made = run(bound, tokens, 0, 0, index)
    assert all(made[side].dtype == np.int32 and made[side][-1] == BYTES.eos_id for side in BOTH)
    back = oracle.invert_span_corruption(made["inputs"][:-1], made["targets"][:-1], BYTES.sentinels)
    np.testing.assert_array_equal(back, tokens)


@hypothesis.given(
    st.integers(8, 200),
    st.sampled_from([0.1, 0.15, 0.3, 0.5]),
    st.sampled_from([2.0, 3.0, 8.0]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_full_examples_never_exceed_their_lengths(length, density, mean, roll, final, add_eos):
    objective = denoisers.SpanCorruption(
        noise_density=density, mean_noise_span_length=mean, random_roll=roll, final_sentinel=final
    )
    bound = bind(objective, BYTES, length, None, add_eos=add_eos)
    for index in range(4):
        made = run(bound, np.full(bound.raw_length, 70), 0, 0, index)
        assert length - 2 * roll - 1 <= len(made["inputs"]) <= length


def test_two_spans_by_hand():
    vocabulary = toy.word_vocabulary(
        "<pad>", "</s>", "<unk>", *toy.words(997), *(f"<extra_id_{k}>" for k in range(99, -1, -1))
    )
    bound = bind(denoisers.SpanCorruption(noise_density=0.4, mean_noise_span_length=2.0), vocabulary)
    made = run(bound, np.arange(10, 20))
    inputs, targets = made["inputs"].tolist(), made["targets"].tolist()
    assert [token for token in inputs if token >= 1000] == [1099, 1098]
    assert [token for token in targets if token >= 1000] == [1099, 1098]
    assert targets[0] == 1099
    assert inputs[-1] == targets[-1] == 1


def test_sentinels_are_those_of_the_vocabulary_wherever_they_stand():
    vocabulary = toy.word_vocabulary("<extra_id_1>", "<pad>", "</s>", *toy.words(20), "<extra_id_0>", "later", "still")
    bound = bind(denoisers.SpanCorruption(noise_density=0.4, mean_noise_span_length=2.0), vocabulary)
    targets = run(bound, np.arange(5, 15))["targets"].tolist()
    assert [token for token in targets if token in (0, 23)] == [23, 0]
    assert targets[-1] == 2


def test_final_sentinel():
    bound = bind(denoisers.SpanCorruption(final_sentinel=True), BYTES, 512, 115)
    made = run(bound, np.full(568, 70))
    assert made["targets"].tolist()[-2:] == [BYTES.sentinels[28], BYTES.eos_id]
    assert len(made["targets"]) == 115


def test_targets_end_in_one_final_sentinel_wherever_the_noise_ends():
    bound = bind(denoisers.SpanCorruption(final_sentinel=True, random_roll=True, noise_density=0.4), BYTES)
    ends = set()
    for index in range(30):
        made = run(bound, np.full(20, 70), 0, 0, index)
        *_, before, last, eos = made["targets"].tolist()
        assert (eos, before) == (BYTES.eos_id, 70)
        assert last in BYTES.sentinels
        ends.add(made["inputs"][-2] == 70)
    assert ends == {False, True}


def test_more_spans_than_sentinels_are_refused():
    objective = denoisers.SpanCorruption(noise_density=0.5, mean_noise_span_length=3.0)
    with pytest.raises(ValueError, match=r"128 sentinels, but the vocabulary has 100: take .* at least 3.83"):
        bind(objective, BYTES, 512, 512)
    with pytest.raises(ValueError, match="114 sentinels"):
        bind(denoisers.SpanCorruption(), BYTES, 2048, 456)
    with pytest.raises(ValueError, match="but the vocabulary has 0"):
        bind(denoisers.SpanCorruption(), vocabularies.ByteVocabulary(sentinels=0), 64, 64)
    with pytest.raises(ValueError, match="128 sentinels"):
        run(bind(objective, BYTES), np.full(766, 70))


@hypothesis.given(
    hnp.arrays(np.int32, st.integers(0, 150), elements=st.integers(3, 258)),
    st.integers(2, 9),
    st.sampled_from([0.15, 0.3, 0.5, 0.8]),
    st.sampled_from([1.0, 3.0]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 99),
)
def test_joined_spans_recombine_to_any_text_with_the_sentinels_there_are(
    tokens, number, density, mean, roll, final, index
):
    vocabulary = vocabularies.ByteVocabulary(sentinels=number, mask=False)
    law = {"noise_density": density, "mean_noise_span_length": mean, "random_roll": roll}
    bound = bind(denoisers.SpanCorruption(**law, final_sentinel=final, overflow="merge"), vocabulary)
    made = run(bound, tokens, 0, 0, index)
    assert all(made[side].max() < vocabulary.size for side in BOTH)
    back = oracle.invert_span_corruption(made["inputs"][:-1], made["targets"][:-1], vocabulary.sentinels)
    np.testing.assert_array_equal(back, tokens)
    enough = run(bind(denoisers.SpanCorruption(**law, final_sentinel=final), BYTES), tokens, 0, 0, index)
    noise, as_before = (np.count_nonzero(example["targets"] < 259) for example in (made, enough))
    assert noise == as_before
    used = np.concatenate([*enough.values()])
    if not np.isin(used, BYTES.sentinels[number:]).any() and not final:
        same = dict(zip(vocabulary.sentinels, BYTES.sentinels, strict=False))
        for side in BOTH:
            assert [same.get(token, token) for token in made[side].tolist()] == enough[side].tolist()


def test_joined_spans_fill_the_lengths():
    """100 spans and EOS leave 411 of 512 inputs for clean tokens, and 411 of 512 targets for noise."""
    bound = bind(denoisers.SpanCorruption(noise_density=0.5, overflow="merge"), BYTES, 512, 512)
    assert bound.raw_length == 822
    made = bound.batch(np.full((5, 822), 70), seed=0, epoch=0, indices=np.arange(5))
    assert (made["inputs"].shape, made["targets"].shape) == ((5, 512), (5, 512))
    for side in BOTH:
        assert (np.isin(made[side], BYTES.sentinels).sum(axis=1) == 100).all()
    unchanged = bind(denoisers.SpanCorruption(overflow="merge"), BYTES, 512, 114)
    assert unchanged.raw_length == 568


@hypothesis.given(st.integers(8, 200), st.integers(2, 20), st.sampled_from([0.15, 0.5]), st.booleans(), st.booleans())
def test_joined_spans_never_exceed_their_lengths(length, number, density, roll, final):
    vocabulary = vocabularies.ByteVocabulary(sentinels=number)
    objective = denoisers.SpanCorruption(
        noise_density=density, random_roll=roll, final_sentinel=final, overflow="merge"
    )
    bound = bind(objective, vocabulary, length, 2 * length)
    for index in range(4):
        made = run(bound, np.full(bound.raw_length, 70), 0, 0, index)
        assert length - 2 * roll - 2 <= len(made["inputs"]) <= length
        assert len(made["targets"]) <= 2 * length


def test_joining_needs_a_sentinel():
    with pytest.raises(ValueError, match="but the vocabulary has 0"):
        bind(denoisers.SpanCorruption(overflow="merge"), vocabularies.ByteVocabulary(sentinels=0), 64, 64)
    with pytest.raises((ValueError, TypeError), match="join"):
        denoisers.SpanCorruption(overflow="join")


def test_a_recorded_objective_that_ran_out_of_sentinels_comes_back():
    """T5 went on below its 100 sentinels, into ordinary pieces."""
    examples, _ = golden("ul2_span_mu3_r0.5")
    sentinels = list(range(32099, 32099 - 128, -1))
    text = np.concatenate(c4_documents()[:128])
    for i, example in enumerate(examples):
        raw = text[766 * i : 766 * (i + 1)]
        back = oracle.invert_span_corruption(example["inputs"][:-1], example["targets"][:-1], sentinels)
        np.testing.assert_array_equal(back, raw)


def test_recorded_iid_denoising_of_t5_comes_back():
    examples, _ = golden("iid_denoising_512_192")
    sentinels = list(range(32099, 31999, -1))
    text = np.concatenate(c4_documents()[:128])
    backs = [oracle.invert_span_corruption(e["inputs"][:-1], e["targets"][:-1], sentinels) for e in examples]
    back = np.concatenate(backs)
    np.testing.assert_array_equal(back, text[: len(back)])
    noise = sum(np.isin(e["targets"][:-1], sentinels, invert=True).sum() for e in examples)
    assert abs(noise - 0.15 * len(back)) < 4 * math.sqrt(0.15 * 0.85 * len(back))


def test_short_targets_are_refused():
    with pytest.raises(ValueError, match=r"targets length 113 is too short: 568 raw tokens.*length 512.*length 114"):
        bind(denoisers.SpanCorruption(), BYTES, 512, 113)


def test_long_examples_are_refused_and_both_lengths_named():
    with pytest.raises(ValueError, match=r"600 raw tokens .* at most 568 into inputs 512, targets 114"):
        run(bind(denoisers.SpanCorruption(), BYTES, 512, 114), np.full(600, 70))
    short = run(bind(denoisers.SpanCorruption(), BYTES, 64, 64), np.full(10, 70))
    assert (len(short["inputs"]), len(short["targets"])) == (8 + 1 + 1, 2 + 1 + 1)


@pytest.mark.parametrize(
    "field",
    [
        {"noise_density": 0.0}, {"noise_density": 1.0},
        {"mean_noise_span_length": 0.5}, {"mean_noise_span_length": math.nan},
    ],
)  # fmt: skip
def test_meaningless_spans_are_refused(field):
    with pytest.raises(ValueError, match=next(iter(field))):
        denoisers.SpanCorruption(**field)


# Language models.


def test_causal_targets_end_in_eos():
    bound = bind(denoisers.CausalLM(), BYTES, None, 6)
    assert bound.raw_length == 5
    assert run(bound, [5, 6, 7])["targets"].tolist() == [5, 6, 7, 1]
    whole = denoisers.CausalLM().bind({"targets": 6}, toy.features(BYTES, "targets", add_eos=False))
    assert whole.raw_length == 6


def test_recorded_prefixes_of_t5_come_back_and_ours_follow_their_law():
    examples, _ = golden("prefix_lm_512_512")
    bound = bind(denoisers.PrefixLM(), t5_vocabulary(), 512, 512)
    assert bound.raw_length == 511
    documents = iter(c4_documents())
    rest = next(documents)
    places = {"recorded": [], "ours": []}  # of the end of the prefix among its possible ones, in (0, 1)
    for i, example in enumerate(examples):
        rest = rest if len(rest) else next(documents)
        raw, rest = rest[:511], rest[511:]
        for whose, made in (("recorded", example), ("ours", run(bound, raw, 0, 0, i))):
            back = np.concatenate([made["inputs"][:-1], made["targets"][:-1]])
            np.testing.assert_array_equal(back, raw)
            assert all(1 <= len(made[side][:-1]) < len(raw) and made[side][-1] == 1 for side in BOTH)
            places[whose].append((len(made["inputs"]) - 1.5) / (len(raw) - 1))
    for found in places.values():  # uniform: mean 1/2, variance 1/12
        assert abs(np.mean(found) - 0.5) < 4 * math.sqrt(1 / 12 / len(found))
        assert stats.kstest(found, "uniform").pvalue > 1e-4


def test_prefixes_are_split_one_by_one():
    with pytest.raises(ValueError, match="one by one"):
        bind(denoisers.PrefixLM(), BYTES).batch(np.full((2, 9), 70), seed=0, epoch=0, indices=np.arange(2))


def test_lengths_without_room_are_refused():
    with pytest.raises(ValueError, match="no room"):
        bind(denoisers.PrefixLM(), BYTES, 1, 8)
