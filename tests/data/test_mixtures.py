import collections
import functools

import numpy as np
import pytest
import seqio

from t2t.data import examples, mixing, mixtures, pipeline, registry
from t2t.data.features import DecoderFeatures
from t2t.data.mixing import ExampleCount, by_exponent
from t2t.data.mixtures import flat_rates, leaf_tasks
from t2t.data.preprocessors import tokenize
from t2t.vocabulary import ByteVocabulary

COUNTS = {"mix_a": 8, "mix_b": 27, "mix_c": 64}


@pytest.fixture(scope="module", autouse=True)
def tasks():
    for name, count in COUNTS.items():
        source = registry.TextSource(
            lambda split, n=name, c=count: [{"targets": f"{n[-1]}{i}"} for i in range(c)], splits=["train"]
        )
        registry.add_task(
            name, source, output_features={"targets": registry.feature()}, preprocessors=[tokenize], metric_fns=[]
        )
    registry.add_mixture("mix_equal", {"mix_a": 1.0, "mix_b": 1.0})
    registry.add_mixture("mix_size", {"mix_a": ExampleCount(), "mix_c": ExampleCount()})
    registry.add_mixture("mix_soft", {name: ExampleCount(maximum=27, temperature=3.0) for name in COUNTS})
    registry.add_mixture("mix_nested", {"mix_equal": 3.0, "mix_size": 1.0, "mix_c": 4.0})
    theirs = functools.partial(seqio.mixing_rate_num_examples, maximum=27, temperature=3.0)
    registry.add_mixture("mix_theirs", dict.fromkeys(COUNTS, theirs))
    registry.add_mixture("mix_capped", dict.fromkeys(COUNTS, ExampleCount(maximum=20)))
    registry.add_mixture("mix_languages", dict.fromkeys(COUNTS, by_exponent(1 / 3)))
    registry.add_mixture("mix_of_mixtures", dict.fromkeys(["mix_size", "mix_b"], by_exponent(0.5)))
    yield
    for name in COUNTS:
        seqio.TaskRegistry.remove(name)
    for name in [name for name in seqio.MixtureRegistry.names() if name.startswith("mix_")]:
        seqio.MixtureRegistry.remove(name)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("mix_b", {"mix_b": 1.0}),
        ("mix_equal", {"mix_a": 0.5, "mix_b": 0.5}),
        ("mix_size", {"mix_a": 8 / 72, "mix_c": 64 / 72}),
        ("mix_soft", {"mix_a": 2 / 8, "mix_b": 3 / 8, "mix_c": 3 / 8}),
        ("mix_theirs", {"mix_a": 2 / 8, "mix_b": 3 / 8, "mix_c": 3 / 8}),
        (
            "mix_nested",
            {"mix_a": (3 * 0.5 + 8 / 72) / 8, "mix_b": 1.5 / 8, "mix_c": (4 + 64 / 72) / 8},
        ),
        ("mix_capped", {"mix_a": 8 / 48, "mix_b": 20 / 48, "mix_c": 20 / 48}),
        ("mix_languages", {"mix_a": 2 / 9, "mix_b": 3 / 9, "mix_c": 4 / 9}),
        (
            "mix_of_mixtures",
            {
                "mix_a": 8 / 72 * 72**0.5 / (72**0.5 + 27**0.5),
                "mix_b": 27**0.5 / (72**0.5 + 27**0.5),
                "mix_c": 64 / 72 * 72**0.5 / (72**0.5 + 27**0.5),
            },
        ),
        ({"mix_a": 2.0, "mix_b": 6.0, "mix_c": 0.0}, {"mix_a": 2.0, "mix_b": 6.0}),
        ({"mix_a": 1.0, "mix_equal": 2.0}, {"mix_a": 2.0, "mix_b": 1.0}),
    ],
)
def test_rates(spec, expected):
    assert flat_rates(spec, COUNTS) == pytest.approx(expected, rel=1e-12)


def test_flat_rates_equal_seqios():
    nested = seqio.MixtureRegistry.get("mix_nested")
    rates = flat_rates("mix_nested", COUNTS)
    for task in nested.tasks:
        assert rates[task.name] == pytest.approx(nested.get_rate(task) / nested.total_rate, rel=1e-12)


def test_leaf_tasks_come_once_by_name():
    assert [task.name for task in leaf_tasks("mix_nested")] == ["mix_a", "mix_b", "mix_c"]
    assert [task.name for task in leaf_tasks({"mix_c": 1.0, "mix_a": 1.0})] == ["mix_a", "mix_c"]
    assert [task.name for task in leaf_tasks(seqio.TaskRegistry.get("mix_b"))] == ["mix_b"]


def test_wrong_rates_are_refused():
    with pytest.raises(ValueError, match="at least 0.*'mix_a': -1.0"):
        flat_rates({"mix_a": -1.0, "mix_b": 2.0}, COUNTS)
    with pytest.raises(ValueError, match="not all 0"):
        flat_rates({"mix_a": 0.0}, COUNTS)
    with pytest.raises(ValueError, match="'empty' add up to 0"):
        flat_rates(seqio.Mixture("empty", [("mix_a", 0.0)]), COUNTS)
    with pytest.raises(ValueError, match="No task or mixture is called 'mix_d'"):
        leaf_tasks({"mix_d": 1.0})
    assert mixtures.flat_rates(seqio.Mixture("one", [("mix_a", 5.0)]), COUNTS) == {"mix_a": 1.0}


@functools.cache
def read(name):
    return examples.load_examples(name, "train", vocabulary=ByteVocabulary(), lengths={"targets": 8}, seed=0)


@pytest.mark.parametrize(
    "spec",
    ["mix_equal", "mix_size", "mix_capped", "mix_soft", "mix_languages", "mix_nested", "mix_of_mixtures",
     {"mix_a": 1.0, "mix_b": 0.5, "mix_languages": 2.5}],
)  # fmt: skip
def test_the_table_of_rates_holds_for_what_is_drawn(spec):
    """Each share as it is printed, within the rounding of the table and two examples of two windows."""
    rates = flat_rates(spec, COUNTS)
    stream = pipeline.Stream.of(
        [read(name) for name in rates],
        list(rates.values()),
        DecoderFeatures(lengths={"targets": 8}, start_id=0),
        seed=1,
    )
    number = 2 * mixing.WINDOW
    drawn = collections.Counter(stream.tasks[stream.order.locate(p).task].name for p in range(number))
    lines = [line.split() for line in mixtures.rate_table(spec, COUNTS).splitlines()[1:]]
    assert [(name, int(examples)) for name, examples, _, _ in lines] == [(name, COUNTS[name]) for name in rates]
    for name, _, _, share in lines:
        assert abs(float(share.removesuffix("%")) / 100 - drawn[name] / number) <= 0.00005 + 2 / number


def test_stream_reads_tasks_at_their_rates(caplog):
    converter = DecoderFeatures(lengths={"targets": 8}, start_id=0)
    with caplog.at_level("INFO"):
        stream = pipeline.load_stream("mix_equal", vocabulary=ByteVocabulary(), converter=converter, seed=0)
    assert "mix_b" in caplog.text
    batch = next(pipeline.TrainPipeline(stream, rows=4096, packing=False))
    first = batch["decoder_target_tokens"][:, 0]
    letters, counts = np.unique(first, return_counts=True)
    assert [chr(letter - 3) for letter in letters] == ["a", "b"]
    assert abs(counts[0] - 2048) <= 1
