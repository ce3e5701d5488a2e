import math

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from t2t import vocabulary as vocabularies
from t2t.data import bart, corruption, text_noise
from tests.data import toy
from tests.reference import denoising as oracle

BOTH = ("inputs", "targets")
BYTES = vocabularies.ByteVocabulary()
LETTERS = toy.word_vocabulary("<s>", "<pad>", "</s>", "<unk>", "A", "B", "C", "D", "E", ".", "<mask>")
TEXT = "A B C . D E ."


def bind(noise, vocabulary=LETTERS, inputs=None, targets=None, add_eos=True):
    lengths = {name: length for name, length in (("inputs", inputs), ("targets", targets)) if length}
    return noise.bind(lengths, toy.features(vocabulary, *BOTH, add_eos=add_eos))


def run(bound, tokens, index=0):
    return bound.example({"targets": np.asarray(tokens, np.int32)}, corruption.example_rng(0, 0, index))


def noised(noise, *uniforms):
    """TEXT under a noise whose first uniforms are given, with _ for the mask."""
    bound = bind(noise)
    tokens = np.array(LETTERS.encode(TEXT), np.int32)
    u = np.full(noise.num_uniforms(len(tokens), bound.sides), 0.5)
    given = np.concatenate([np.atleast_1d(part) for part in uniforms])
    u[: len(given)] = given
    made = noise.corrupt(tokens, u, bound.sides)
    assert made["targets"].tolist() == [*tokens, LETTERS.eos_id]
    assert made["inputs"][-1] == LETTERS.eos_id
    return " ".join(LETTERS.pieces()[token] for token in made["inputs"][:-1]).replace("<mask>", "_")


def smallest(number, *places):
    """Uniforms that choose these places, in this order."""
    u = np.full(number, 0.9)
    u[list(places)] = np.arange(len(places)) / 10
    return u


# The examples of the paper's figure 2.


def test_token_masking():
    assert noised(bart.TextNoise(rate=0.28, spans="tokens"), [0.0] * 2, smallest(7, 1, 4)) == "A _ C . _ E ."


def test_token_deletion():
    # The figure prints "A . C . E .", with a full stop that the text does not have there.
    noise = bart.TextNoise(rate=0.28, spans="tokens", replace_length=0)
    assert noised(noise, [0.0] * 2, smallest(7, 1, 4)) == "A C . E ."


def test_text_infilling():
    noise = bart.TextNoise(rate=0.28)
    draws = text_noise.num_poisson_draws(2, mean=3.0)
    lengths = [0.01, 0.3] + [0.5] * (draws - 2)  # a span without words, a span of two
    assert noised(noise, lengths, smallest(7, 1), smallest(7, 4)) == "A _ . D _ E ."


def test_sentence_permutation():
    noise = bart.TextNoise(rate=0.0, permute_sentences=1.0)
    assert noised(noise, [0.5] * 7, [0.9, 0.1]) == "D E . A B C ."


def test_document_rotation():
    assert noised(bart.TextNoise(rate=0.0, rotate=1.0), [0.0, 0.2]) == "C . D E . A B"


def test_noises_compose_in_the_order_of_the_code():
    noise = bart.TextNoise(rate=0.1, spans="tokens", permute_sentences=1.0, rotate=1.0)
    # D E . A B C . , then its second token masked, then begun at its fourth.
    assert noised(noise, [0.5] * 7, [0.9, 0.1] + [0.5] * 5, [0.0], smallest(7, 1), [0.0, 0.4]) == "A B C . D _ ."


def test_no_noise_is_an_autoencoder():
    made = run(bind(bart.TextNoise(rate=0.0), BYTES, 9, 9), [70, 71, 72])
    assert made["inputs"].tolist() == made["targets"].tolist() == [70, 71, 72, 1]


# Laws.


def many(noise, text, number=150, vocabulary=BYTES):
    bound = bind(noise, vocabulary)
    return [run(bound, text, index)["inputs"][:-1] for index in range(number)]


