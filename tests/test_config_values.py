"""Configs as values: the types of their settings, the trip to JSON and back, and differences in words."""

import copy
import dataclasses
import json
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t import config as config_lib
from t2t import config_values
from t2t.config import Checkpoint, Data, Evaluate, Experiment, Mesh, Train


@dataclasses.dataclass(frozen=True, kw_only=True)
class Relative:
    buckets: int = 32


@dataclasses.dataclass(frozen=True, kw_only=True)
class Block:
    position: Relative | None = None
    norm_position: Literal["pre", "post"] = "pre"
    dropout: float = 0.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Model:
    pattern: tuple[Block, ...] = (Block(),)
    names: tuple[str, ...] = ()
    scale: float | None = None


MODULES = (__name__,)


@pytest.fixture
def experiment() -> Experiment:
    return Experiment(
        name="tiny",
        model=Model(pattern=(Block(), Block(position=Relative()))),
        data=Data(modules=MODULES, train={"a": 1.0, "b": 0.5}, lengths={"inputs": 7, "targets": 5}, batch_size=4),
        objective=Relative(),
        optimizer=Block(dropout=0.1),
        train=Train(steps=10),
    )


def test_json_goes_both_ways(experiment):
    written = json.dumps(config_values.to_json(experiment))
    assert config_values.from_json(json.loads(written)) == experiment


blocks = st.builds(
    Block,
    position=st.none() | st.builds(Relative, buckets=st.integers()),
    norm_position=st.sampled_from(["pre", "post"]),
    dropout=st.floats(allow_nan=False),
)
models = st.builds(
    Model,
    pattern=st.lists(blocks).map(tuple),
    names=st.lists(st.text()).map(tuple),
    scale=st.none() | st.floats(allow_nan=False),
)
lengths = st.dictionaries(st.text().filter(lambda key: key != "class"), st.integers(min_value=1), min_size=1)
rates = st.dictionaries(
    st.text().filter(lambda key: key != "class"), st.floats(min_value=1e-9, allow_nan=False), min_size=1
)
experiments = st.builds(
    Experiment,
    name=st.just("x"),
    init=st.none() | st.text(),
    model=models,
    data=st.builds(
        Data,
        modules=st.just(MODULES),
        train=st.text() | rates,
        lengths=lengths,
        batch_size=st.integers(min_value=1),
        unit=st.sampled_from(["file", "line", "paragraph"]),
    ),
    objective=blocks,
    optimizer=blocks | models,
    train=st.builds(Train, steps=st.integers(min_value=1)),
    evaluate=st.builds(Evaluate, tasks=st.lists(st.text()).map(tuple)),
)


@given(experiments)
def test_json_round_trip_keeps_everything(experiment):
    back = config_values.from_json(json.loads(json.dumps(config_values.to_json(experiment))))
    assert back == experiment
    assert config_values.difference(experiment, back) == ()
    assert type(back.model.pattern) is tuple


def test_classes_are_named_with_their_module(experiment):
    written = config_values.to_json(experiment)
    assert written["class"] == "t2t.config.Experiment"
    assert written["train"] == {
        "class": "t2t.config.Train",
        "steps": 10,
        "micro_batches": 1,
        "log_every": 50,
        "dtype": "auto",
        "remat": None,
        "attention": "auto",
        "compile_cache": "run",
    }


@pytest.mark.parametrize("value", [["a"], {1: 2}, {"class": 1}, {"a", "b"}, Relative])
def test_what_could_not_come_back_is_refused(value):
    with pytest.raises(TypeError, match=r"config\.scale"):
        config_values.to_json(dataclasses.make_dataclass("Odd", ["scale"])(scale=value))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("os.system", "only classes of t2t"),
        ("subprocess.Popen", "only classes of t2t"),
        ("t2tx.config.Train", "only classes of t2t"),
        ("t2t.config_values.to_json", "no such dataclass"),
        ("t2t.config.Trainer", "no such dataclass"),
        ("t2t.nowhere.Train", "no module t2t.nowhere"),
    ],
)
def test_only_dataclasses_of_t2t_are_built(path, message):
    with pytest.raises(ValueError, match=message):
        config_values.from_json({"class": path})


def test_classes_of_the_data_modules_are_built_only_when_named():
    written = config_values.to_json(Relative(buckets=3))
    assert config_values.from_json(written, modules=MODULES) == Relative(buckets=3)
    with pytest.raises(ValueError, match="only classes of t2t"):
        config_values.from_json(written)


