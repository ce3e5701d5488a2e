import dataclasses
import math

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from t2t import vocabulary as vocabularies
from t2t.data import corruption, denoisers, t5_grid
from t2t.data.noise_patterns import Iid, Regular, Spans
from tests.data import toy
from tests.reference import corruption as span_oracle
from tests.reference import denoising as oracle
from tests.shared_data import shared_data

BOTH = ("inputs", "targets")
BYTES = vocabularies.ByteVocabulary()
SENTENCE = "Thank you for inviting me to your party last week ."
NAMES = {"<extra_id_0>": "<X>", "<extra_id_1>": "<Y>", "<extra_id_2>": "<Z>"}
ENGLISH = toy.word_vocabulary("<pad>", "</s>", "<unk>", *SENTENCE.split(), "apple", "fun", *reversed(NAMES))
OTHERS = ("iid_15_d_u", "iid_20_s_s", "iid_15_g_f", "iid_30_p_f", "iid_15_r_f", "iid_15_u_d", "iid_50_r50s50_f")
OTHERS += ("span_3_50_u_u", "span_2_30_d_d", "span_3_15_s_s", "span_3_15_m_f", "reg_3_15_u_u", "reg_1-5_25_d_d")


def bind(objective, vocabulary=BYTES, inputs=None, targets=None, add_eos=True):
    lengths = {name: length for name, length in (("inputs", inputs), ("targets", targets)) if length}
    return objective.bind(lengths, toy.features(vocabulary, *objective.makes, add_eos=add_eos))


def run(bound, tokens, index=0):
    return bound.example({"targets": np.asarray(tokens, np.int32)}, corruption.example_rng(0, 0, index))


def corrupted(objective, u, text=SENTENCE):
    """Inputs and targets of a text under given uniforms, as words."""
    made = objective.corrupt(np.array(ENGLISH.encode(text), np.int32), np.array(u), bind(objective, ENGLISH).sides)
    pieces = [NAMES.get(piece, piece) for piece in ENGLISH.pieces()]
    words = [" ".join(pieces[token] for token in made[side]) for side in BOTH]
    assert all(side.endswith(" </s>") for side in words)
    return tuple(side.removesuffix(" </s>") for side in words)


# Table 3 of the paper.

NOISE = [0.9, 0.9, 0.1, 0.1, 0.9, 0.9, 0.9, 0.9, 0.1, 0.9, 0.9]  # "for inviting" and "last"


def test_prefix_language_modelling():
    made = corrupted(t5_grid.t5_objective("prefix_lm"), [0.35])
    assert made == ("Thank you for inviting", "me to your party last week .")


def test_bert_style():
    ids = bind(denoisers.CausalLM(), ENGLISH).sides["targets"].text_ids.tolist()
    apple = (ids.index(ENGLISH.encode("apple")[0]) + 0.5) / len(ids)
    kinds = [0.5] * 8 + [0.05] + [0.5] * 2  # "last" becomes a random word
    made = corrupted(t5_grid.t5_objective("iid_15_r10s90_f"), [*NOISE, *kinds, *[apple] * 11])
    assert made == (
        "Thank you <X> <X> me to your party apple week .",
        SENTENCE,
    )  # the paper's <M> is T5's first sentinel


def test_deshuffling():
    # The printed row has "fun" in it, which the sentence lacks.
    text = "Thank you for inviting me to your fun party last week ."
    printed = "party me for your to . last fun you inviting week Thank"
    order = [printed.split().index(word) / 12 for word in text.split()]
    assert corrupted(t5_grid.t5_objective("all_permute"), [0.99] * 12 + order, text) == (printed, text)


def test_mass_style():
    made = corrupted(t5_grid.t5_objective("iid_15_m_f"), NOISE)
    assert made == ("Thank you <X> <X> me to your party <X> week .", SENTENCE)


def test_replaced_spans():
    made = corrupted(t5_grid.t5_objective("iid_15_u_u"), NOISE)
    assert made == ("Thank you <X> me to your party <Y> week .", "<X> for inviting <Y> last <Z>")


def test_dropped_tokens():
    assert corrupted(t5_grid.t5_objective("iid_15_d_d"), NOISE) == (
        "Thank you me to your party week .",
        "for inviting last",
    )


