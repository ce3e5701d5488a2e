"""Every file of configs/: complete docstring, both ways through JSON, and a training step that can be traced."""

import dataclasses
import importlib
import re

import jax
import pytest

from t2t import config_values, finding, sharding
from t2t.config import Mesh
from t2t.planning import topology
from t2t.train import build, tasks
from t2t.train.step import make_train_step
from t2t.vocabulary import ByteVocabulary

NAMES = finding.shipped_configs()


@pytest.mark.parametrize("name", NAMES)
def test_the_docstring_says_what_where_how_long_and_how(name):
    experiment, description, _ = finding.load_config(name)
    for part in ("Reproduces:", "Hardware and time:", "Expected", "Command:"):
        assert part in description, f"configs/{name}.py: the docstring has no {part}"
    assert re.search(r"arXiv:\d{4}\.\d{4,5}", description), f"configs/{name}.py names no paper"
    assert f"t2t train {name}" in description
    assert config_values.from_json(config_values.to_json(experiment)) == experiment


@pytest.mark.parametrize("name", NAMES)
def test_a_config_states_the_topology_it_is_made_for(name):
    """tests/planning/test_compiled.py compiles it there (nightly)."""
    experiment, _, _ = finding.load_config(name)
    assert experiment.topology is not None, f"configs/{name}.py: see docs/how-to/plan-a-run.md"
    assert topology.parse(experiment.topology).num_chips >= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_tasks_of_a_config_exist(name):
    experiment, _, _ = finding.load_config(name)
    tasks.register(experiment)
    tasks.check_best(experiment, list(tasks.to_evaluate(experiment)))
    for module in experiment.data.modules:
        assert importlib.util.find_spec(module) is not None


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_step_of_a_config_can_be_traced(name):
    experiment, _, _ = finding.load_config(name)
    experiment = dataclasses.replace(experiment, mesh=Mesh())  # its own asks for the devices of its topology
    pieces = build.build(experiment, ByteVocabulary(mask=True))
    rows = experiment.data.batch_size
    where = sharding.batch_sharding(pieces.mesh)
    batch = {
        key: jax.ShapeDtypeStruct((rows, *value.shape[1:]), value.dtype, sharding=where)
        for key, value in pieces.converter.convert([[]]).items()
    }
    step = make_train_step(
        experiment.objective,
        pieces.models,
        pieces.optimizer,
        seed=experiment.seed,
        micro_batches=experiment.train.micro_batches,
        rate=experiment.optimizer.learning_rate.rate(experiment.train.steps),
        state_shardings=pieces.shardings,
    )
    with sharding.use_mesh(pieces.mesh):
        state, metrics = step.lower(pieces.state, batch).out_info
    assert jax.tree.structure(state.params) == jax.tree.structure(pieces.state.params)
    assert "loss" in metrics