def test_the_budget_is_kept_in_words():
    text = BYTES.encode(" ".join(["word"] * 50))
    for made in many(bart.TextNoise(rate=0.3, spans="words", replace_length=0), text, 50):
        assert len(BYTES.decode(made).split()) == 35
    covered = []
    for made in many(bart.TextNoise(rate=0.3, replace_length=0), text, 60):
        left = made[made != BYTES.mask_id]
        assert BYTES.decode(left).split() == ["word"] * (len(BYTES.decode(left).split()))
        covered.append(50 - len(BYTES.decode(left).split()))
    assert max(covered) == 15  # fewer where spans merge or run into the end
    assert np.mean(covered) > 12


@pytest.mark.parametrize("mean", [3.0, 3.5])
def test_spans_without_words_are_inserted_as_often_as_poisson_says(mean):
    text = [70, *[35, 70] * 150]  # 151 words
    noise = bart.TextNoise(rate=0.3, poisson_mean=mean, replace_length=0)
    found = sum(np.count_nonzero(made == BYTES.mask_id) for made in many(noise, text))
    draws = text_noise.num_poisson_draws(text_noise.budget(0.3, 301), mean=mean)
    lengths = [
        text_noise.poisson_lengths(corruption.example_rng(0, 0, index).random(draws), mean=mean, words=46)
        for index in range(150)
    ]
    spans = np.concatenate(lengths)
    assert found == np.count_nonzero(spans == 0)
    empty = math.exp(-mean)
    assert abs(found - empty * len(spans)) < 4 * math.sqrt(len(spans) * empty * (1 - empty))


def test_a_fraction_of_the_masks_is_random_and_never_special():
    noise = bart.TextNoise(rate=0.5, spans="tokens", mask_random=0.1)
    made = np.array(many(noise, np.full(200, 70)))
    number, changed = made.size // 2, made[made != 70]
    masked = np.count_nonzero(changed == BYTES.mask_id)
    assert abs(masked - 0.9 * number) < 4 * math.sqrt(number * 0.09)
    drawn = set(changed[changed != BYTES.mask_id].tolist())
    assert not drawn & set(BYTES.special_ids)
    assert len(drawn) > 240


def test_rotation_happens_as_often_as_asked():
    text = np.arange(70, 80)
    starts = np.array([made[0] for made in many(bart.TextNoise(rate=0.0, rotate=0.25), text, 600)])
    assert abs((starts != 70).sum() - 150) < 4 * math.sqrt(600 * 0.25 * 0.75)


def test_inserted_masks_are_counted_by_the_text():
    for made in many(bart.TextNoise(rate=0.0, insert=0.15), np.full(30, 70), 20):
        assert np.count_nonzero(made == BYTES.mask_id) == 5
        assert np.count_nonzero(made == 70) == 30
    shortened = bart.TextNoise(rate=0.5, spans="tokens", replace_length=0, insert=0.15)
    for made in many(shortened, np.full(30, 70), 20):
        assert (np.count_nonzero(made == 70), np.count_nonzero(made == BYTES.mask_id)) == (15, 5)


# Texts, special tokens, lengths.


noises = st.builds(
    bart.TextNoise,
    rate=st.sampled_from([0.0, 0.15, 0.3, 1.0]),
    spans=st.sampled_from(["tokens", "words", "poisson"]),
    poisson_mean=st.sampled_from([1.0, 3.0, 3.5]),
    replace_length=st.sampled_from([-1, 0, 1]),
    permute_sentences=st.sampled_from([0.0, 0.5, 1.0]),
    insert=st.sampled_from([0.0, 0.1]),
)
# Letters, spaces, full stops, and special tokens: pad, eos, unk, the mask and a sentinel.
any_text = st.lists(st.sampled_from([0, 1, 2, 259, 300, 35, 35, 49, 70, 71, 72, 73]), max_size=60)


@hypothesis.given(noises, any_text, st.integers(0, 99))
def test_targets_are_the_text_and_special_tokens_stay(noise, tokens, index):
    made = run(bind(noise, BYTES), tokens, index)
    assert made["targets"].tolist() == [*tokens, BYTES.eos_id]
    assert all(made[side].dtype == np.int32 for side in BOTH)
    inputs = made["inputs"][:-1]
    special = [token for token in tokens if token in BYTES.special_ids and token != BYTES.mask_id]
    kept = [token for token in inputs.tolist() if token in BYTES.special_ids and token != BYTES.mask_id]
    assert sorted(kept) == sorted(special)
    assert np.count_nonzero(inputs == BYTES.mask_id) >= tokens.count(BYTES.mask_id)
    if not noise.permute_sentences:
        assert kept == special
        text = [token for token in inputs.tolist() if token != BYTES.mask_id]
        assert oracle.is_subsequence(text, tokens)