def test_random_spans():
    # Spans of T5's code end in noise; rotated they can be those that the paper shows.
    objective = denoisers.SpanCorruption(noise_density=0.55, mean_noise_span_length=3.0, random_roll=True)
    u = [0.9, 0.9, 0.1, 0.9, 0.9, 0.9, 0.9, 0.9, 0.1, 0.5, 0.85]  # 3 + 3 noise, 4 + 1 clean, rotated by 9
    assert corrupted(objective, u) == ("Thank you <X> to <Y> week .", "<X> for inviting me <Y> your party last <Z>")


# Every objective against the obvious version of itself.


def expected(objective, tokens, mask, side):
    """A side of the objective by the oracle; None where it is random."""
    kind = getattr(objective, side)
    if kind == "text":
        return tokens
    if kind == "mask" and not objective.random:
        return [BYTES.sentinels[0] if noise else token for token, noise in zip(tokens, mask, strict=True)]
    if kind in ("mask", "gather", "permute"):
        return None
    settings = {"mark": BYTES.sentinels[0], "sentinels": BYTES.sentinels}
    return oracle.without(tokens, mask, kind, noise=side == "inputs", **settings)


grid = st.sampled_from([name for name in (*t5_grid.T5_GRID, *OTHERS) if name not in ("lm", "prefix_lm")])


@hypothesis.given(grid, st.lists(st.sampled_from([0, 1, 2, 70, 71, 72, 73, 74, 75]), max_size=60), st.integers(0, 99))
def test_objectives_equal_their_oracle(name, tokens, index):
    objective = t5_grid.t5_objective(name)
    if isinstance(objective, denoisers.SpanCorruption):
        pattern = Spans(mean_length=objective.mean_noise_span_length)
        objective = t5_grid.Denoising(pattern=pattern, density=objective.noise_density)
    bound = bind(objective)
    number = objective.num_uniforms(len(tokens), bound.sides)
    u = corruption.example_rng(0, 0, index).random(number)[: objective.pattern.num_uniforms(len(tokens))]
    mask = objective.pattern.mask(u, length=len(tokens), density=objective.density).tolist()
    if not objective.pattern.is_exact:
        mask = [noise and token >= 3 for noise, token in zip(mask, tokens, strict=True)]
    made = run(bound, tokens, index)
    for side in BOTH:
        assert made[side].dtype == np.int32
        assert made[side][-1] == BYTES.eos_id
        wanted = expected(objective, tokens, mask, side)
        if wanted is not None:
            assert made[side][:-1].tolist() == wanted
        else:
            changed = made[side][:-1] != np.array(tokens)
            assert not (changed & ~np.array(mask, bool)).any()
            if objective.inputs == "mask":
                assert not np.isin(made[side][:-1][changed], BYTES.special_ids[:4]).any()


def recovered(objective, inputs, targets):
    """The text of an example without EOS; None where the objective loses the places of noise."""
    if getattr(objective, "targets", None) == "text":
        return targets.tolist()
    if isinstance(objective, denoisers.SpanCorruption) or (objective.inputs == objective.targets == "sentinels"):
        return span_oracle.invert_span_corruption(inputs, targets, BYTES.sentinels)
    if objective.inputs == objective.targets == "sentinel":
        return oracle.join_at_marks(inputs, targets, BYTES.sentinels[0])
    return None


@hypothesis.given(grid, st.integers(12, 120), st.integers(0, 50), st.booleans())
def test_full_texts_fit_and_come_back(name, length, index, add_eos):
    objective = dataclasses.replace(t5_grid.t5_objective(name), overflow="merge")
    bound = bind(objective, BYTES, length, length, add_eos=add_eos)
    text = np.resize(np.arange(70, 90), bound.raw_length)
    made = run(bound, text, index)
    assert all(len(made[side]) <= length for side in BOTH)
    inputs, targets = (made[side][: len(made[side]) - add_eos] for side in BOTH)
    back = recovered(objective, inputs, targets)
    if back is not None:
        assert back == text.tolist()
    else:  # what one side lacks the other has, in the order of the text
        parts = [[token for token in side.tolist() if token not in BYTES.sentinels] for side in (inputs, targets)]
        assert sorted(sum(parts, [])) == sorted(text.tolist())
        assert all(oracle.is_subsequence(part, text.tolist()) for part in parts)


def test_spans_are_those_of_span_corruption():
    pattern = t5_grid.Denoising(pattern=Spans(mean_length=3.0))
    ours, usual = bind(pattern, BYTES, 512, 114), bind(denoisers.SpanCorruption(), BYTES, 512, 114)
    assert ours.raw_length == usual.raw_length == 568
    text = np.resize(np.arange(70, 90), (4, 568))
    for side in BOTH:
        made = [bound.batch(text, seed=0, epoch=0, indices=np.arange(4))[side] for bound in (ours, usual)]
        np.testing.assert_array_equal(*made)


