"""UL2's denoisers: their lengths, laws and modes, and the mixtures of them."""

import collections
import math
import pickle

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

seqio = pytest.importorskip("seqio")

from t2t import vocabulary as vocabularies  # noqa: E402
from t2t.data import corruption, denoisers, features, mixtures, pipeline, registry, ul2  # noqa: E402
from tests.data import toy  # noqa: E402
from tests.reference import corruption as oracle  # noqa: E402
from tests.shared_data import shared_data  # noqa: E402

BOTH = ("inputs", "targets")
BYTES = vocabularies.ByteVocabulary(sentinels=300, modes=True)
PLAIN = vocabularies.ByteVocabulary()
SPANS = ("r3_15", "r8_15", "x3_50", "x8_50", "x64_15", "x64_50")
MODES = {name: {"r": "[NLU]", "x": "[NLG]", "s": "[S2S]"}[name[0]] for name in (*SPANS, "s25", "s50")}


def bind(objective, vocabulary=BYTES, inputs=None, targets=None):
    lengths = {name: length for name, length in (("inputs", inputs), ("targets", targets)) if length}
    return objective.bind(lengths, toy.features(vocabulary, *BOTH))


def run(bound, tokens, index=0):
    return bound.example({"targets": np.asarray(tokens, np.int32)}, corruption.example_rng(0, 0, index))


def text(length):
    return np.arange(length) % 250 + 5


def test_the_denoisers_are_those_of_table_1():
    made = ul2.denoisers()
    assert {name: denoiser.mode for name, denoiser in made.items()} == MODES
    laws = {name: made[name].objective for name in SPANS}
    assert {name: (law.mean_noise_span_length, law.noise_density) for name, law in laws.items()} == {
        "r3_15": (3.0, 0.15), "r8_15": (8.0, 0.15), "x3_50": (3.0, 0.5), "x8_50": (8.0, 0.5), "x64_15": (64.0, 0.15),
        "x64_50": (64.0, 0.5),
    }  # fmt: skip
    assert [made[name].objective.noise_density for name in ("s25", "s50")] == [0.25, 0.5]


# Lengths: raw tokens that fill 512 inputs, and the targets of them, both with EOS.


@pytest.mark.parametrize(
    ("name", "raw", "targets"),
    [("r3_15", 568, 114), ("r8_15", 588, 100), ("x3_50", 766, 512), ("x8_50", 908, 512), ("x64_15", 600, 92),
     ("x64_50", 1006, 512)],
)  # fmt: skip
def test_published_lengths_without_a_mode(name, raw, targets):
    bound = bind(ul2.denoisers(mode_as=None)[name], BYTES, 512, 512)
    assert bound.raw_length == raw
    made = run(bound, text(raw))
    assert (len(made["inputs"]), len(made["targets"])) == (512, targets)


@pytest.mark.parametrize(
    ("name", "raw", "targets"),
    [("r3_15", 567, 114), ("r8_15", 587, 100), ("x3_50", 765, 510), ("x8_50", 906, 511), ("x64_15", 599, 92),
     ("x64_50", 1004, 511)],
)  # fmt: skip
def test_a_mode_takes_one_of_the_inputs(name, raw, targets):
    """511 positions are left, which 765 - 382 + 127 + 1 tokens fill for x3_50, for example."""
    bound = bind(ul2.denoisers()[name], BYTES, 512, 512)
    assert bound.raw_length == raw
    made = run(bound, text(raw))
    assert (len(made["inputs"]), len(made["targets"])) == (512, targets)


@pytest.mark.parametrize("name", ["s25", "s50"])
def test_a_prefix_may_be_nearly_all_of_the_text(name):
    assert bind(ul2.denoisers(mode_as=None)[name], BYTES, 512, 512).raw_length == 511
    assert bind(ul2.denoisers()[name], BYTES, 512, 512).raw_length == 510


@pytest.mark.parametrize(
    ("inputs", "mode_as", "needed"), [(512, None, 128), (1024, None, 256), (512, "token", 127), (1024, "token", 255)]
)
def test_too_few_sentinels_are_refused_and_the_number_is_said(inputs, mode_as, needed):
    objective = ul2.denoisers(mode_as=mode_as)["x3_50"]
    hundred = vocabularies.ByteVocabulary(modes=True)
    with pytest.raises(ValueError, match=rf"needs {needed} sentinels, but the vocabulary has 100.*overflow='merge'"):
        bind(objective, hundred, inputs, inputs)
    enough = vocabularies.ByteVocabulary(modes=True, sentinels=needed)
    bound = bind(objective, enough, inputs, inputs)
    made = run(bound, text(bound.raw_length))
    used = [token for token in made["inputs"] if token in enough.sentinels]
    assert used == list(enough.sentinels)
    bind(objective, BYTES, inputs, inputs)