def test_unknown_and_missing_fields_are_named():
    with pytest.raises(ValueError, match="Train has no field step; did you mean steps?"):
        config_values.from_json({"class": "t2t.config.Train", "step": 3})
    with pytest.raises(ValueError, match="Train needs steps"):
        config_values.from_json({"class": "t2t.config.Train"})


def test_difference_reads_like_a_list_of_changes(experiment):
    changed = dataclasses.replace(
        experiment,
        train=dataclasses.replace(experiment.train, steps=20, dtype="float32"),
        model=dataclasses.replace(experiment.model, pattern=(Block(),)),
        mesh=Mesh(fsdp=2),
        optimizer=Relative(),
    )
    assert config_values.difference(experiment, changed) == (
        "model.pattern.1: Block -> (absent)",
        "model.pattern.1.position: Relative -> (absent)",
        "model.pattern.1.position.buckets: 32 -> (absent)",
        "model.pattern.1.norm_position: pre -> (absent)",
        "model.pattern.1.dropout: 0.0 -> (absent)",
        "optimizer: Block -> Relative",
        "optimizer.position: None -> (absent)",
        "optimizer.norm_position: pre -> (absent)",
        "optimizer.dropout: 0.1 -> (absent)",
        "train.steps: 10 -> 20",
        "train.dtype: auto -> float32",
        "mesh.fsdp: 1 -> 2",
        "optimizer.buckets: (absent) -> 32",
    )


def test_a_continued_run_may_change_its_length_evaluation_checkpoints_and_mesh(experiment):
    longer = dataclasses.replace(
        experiment,
        train=dataclasses.replace(experiment.train, steps=20),
        evaluate=Evaluate(every=7),
        checkpoint=Checkpoint(keep=9),
        mesh=Mesh(fsdp=2),
    )
    assert config_values.difference(experiment, longer, ignore=config_lib.RESUMABLE) == ()
    reseeded = dataclasses.replace(longer, seed=1)
    assert config_values.difference(experiment, reseeded, ignore=config_lib.RESUMABLE) == ("seed: 0 -> 1",)


def changed_unseen(value, **changes):
    """A copy with other fields; the type checker of the tests sees only what is constructed."""
    changed = copy.copy(value)
    for name, new in changes.items():
        object.__setattr__(changed, name, new)
    return changed


@pytest.mark.parametrize(
    ("part", "change", "message"),
    [
        ("train", {"steps": np.int64(4)}, r"train.steps is np.int64\(4\) \(int64\); it must be int"),
        ("train", {"steps": 4.0}, r"train.steps is 4.0 \(float\); it must be int"),
        ("train", {"steps": True}, "train.steps is True"),
        ("train", {"steps": "4"}, "train.steps is '4'"),
        ("train", {"dtype": "float16"}, "train.dtype is 'float16'"),
        ("data", {"modules": ["tasks.a"]}, r"data.modules is \['tasks.a'\] \(list\); it must be tuple\[str, ...\]"),
        ("data", {"modules": "tasks.a"}, "data.modules is 'tasks.a'"),
        ("data", {"files": ("a", 3)}, r"data.files\[1\] is 3 \(int\); it must be str"),
        ("data", {"lengths": {"inputs": 7.5}}, "data.lengths.inputs is 7.5"),
        ("data", {"train": 3}, r"data.train is 3 \(int\); it must be str or dict"),
        ("data", {"train": {"a": "1"}}, "data.train.a is '1'"),
        ("data", {"train": {"a": float("nan")}}, "data.train.a is nan"),
        ("model", {"scale": np.float64(0.5)}, r"model.scale is np.float64\(0.5\) .* it must be float or None"),
        ("model", {"pattern": (Block(), Relative())}, r"model.pattern\[1\] is Relative\("),
        ("model", {"pattern": (Block(position=Relative(buckets="x")),)}, r"model.pattern\[0\].position.buckets is 'x'"),
    ],
)
def test_settings_of_another_type_are_named(experiment, part, change, message):
    config_values.check_types(experiment)
    changed = changed_unseen(experiment, **{part: changed_unseen(getattr(experiment, part), **change)})
    with pytest.raises(TypeError, match=message):
        config_values.check_types(changed)


def test_a_part_of_another_class_is_named(experiment):
    with pytest.raises(TypeError, match=r"mesh is \{'data': 1\} \(dict\); it must be Mesh"):
        config_values.check_types(changed_unseen(experiment, mesh={"data": 1}))
    with pytest.raises(TypeError, match=r"seed is -1.5 .*; evaluate is None"):
        config_values.check_types(changed_unseen(experiment, seed=-1.5, evaluate=None))
