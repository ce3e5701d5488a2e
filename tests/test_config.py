"""Configs: the values they refuse."""

import dataclasses
import typing

import pytest

from t2t.config import Checkpoint, Data, Evaluate, Experiment, Mesh, Train


@pytest.fixture
def experiment() -> Experiment:
    data = Data(train="a", lengths={"inputs": 7}, batch_size=4)
    return Experiment(name="tiny", model=None, data=data, objective=None, optimizer=None, train=Train(steps=10))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Train(steps=0), "train.steps is 0"),
        (lambda: Train(steps=1, micro_batches=-1), "train.micro_batches is -1"),
        (lambda: Evaluate(every=0), "evaluate.every is 0"),
        (lambda: Checkpoint(keep=0), "checkpoint.keep is 0"),
        (lambda: Mesh(data=-1, fsdp=-1), "only one axis"),
        (lambda: Mesh(tensor=0), "mesh.tensor is 0"),
        (lambda: Data(train={}, lengths={}, batch_size=1), "empty mixture"),
        (lambda: Data(train={"a": -1.0}, lengths={}, batch_size=1), "data.train.a is -1.0"),
        (lambda: Data(train="a", lengths={"inputs": 0}, batch_size=1), "data.lengths.inputs is 0"),
        (lambda: Data(train="a", lengths={}, batch_size=1, open_rows=10**9), "data.open_rows is 1000000000; .* 4096"),
    ],
)
def test_impossible_values_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize("name", ["", "a/b", ".hidden", "two words"])
def test_names_must_name_a_directory(experiment, name):
    with pytest.raises(ValueError, match="name is"):
        dataclasses.replace(experiment, name=name)


def test_recomputation_is_chosen_among_what_a_stack_offers():
    from t2t.nn import stack

    offered = [choice for choice in typing.get_args(Train.__annotations__["remat"]) if choice is not type(None)]
    assert typing.get_args(offered[0]) == stack.REMATS


@pytest.mark.parametrize("change", [{"name": "a\0b"}, {"name": "n" * 300}, {"seed": -1}, {"seed": 2**70}])
def test_names_and_seeds_that_cannot_be_are_refused_at_once(experiment, change):
    with pytest.raises(ValueError, match=next(iter(change))):
        dataclasses.replace(experiment, **change)
