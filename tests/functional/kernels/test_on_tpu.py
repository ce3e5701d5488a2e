"""Training steps with kernels, compiled for chips that are not there, under a mesh of rows and heads."""

import dataclasses

import jax
import pytest
from planning import runs

import t2t
from t2t import heads
from t2t.nn.block import BlockConfig
from t2t.planning import compiled, topology
from t2t.train import build

CASES = {
    "gpt2": ("decoder", {"targets": 512}, {"fsdp": 2, "tensor": 2}, 3, {"splash"}),
    "t5-small": ("encoder-decoder", {"inputs": 384, "targets": 256}, {"fsdp": 2, "tensor": 2}, 9, {"splash", "flash"}),
    "modernbert-base": ("encoder", {"inputs": 512, "targets": 512, "predictions": 3}, {}, 12, {"splash"}),
}
"""Architecture, lengths, mesh; kernels in the compiled program, three each (forward and two backward)."""


def shallow(name):
    """A published model with each of its layers once, and no dropout of attention weights."""
    config = t2t.preset(name, head=heads.PRETRAINING) if "bert" in name else t2t.preset(name)
    stacks = {part: getattr(config, part) for part in ("stack", "encoder", "decoder") if hasattr(config, part)}

    def undropped(block: BlockConfig) -> BlockConfig:
        layers = {part: getattr(block, part) for part in ("attention", "cross_attention")}
        return dataclasses.replace(
            block, **{part: dataclasses.replace(layer, dropout=0.0) for part, layer in layers.items() if layer}
        )

    for part, stack in stacks.items():
        blocks = {side: tuple(map(undropped, getattr(stack, side))) for side in ("prefix", "pattern", "suffix")}
        stacks[part] = dataclasses.replace(stack, num_layers=sum(map(len, blocks.values())), **blocks)
    return dataclasses.replace(config, **stacks)


@pytest.mark.slow
@runs.needs_libtpu
@pytest.mark.parametrize("name", CASES)
def test_a_step_with_kernels_compiles_under_a_mesh(name, monkeypatch):
    for variable, value in topology.ENVIRONMENT.items():
        monkeypatch.setenv(variable, value)
    with jax.numpy_dtype_promotion("standard"):  # the library's own code adds a float32 bias to bfloat16 scores
        check_that_it_compiles(*CASES[name], model=shallow(name))


def check_that_it_compiles(architecture, lengths, mesh, num_kernels, chosen, *, model):
    experiment = runs.experiment(architecture, mesh=mesh)
    data = dataclasses.replace(experiment.data, lengths=lengths)
    experiment = dataclasses.replace(experiment, model=model, data=data)
    pieces = compiled.pieces_of(experiment, topology.parse("v5e:2x2").devices())
    assert {kernel for kernel in ("splash", "flash", "reference") if f"{kernel} in" in build.summary(pieces)} == chosen
    before = jax.config.jax_enable_compilation_cache
    jax.config.update("jax_enable_compilation_cache", False)  # what is not there cannot be read back
    try:
        program = compiled.lower(pieces).compile(compiler_options={"exec_time_optimization_effort": -1.0})
    finally:
        jax.config.update("jax_enable_compilation_cache", before)
    assert program.as_text().count('custom_call_target="tpu_custom_call"') == num_kernels
