import functools
import math
import pathlib

import numpy as np
import pytest

seqio = pytest.importorskip("seqio")

from t2t.data import examples, masked_objectives, registry  # noqa: E402
from t2t.data.store import TokenStore  # noqa: E402
from tests.data import toy  # noqa: E402
from tests.vocabulary.trained import LINES, trained  # noqa: E402

LENGTH = 64


@pytest.fixture
def names():
    rows = [{"body": line} for line in LINES[:30] if line]
    source = registry.TextSource(lambda split: rows, splits=("train",))
    names = masked_objectives.add_masked_objectives("masked_test", source, field="body")
    yield names
    for name in names:
        seqio.TaskRegistry.remove(name)


@functools.cache
def store(kind):
    """All text of the lines in pieces that fill a row with the special tokens of the vocabulary."""
    size = LENGTH - 1 - (trained(kind).bos_id is not None)
    tokens = np.array(trained(kind).encode(" ".join(LINES)), np.int32)
    return TokenStore.collect({"targets": row} for row in tokens[: len(tokens) // size * size].reshape(-1, size))


def read(name, kind="word pieces"):
    """The examples of an objective, as `examples.load_examples` makes them of a registered task."""
    lengths = {"inputs": LENGTH, "targets": LENGTH}
    bound = masked_objectives.OBJECTIVES[name].bind(lengths, toy.features(trained(kind), "inputs", "targets"))
    bound = bound.learn(store(kind).values("targets"))
    return examples.TaskExamples(name=name, split="train", store=store(kind), corruption=bound, seed=0)


def corrupted(task, epoch=0, number=150):
    """Inputs, targets and weights of some examples."""
    made = task.examples(range(number), epoch=epoch)
    return tuple(np.stack([example[name] for example in made]) for name in ("inputs", "targets", "weights"))


def within(count, trials, rate):
    return abs(count - trials * rate) < 4 * math.sqrt(trials * rate * (1 - rate))


def test_every_objective_is_registered(names):
    assert names == tuple(f"masked_test_{name}" for name in masked_objectives.OBJECTIVES)
    for name, objective in zip(names, masked_objectives.OBJECTIVES.values(), strict=True):
        task = seqio.TaskRegistry.get(name)
        assert task.preprocessors[-1] == objective
        assert set(task.output_features) == {"inputs", "targets"}


def test_a_registered_task_reads_its_field(names):
    lengths = {"inputs": 16, "targets": 16}
    task = examples.load_examples(names[0], "train", vocabulary=trained("bytes"), lengths=lengths, seed=0)
    text = "".join(trained("bytes").decode(task.example(i, epoch=0)["targets"]) for i in range(len(task)))
    assert text == "".join(LINES[:30])
    assert task.example(0, epoch=0)["weights"].sum() == 2  # round(0.15 * 16)


@pytest.mark.parametrize("name", masked_objectives.OBJECTIVES)
def test_fifteen_per_cent_of_the_text_and_no_special_token(name):
    inputs, targets, weights = corrupted(read(name))
    assert inputs.shape == targets.shape == weights.shape == (150, LENGTH)
    assert 0.14 < weights.mean() <= 10 / LENGTH
    assert not weights[np.isin(targets, trained("word pieces").special_ids)].any()
    np.testing.assert_array_equal(inputs[weights == 0], targets[weights == 0])


def test_numbers_of_tokens():
    for name, counts in {"mlm_exact": {10}, "mlm_rounded": {9, 10}, "mlm_smoothed": {10}, "mlm_span": {10}}.items():
        weights = corrupted(read(name))[2]
        assert set(weights.sum(-1).tolist()) == counts  # 0.15 * 64 is 9.6


def test_static_and_duplicated_masks_come_back():
    for name, period in {"mlm_static": 1, "mlm_duplicated": 10, "mlm_exact": 40}.items():
        task = read(name)
        made = [corrupted(task, epoch=epoch, number=3)[0].tobytes() for epoch in range(40)]
        assert len(set(made)) == period
        assert made == made[:period] * (40 // period)


def test_replaced_tokens_are_masked_or_kept():
    vocabulary = trained("word pieces")
    inputs, targets, weights = corrupted(read("rtd"))
    chosen = weights == 1
    masked = inputs == vocabulary.mask_id
    assert within((masked & chosen).sum(), chosen.sum(), 0.85)
    np.testing.assert_array_equal(inputs[~masked], targets[~masked])
    # What the discriminator reads has no mask and the special tokens as they were.
    assert not (targets == vocabulary.mask_id).any()
    assert (targets[:, 0] == vocabulary.bos_id).all()
    assert (targets[:, -1] == vocabulary.eos_id).all()


@pytest.mark.parametrize("kind", ["sentence pieces", "byte pairs", "bytes"])
def test_words_of_every_vocabulary(kind):
    for name in ("mlm_whole_word", "mlm_ngram", "mlm_span"):
        weights = corrupted(read(name, kind), number=40)[2]
        assert 0.1 < weights.mean() <= 10 / LENGTH


def test_the_three_lines_of_the_guide_register_a_corpus(tmp_path, monkeypatch):
    guide = pathlib.Path(__file__).parents[2] / "docs" / "reference" / "objectives.md"
    code = [line for line in guide.read_text(encoding="utf-8").splitlines() if line.startswith("    ")]
    assert len(code) == 3
    monkeypatch.chdir(tmp_path)
    (tmp_path / "novels").mkdir()
    for name, text in (("novels/a.txt", "One book."), ("held_out.txt", "Another.")):
        (tmp_path / name).write_text(text)
    exec("\n".join(line.strip() for line in code), {})
    tasks = {name: seqio.TaskRegistry.get(f"novels_{name}") for name in masked_objectives.OBJECTIVES}
    for task in tasks.values():
        seqio.TaskRegistry.remove(task.name)
    lengths = {"inputs": 16, "targets": 16}
    for split, text in (("train", "One book."), ("validation", "Another.")):
        made = examples.load_examples(tasks["mlm_exact"], split, vocabulary=trained("bytes"), lengths=lengths, seed=0)
        assert trained("bytes").decode(made.example(0, epoch=0)["targets"]) == text
