"""The real step, compiled for TPU where its compiler is: every architecture, every generation, every shipped config."""

import os
import re
import subprocess
import sys

import pytest
from planning import runs
from test_architecture import ROOT

from t2t import finding
from t2t.planning import analytic, compiled, topology
from t2t.planning.compiled import Overflow, Step

PLACES = {
    "encoder": ("v5e:2x2", {}),
    "decoder": ("v4:2x2x1", {"fsdp": 4}),
    "encoder-decoder": ("v5p:2x2x1", {"fsdp": 2}),
    "prefix-lm": ("v5e:2x2", {"fsdp": 2}),
    "permutation": ("v5e:1x1", {}),
}
"""Each architecture on one slice; v6e is compiled for in nightly tests, since libtpu 0.0.42.1 crashes on some hosts."""


def test_no_array_depends_on_the_vocabulary():
    """A model with fewer rows than there are bytes has a plan too."""
    pieces = compiled.pieces_of(runs.experiment("decoder"), topology.parse("v5e:1x1").stand_ins())
    assert pieces.vocabulary.size == pieces.experiment.model.vocab_size == 37


def test_activations_on_chips_are_bfloat16():
    pieces = compiled.pieces_of(runs.experiment("decoder"), topology.parse("v5e:1x1").stand_ins())
    assert pieces.models["model"].dtype.__name__ == "bfloat16"


def test_model_operations_and_tokens():
    """24 + 16 positions in 16 rows."""
    pieces = compiled.pieces_of(runs.experiment("encoder-decoder"), topology.parse("v5e:1x1").stand_ins())
    assert compiled.num_tokens(compiled.batch_shapes(pieces)) == 16 * 40
    assert compiled.model_operations(pieces) > 6 * 16 * 40 * 12


def test_the_message_of_the_compiler_is_understood():
    message = "the total memory required for HLO temporaries (24.31G) exceeds available HBM (15.75G)."
    assert compiled.REQUIRED.search(message).groups() == ("24.31", "G", "15.75", "G")


@pytest.fixture
def for_tpu(monkeypatch):
    """An environment in which libtpu compiles, and a cache that is off."""
    import jax

    for name, value in topology.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    before = jax.config.jax_enable_compilation_cache
    jax.config.update("jax_enable_compilation_cache", False)
    yield
    jax.config.update("jax_enable_compilation_cache", before)


@pytest.mark.slow
@runs.needs_libtpu
@pytest.mark.parametrize("architecture", PLACES)
def test_the_step_compiles(architecture, for_tpu):
    name, mesh = PLACES[architecture]
    place = topology.parse(name)
    pieces = compiled.pieces_of(runs.experiment(architecture, mesh=mesh), place.devices())
    step = compiled.compile_step(pieces, quick=True)
    assert isinstance(step, Step)
    held = analytic.held(pieces)
    assert held.arguments <= step.arguments <= step.peak  # the compiler pads to tiles
    assert step.work.matrix_operations >= compiled.model_operations(pieces) / place.num_chips * 0.6  # causal: half
    assert step.work.bytes > 0 and step.work.cycles > 0
    assert bool(step.exchanges) == (place.num_chips > 1)
    assert all(set(one.axes) <= {"data", "fsdp"} for one in step.exchanges)


@pytest.mark.slow
@runs.needs_libtpu
def test_what_does_not_fit_is_an_answer(for_tpu):
    place = topology.parse("v5e:1x1")
    pieces = compiled.pieces_of(runs.experiment("decoder", data={"batch_size": 2**22}), place.devices())
    found = compiled.compile_step(pieces, quick=True)
    assert isinstance(found, Overflow)
    assert found.required > found.available == pytest.approx(place.chip.hbm, rel=1e-3)


@pytest.mark.nightly
@runs.needs_libtpu
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", [name for name in finding.shipped_configs() if name.startswith("pretrain/")])
def test_shipped_configs_fit_their_topologies(name):
    """At full size: minutes each; -s shows the plans."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / ".libtpu")])}
    command = [sys.executable, "-m", "t2t", "plan", name, "--alternatives", "0", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^it fits", done.stdout, re.MULTILINE)