def test_sentences_stay_in_their_documents():
    stop = LETTERS.encode(".")[0]
    tokens = [4, stop, 5, stop, 2, 6, stop, 7, stop, 8, stop]
    bound = bind(bart.TextNoise(rate=0.0, permute_sentences=1.0))
    seen = set()
    for index in range(100):
        made = run(bound, tokens, index)["inputs"][:-1].tolist()
        assert made[4] == 2
        assert sorted(made[:4]) == sorted(tokens[:4])
        seen.add(tuple(made))
    assert len(seen) == 2 * 6


@hypothesis.given(noises, st.integers(60, 120), st.integers(60, 120))
def test_full_texts_never_exceed_their_lengths(noise, inputs, targets):
    bound = bind(noise, LETTERS, inputs, targets)
    text = np.resize([4, 5, 9, 6], bound.raw_length)
    assert bound.raw_length <= min(inputs, targets) - 2  # bos of the frame, and eos
    for index in range(2):
        made = run(bound, text, index)
        assert len(made["inputs"]) <= inputs - 1
        assert made["targets"].tolist() == [*text, LETTERS.eos_id]


def test_raw_lengths():
    assert bind(bart.TextNoise(), LETTERS, 512, 512).raw_length == 510
    assert bind(bart.TextNoise(), BYTES, 512, 512).raw_length == 511
    assert bind(bart.TextNoise(), BYTES, 512, 512, add_eos=False).raw_length == 512
    assert bind(bart.TextNoise(rate=0.0, insert=0.1), BYTES, 512, 512).raw_length == 464
    every = bind(bart.TextNoise(replace_length=-1), BYTES, 512, 512)
    assert 495 < every.raw_length < 505
    assert bind(bart.TextNoise()).raw_length is None


def test_room_for_spans_without_words_is_enough():
    noise = bart.TextNoise(replace_length=-1)
    bound, open_ended = bind(noise, BYTES, 512, 512), bind(noise, BYTES)
    text = np.resize([70, 71, 35], bound.raw_length)
    for index in range(40):
        np.testing.assert_array_equal(run(bound, text, index)["inputs"], run(open_ended, text, index)["inputs"])


# Refusals.


def test_noises_need_what_they_put_in():
    no_mask = vocabularies.ByteVocabulary(mask=False)
    with pytest.raises(ValueError, match="needs a vocabulary with a mask"):
        bind(bart.TextNoise(), no_mask)
    with pytest.raises(ValueError, match="needs a vocabulary with a mask"):
        bind(bart.TextNoise(rate=0.0, insert=0.1), no_mask)
    for noise in (bart.TextNoise(spans="tokens", replace_length=0), bart.TextNoise(rate=0.0, permute_sentences=1.0)):
        assert len(run(bind(noise, no_mask), [70, 71, 72])["inputs"])
    with pytest.raises(ValueError, match="marks '§' that end a sentence"):
        bind(bart.TextNoise(permute_sentences=1.0, sentence_marks="§"))


@pytest.mark.parametrize(
    "field",
    [
        {"rate": 1.1},
        {"mask_random": -0.1},
        {"permute_sentences": 2.0},
        {"rotate": -1.0},
        {"insert": -0.1},
        {"insert": math.nan},
        {"insert": math.inf},
        {"poisson_mean": 0.0},
        {"poisson_mean": math.nan},
        {"poisson_mean": 1e9},
        {"spans": "bytes"},
        {"replace_length": 2},
    ],
)
def test_meaningless_settings_are_refused(field):
    with pytest.raises((ValueError, Exception), match=next(iter(field))):
        bart.TextNoise(**field)


def test_texts_are_noised_one_by_one():
    bound = bind(bart.TextNoise(), BYTES)
    assert not bound.corruption.keeps_lengths_equal
    with pytest.raises(ValueError, match="one by one"):
        bound.batch(np.full((2, 9), 70), seed=0, epoch=0, indices=np.arange(2))


def test_lengths_without_room_are_refused():
    with pytest.raises(ValueError, match="no room"):
        bind(bart.TextNoise(), LETTERS, 2, 9)