def test_errors_of_the_objective_say_what_the_mode_takes():
    with pytest.raises(ValueError, match=r"length 511, need targets of length 510.*NLG\] takes 1 of 512 inputs\)"):
        bind(ul2.denoisers()["x3_50"], BYTES, 512, 400)
    with pytest.raises(ValueError, match=r"inputs of length 1 have no room beside the mode \[S2S\]"):
        bind(ul2.denoisers()["s25"], BYTES, 1, 512)


# Modes.


@hypothesis.given(
    hnp.arrays(np.int32, st.integers(0, 120), elements=st.integers(3, 258)),
    st.sampled_from([*MODES]),
    st.integers(0, 9),
)
def test_the_mode_comes_first_and_the_rest_is_the_text(tokens, name, index):
    made = run(bind(ul2.denoisers()[name]), tokens, index)
    inputs, targets = made["inputs"].tolist(), made["targets"].tolist()
    assert made["inputs"].dtype == np.int32
    assert inputs[0] == BYTES.modes[MODES[name]]
    assert not set(BYTES.modes.values()) & {*inputs[1:], *targets}
    assert inputs[-1] == targets[-1] == BYTES.eos_id
    if name in SPANS:
        back = oracle.invert_span_corruption(inputs[1:-1], targets[:-1], BYTES.sentinels)
    else:
        back = [*inputs[1:-1], *targets[:-1]]
        assert not set(BYTES.sentinels) & set(back)
    assert back == tokens.tolist()


def test_the_text_is_corrupted_as_without_a_mode():
    for name, denoiser in ul2.denoisers().items():
        made, bare = run(bind(denoiser), text(300), 4), run(bind(denoiser.objective), text(300), 4)
        np.testing.assert_array_equal(made["inputs"][1:], bare["inputs"], err_msg=name)
        np.testing.assert_array_equal(made["targets"], bare["targets"], err_msg=name)


@pytest.mark.parametrize(("name", "share"), [("s25", 0.25), ("s50", 0.5)])
def test_the_sequential_denoiser_hides_the_published_share_on_average(name, share):
    """The prefix of n tokens is uniform over its possible lengths: a deviation of 2 share n / sqrt(12)."""
    draws, length = 1000, 400
    bound = bind(ul2.denoisers()[name])
    sizes = [len(run(bound, text(length), index)["targets"]) - 1 for index in range(draws)]
    assert abs(np.mean(sizes) / length - share) < 4 * 2 * share / math.sqrt(12 * draws)
    assert min(sizes) == 1
    assert abs(max(sizes) / length - 2 * share) < 0.01


def test_modes_as_text_are_the_pieces_of_the_released_models():
    t5 = vocabularies.Vocabulary.load(shared_data("tokenizers", "t5", "spiece.model"))
    pieces = t5.pieces()
    expected = {"[NLU]": ["▁[", "N", "LU", "]"], "[NLG]": ["▁[", "NL", "G", "]"], "[S2S]": ["▁[", "S", "2", "S", "]"]}
    made = ul2.denoisers(mode_as="text", overflow="merge")
    for name in ("r3_15", "x3_50", "s25"):
        bound = bind(made[name], t5, 512, 512)
        mode = expected[MODES[name]]
        assert [pieces[i] for i in bound.corruption.mode_ids] == mode
        example = run(bound, np.full(bound.raw_length, 70))
        assert [pieces[i] for i in example["inputs"][: len(mode)]] == mode
        assert max(map(len, example.values())) <= 512


def test_modes_as_text_equal_those_of_seqio():
    path = str(shared_data("tokenizers", "t5", "spiece.model"))
    theirs = seqio.SentencePieceVocabulary(path, extra_ids=100)
    features_ = {name: seqio.Feature(theirs) for name in BOTH}
    bound = ul2.denoisers(mode_as="text")["r3_15"].bind({"inputs": 64, "targets": 64}, features_)
    assert list(bound.corruption.mode_ids) == theirs.encode("[NLU]") == [784, 567, 9138, 908]


def test_vocabularies_without_modes_are_refused_and_told_how():
    with pytest.raises(ValueError, match=r"\[NLU\] is no token of the vocabulary, which has no mode tokens: train one "
                       r"with t2t vocab train --modes --sentinels 300.* mode_as='text'"):  # fmt: skip
        bind(ul2.denoisers()["r3_15"], PLAIN, 64, 64)
    with pytest.raises(ValueError, match=r"which has the modes \[NLU\], \[NLG\], \[S2S\]"):
        bind(ul2.Denoiser(objective=denoisers.PrefixLM(), mode="[R]"), BYTES)
    words = toy.word_vocabulary("<pad>", "</s>", "<unk>", *toy.words(5), "<extra_id_0>")
    with pytest.raises(ValueError, match=r"cannot write the mode '\[NLU\]'"):
        bind(ul2.denoisers(mode_as="text")["r3_15"], words)
    made = run(bind(ul2.denoisers(mode_as="text")["s25"], PLAIN), text(9))
    assert made["inputs"][:5].tolist() == PLAIN.encode("[S2S]")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objective": denoisers.MaskedTokens(), "mode": "[NLU]"}, "must make inputs and targets"),
        ({"objective": denoisers.CausalLM(), "mode": "[NLU]"}, "must make inputs and targets"),
        ({"objective": denoisers.PrefixLM(feature="text"), "mode": "[NLU]"}, "which reads 'text'"),
        ({"objective": denoisers.PrefixLM(), "mode": " "}, "must be a name"),
    ],
)
def test_other_objectives_and_no_mode_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        ul2.Denoiser(**settings)