EQUAL = ("iid_15_r10s90_f", "iid_15_m_f", "iid_15_g_f", "all_permute", "span_2_30_d_d", "span_3_15_s_s")
UNEQUAL = ("iid_15_u_u", "iid_50_u_u", "iid_15_d_d", "iid_20_s_s", "iid_15_u_d", "reg_1-5_25_d_d")


@pytest.mark.parametrize("name", EQUAL + UNEQUAL)
def test_a_batch_equals_its_examples(name):
    bound = bind(t5_grid.t5_objective(name), BYTES, 64, 64)
    assert bound.corruption.keeps_lengths_equal == (name in EQUAL)
    text = np.resize(np.arange(70, 90), (5, 50)).astype(np.int32)
    batch = bound.batch(text, seed=0, epoch=0, indices=np.arange(5))
    for row in range(5):
        for side, values in run(bound, text[row], row).items():
            np.testing.assert_array_equal(batch[side][row], values)
            assert batch[side][row].dtype == np.int32


# T5's own numbers.

LENGTHS = {  # objective: targets for 512 inputs in T5's configurations, and our mean
    "iid_10_u_u": (103, 99),
    "iid_15_u_u": (192, 144),
    "iid_25_u_u": (256, 226),
    "iid_15_d_d": (104, 78),
    "iid_15_m_f": (512, 512),
    "all_permute": (512, 512),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_lengths_of_t5_hold(name):
    objective, (targets, mean) = t5_grid.t5_objective(name), LENGTHS[name]
    bound = bind(objective, BYTES, 512, targets)
    assert bound.raw_length == 511
    text = np.resize(np.arange(70, 90), 511)
    lengths = np.array([len(run(bound, text, index)["targets"]) for index in range(60)])
    assert lengths.max() <= targets
    open_ended = bind(objective, BYTES, 512, None)
    free = np.array([len(run(open_ended, text, index)["targets"]) for index in range(60)])
    assert abs(free.mean() - mean) <= 4 * free.std() / math.sqrt(60) + 1
    if name == "iid_10_u_u":  # T5 leaves little room: every third text would lose its last words there
        assert (free > targets).mean() > 0.2
        assert (lengths >= targets - 1).mean() > 0.2


def noise_mask(inputs, targets, sentinels):
    """Which tokens of the text are noise, told from both sides of an example without EOS."""
    outer, inner = (span_oracle._split(side, sentinels) for side in (inputs, targets))
    sides = [(False, outer), (True, inner)]
    if inner[0]:  # the text begins with noise
        sides.reverse()
    mask = [sides[0][0]] * len(sides[0][1][0])
    for k in range(1, max(len(outer), len(inner))):
        for is_noise, side in reversed(sides):
            mask += [is_noise] * (len(side[k]) if k < len(side) else 0)
    return np.array(mask)


def test_recorded_iid_denoising_of_t5_is_ours():
    data = np.load(shared_data("t5x_golden", "objective_iid_denoising_512_192.npz"))
    documents = np.load(shared_data("t5x_golden", "c4_500_docs_tokens.npz"))
    vocabulary = vocabularies.Vocabulary.load(shared_data("tokenizers", "t5", "spiece.model"))
    bound = bind(t5_grid.t5_objective("iid_15_u_u"), vocabulary, 512, 192)
    groups = np.add.reduceat(documents["lens"], range(0, 500, 128))
    assert int(data["total"]) == sum(math.ceil(tokens / bound.raw_length) for tokens in groups)
    compared = 0
    for i in range(40):
        inputs, targets = data[f"{i}_inputs"], data[f"{i}_targets"]
        text = np.array(span_oracle.invert_span_corruption(inputs[:-1], targets[:-1], vocabulary.sentinels), np.int32)
        noise = noise_mask(inputs[:-1], targets[:-1], vocabulary.sentinels)
        if (text[noise] == vocabulary.unk_id).any():  # is noise in T5 and never in ours
            continue
        made = bound.corruption.corrupt(text, np.where(noise, 0.0, 0.99), bound.sides)
        np.testing.assert_array_equal(made["inputs"], inputs)
        np.testing.assert_array_equal(made["targets"], targets)
        compared += 1
    assert compared > 20


# Refusals.


def test_more_spans_than_sentinels_are_refused_or_joined():
    objective = t5_grid.t5_objective("iid_50_u_u")
    with pytest.raises(ValueError, match=r"128 spans of 511 tokens on average.* vocabulary has 100.*--sentinels 172"):
        bind(objective, BYTES, 512, 512)
    merged = bind(dataclasses.replace(objective, overflow="merge"), BYTES, 512, 512)
    text = np.resize(np.arange(70, 90), 511)
    noise = []
    for index in range(40):
        made = run(merged, text, index)
        back = span_oracle.invert_span_corruption(made["inputs"][:-1], made["targets"][:-1], BYTES.sentinels)
        np.testing.assert_array_equal(back, text)
        noise.append(np.isin(made["targets"][:-1], BYTES.sentinels, invert=True).sum())
    assert abs(sum(noise) - 0.5 * 511 * 40) < 4 * math.sqrt(511 * 40) / 2
    with pytest.raises(ValueError, match="each with a sentinel of its own"):
        bind(t5_grid.Denoising(pattern=Spans(), density=0.5), BYTES, 512, 512)
    with pytest.raises(ValueError, match="the vocabulary has 0"):
        bind(objective, vocabularies.ByteVocabulary(sentinels=0), 64, 64)
    with pytest.raises(ValueError, match="511 tokens on average"):
        run(bind(objective), text)


def test_targets_too_short_on_average_are_refused():
    with pytest.raises(ValueError, match=r"targets length 114 is too short: 511 raw tokens.* length 144 on average"):
        bind(t5_grid.t5_objective("iid_15_u_u"), BYTES, 512, 114)
    assert bind(t5_grid.t5_objective("iid_15_m_f"), BYTES, 512, 114).raw_length == 113
    with pytest.raises(ValueError, match="no room"):
        bind(t5_grid.t5_objective("iid_15_m_f"), BYTES, 1, 8)


def test_marks_are_the_first_sentinel_or_the_mask():
    objective = t5_grid.t5_objective("iid_50_m_f")
    for vocabulary, mark in ((BYTES, 359), (vocabularies.ByteVocabulary(sentinels=0), 259)):
        assert set(run(bind(objective, vocabulary), [70] * 30)["inputs"].tolist()) == {70, mark, 1}
    with pytest.raises(ValueError, match="needs a vocabulary with sentinels or a mask"):
        bind(objective, vocabularies.ByteVocabulary(sentinels=0, mask=False))


def test_names_say_what_they_are():
    named = t5_grid.t5_objective
    assert named("lm") == denoisers.CausalLM()
    assert named("span_10_15_u_u") == denoisers.SpanCorruption(mean_noise_span_length=10.0)
    assert named("iid_25_u_u") == t5_grid.Denoising(density=0.25)
    assert named("iid_15_r10s90_f") == t5_grid.Denoising(inputs="mask", random=0.1, targets="text")
    assert named("iid_15_r_f") == t5_grid.Denoising(inputs="mask", random=1.0, targets="text")
    assert named("all_permute") == t5_grid.Denoising(density=1.0, inputs="permute", targets="text")
    assert named("reg_3_15_s_d") == t5_grid.Denoising(
        pattern=Regular(shortest=3, longest=3), inputs="sentinel", targets="drop"
    )
    assert named("reg_1-5_50_g_s") == t5_grid.Denoising(
        pattern=Regular(shortest=1, longest=5), density=0.5, inputs="gather", targets="sentinel"
    )
    assert named("span_2_30_d_u") == t5_grid.Denoising(
        pattern=Spans(mean_length=2.0), density=0.3, inputs="drop", targets="sentinels"
    )
    assert all(named(name) for name in t5_grid.T5_GRID)


@pytest.mark.parametrize("name", ["iid_5_u_u", "iid_00_u_u", "iid_15_x_u", "span_15_u_u", "iid_15_r20s90_f", "t5", ""])
def test_other_names_are_refused(name):
    with pytest.raises(ValueError, match="no objective of T5's grid"):
        t5_grid.t5_objective(name)


def test_meaningless_settings_are_refused():
    for wrong in ({"density": 0.0}, {"density": 1.5}, {"density": 1.0, "pattern": Spans()}, {"random": 1.5}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            t5_grid.Denoising(**wrong)
    assert t5_grid.Denoising(density=1.0, pattern=Iid())
