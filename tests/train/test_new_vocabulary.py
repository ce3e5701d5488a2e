"""A run without a vocabulary trains one on its own text, and always the same."""

import dataclasses
import random
import string

import pytest

from t2t.config import Data, Experiment, Train
from t2t.data import registry, ul2
from t2t.errors import UsageError
from t2t.train import beginning, new_vocabulary


def rows(split: str) -> list[dict[str, str]]:
    draw = random.Random(0)
    words = ["".join(draw.choices(string.ascii_lowercase, k=draw.randint(2, 7))) for _ in range(60)]
    return [{"text": " ".join(draw.choices(words, k=9))} for _ in range(80)]


registry.add_objectives("vocabulary_toy", registry.TextSource(rows, splits=("train", "validation")))
ul2.add_ul2("vocabulary_toy", registry.TextSource(rows, splits=("train", "validation")))


@pytest.fixture
def experiment() -> Experiment:
    return Experiment(
        name="toy",
        model=None,
        vocabulary_size=180,
        data=Data(train="vocabulary_toy_span_corruption", lengths={"inputs": 16, "targets": 8}, batch_size=4),
        objective=None,
        optimizer=None,
        train=Train(steps=1),
    )


def test_the_vocabulary_has_the_size_sentinels_and_mask_and_is_a_function_of_the_text(experiment):
    first, second = (new_vocabulary.train_vocabulary(experiment) for _ in range(2))
    assert first.size == 180
    assert len(first.sentinels) == 100
    assert first.mask_id is not None
    assert first.pieces() == second.pieces()


def test_it_has_as_many_sentinels_as_asked_for_and_modes_where_a_task_begins_with_them(experiment):
    def train(task, **settings):
        data = dataclasses.replace(experiment.data, train=task)
        return new_vocabulary.train_vocabulary(dataclasses.replace(experiment, data=data, **settings))

    ours = train("vocabulary_toy_ul2", vocabulary_size=360, vocabulary_sentinels=300)
    assert (ours.size, len(ours.sentinels), [*ours.modes]) == (360, 300, ["[NLU]", "[NLG]", "[S2S]"])
    assert train("vocabulary_toy_span_corruption").modes == {}
    mixed = train({"vocabulary_toy_span_corruption": 1.0, "vocabulary_toy_ul2_s25": 1.0})
    assert (len(mixed.sentinels), len(mixed.modes)) == (100, 3)
    with pytest.raises(UsageError, match="sentinels=-1: give 0 or more"):
        train("vocabulary_toy_ul2", vocabulary_sentinels=-1)


def test_own_files_are_its_text(experiment, tmp_path):
    path = tmp_path / "own.txt"
    path.write_text("\n".join(f"zebra {i % 7} quagga {i % 5}" for i in range(200)), encoding="utf-8")
    own = dataclasses.replace(
        experiment, vocabulary_size=122, data=dataclasses.replace(experiment.data, files=(str(path),))
    )
    pieces = new_vocabulary.train_vocabulary(own).pieces()
    assert "z" in "".join(pieces)
    assert "j" not in "".join(piece for piece in pieces if not piece.startswith("<"))


def test_a_size_the_text_cannot_fill_is_refused_with_one_it_can(experiment):
    with pytest.raises(UsageError, match=r"vocabulary_size: size=90000 is too large.*the largest possible is \d+"):
        new_vocabulary.train_vocabulary(dataclasses.replace(experiment, vocabulary_size=90_000))


def test_without_a_size_the_vocabulary_is_bytes(experiment):
    chosen = beginning.choose_vocabulary(dataclasses.replace(experiment, vocabulary_size=None), None, kept=None)
    assert chosen.kind == "bytes"
    assert beginning.choose_vocabulary(experiment, None, kept=None).size == 180