def test_masked_language_models_never_choose_a_mode():
    mask = bind(denoisers.MaskedTokens(rate=0.9))
    tokens = np.tile([70, BYTES.modes["[NLU]"], 71], 30)
    for index in range(20):
        made = run(mask, tokens, index)
        assert not made["weights"][:-1][1::3].any()
        assert not np.isin(made["inputs"][:-1][::3], [*BYTES.modes.values()]).any()


@pytest.mark.parametrize("name", SPANS)
def test_a_batch_equals_its_examples_also_in_other_processes(name):
    bound = pickle.loads(pickle.dumps(bind(ul2.denoisers(overflow="merge")[name], BYTES, 128, 128)))
    tokens = np.tile(text(bound.raw_length), (3, 1)).astype(np.int32)
    made = bound.batch(tokens, seed=0, epoch=0, indices=np.arange(3))
    for index in range(3):
        example = run(bound, tokens[index], index)
        for side in BOTH:
            np.testing.assert_array_equal(made[side][index], example[side])


# Mixtures.


def rows(split):
    del split
    return [{"text": f"Document {i} says that {i * i} is a square, and so on and on and on."} for i in range(60)]


@pytest.fixture(scope="module")
def names():
    names = ul2.add_ul2("ul2_toy", registry.TextSource(rows, splits=("train", "validation")))
    yield names
    for name in names:
        (seqio.MixtureRegistry if name in seqio.MixtureRegistry.names() else seqio.TaskRegistry).remove(name)


def test_a_task_for_each_denoiser_and_two_mixtures(names):
    assert names == (*(f"ul2_toy_ul2_{name}" for name in MODES), "ul2_toy_ul2", "ul2_toy_ul2_40_40_20")
    counts = dict.fromkeys(names, 10)
    equal, other = (mixtures.flat_rates(name, counts) for name in names[-2:])
    short = {name.removeprefix("ul2_toy_ul2_"): rate for name, rate in equal.items()}
    assert short == {name: pytest.approx(1 / 7) for name in (*SPANS, "s25")}
    short = {name.removeprefix("ul2_toy_ul2_"): rate for name, rate in other.items()}
    tenths = {"r3_15": 2, "r8_15": 2, "x3_50": 1, "x8_50": 1, "x64_15": 1, "x64_50": 1, "s25": 2}
    assert short == {name: pytest.approx(number / 10) for name, number in tenths.items()}
    assert set(ul2.mixture_rates(sequential="s50")["ul2"]) == {*SPANS, "s50"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mixture", "shares"), [("ul2_toy_ul2", (2 / 7, 4 / 7, 1 / 7)), ("ul2_toy_ul2_40_40_20", (0.4, 0.4, 0.2))]
)
def test_modes_are_drawn_at_their_rates(names, mixture, shares):
    converter = features.EncoderDecoderFeatures(lengths={"inputs": 40, "targets": 40}, pad_id=0, eos_id=1, start_id=0)
    stream = pipeline.load_stream(mixture, vocabulary=BYTES, converter=converter, seed=3)
    number = 1500
    made, cut = stream.read(range(number))
    counts = collections.Counter(int(example["inputs"][0]) for example in made)
    assert cut == 0
    for mode, share in zip(BYTES.modes.values(), shares, strict=True):
        assert abs(counts[mode] - number * share) < 4 * math.sqrt(number * share * (1 - share)), mode
    assert counts.total() == sum(counts[mode] for mode in BYTES.modes.values())


@pytest.mark.slow
def test_plain_seqio_gives_the_same(names):
    task = seqio.TaskRegistry.get("ul2_toy_ul2_x3_50")
    from t2t.data import vocabularies as seqio_vocabularies

    bound_task = seqio_vocabularies.bind_vocabulary(task, BYTES)
    lengths = {"inputs": 40, "targets": 40}
    example = next(bound_task.get_dataset(lengths, "train", shuffle=False, seed=1).as_numpy_iterator())
    assert example["inputs"][0] == BYTES.modes["[NLG]"]
    assert max(len(example[side]) for side in BOTH) <= 40
