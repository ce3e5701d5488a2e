"""The real training step of a run, compiled for chips that are not there."""

import dataclasses
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

import jax

from t2t import sharding
from t2t.config import Experiment
from t2t.planning import collectives, hlo, work
from t2t.planning.collectives import Collective
from t2t.planning.topology import GIB
from t2t.planning.work import Work
from t2t.train import build, record
from t2t.train.build import Pieces
from t2t.train.step import make_train_step
from t2t.vocabulary import ByteVocabulary

REQUIRED = re.compile(r"\(([\d.]+)([KMGT]?)\) exceeds available HBM \(([\d.]+)([KMGT]?)\)")
"""What the compiler says when the program does not fit; K, M, G and T are powers of 1024."""
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": GIB, "T": 2**40}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Step:
    """A compiled training step."""

    peak: int
    """Bytes of a chip's memory at the fullest moment, arguments included."""
    arguments: int
    """Bytes of state and batch on a chip, as the compiler lays them out."""
    program: int
    """Bytes of the program itself."""
    xla_operations: float
    """XLA's own count of floating-point operations on one chip, which takes the body of a loop once."""
    work: Work
    exchanges: list[Collective]
    seconds: float
    """How long compiling took."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Overflow:
    """A training step that needs more memory than a chip has."""

    required: int
    """Bytes of temporary arrays."""
    available: int
    """Bytes of a chip."""
    seconds: float


def pieces_of(experiment: Experiment, devices: Sequence[Any]) -> Pieces:
    """The pieces of the run on these devices; of the vocabulary only the model's number of rows matters.

    Raises:
        UsageError: sizes that do not go together.
    """
    return build.build(experiment, StandIn(getattr(experiment.model, "vocab_size", 0)), devices=devices)


class StandIn(ByteVocabulary):
    """A vocabulary of as many ids as the model has rows, for what needs one: no array's shape depends on which."""

    def __init__(self, rows: int):
        super().__init__()
        self.size = rows


def batch_shapes(pieces: Pieces) -> dict[str, jax.ShapeDtypeStruct]:
    """Shape, dtype and sharding of every array of a global batch."""
    rows = pieces.experiment.data.batch_size
    where = sharding.batch_sharding(pieces.mesh)
    return {
        name: jax.ShapeDtypeStruct((rows, *value.shape[1:]), value.dtype, sharding=where)
        for name, value in pieces.converter.convert([[]]).items()
        if name not in sharding.HOST_KEYS
    }


def lower(pieces: Pieces) -> jax.stages.Lowered:
    """The run's training step as a program for the devices of its mesh, not compiled."""
    experiment = pieces.experiment
    step = make_train_step(
        experiment.objective,
        pieces.models,
        pieces.optimizer,
        seed=experiment.seed,
        micro_batches=experiment.train.micro_batches,
        rate=experiment.optimizer.learning_rate.rate(experiment.train.steps),
        state_shardings=pieces.shardings,
        policy=experiment.faults,
    )
    with sharding.use_mesh(pieces.mesh):
        return step.lower(pieces.state, batch_shapes(pieces))


def compile_step(pieces: Pieces, *, quick: bool = False) -> Step | Overflow:
    """Compiles the training step; what does not fit is an answer, not an error.

    Args:
        pieces: on the devices of a topology.
        quick: less optimisation of the schedule, the same memory, a third of the time less.

    The cache of compiled programs must be off: a program for devices that are not there cannot be read from it.
    """
    started = time.monotonic()
    options = {"exec_time_optimization_effort": -1.0} if quick else None
    try:
        compiled = lower(pieces).compile(compiler_options=options)
    except jax.errors.JaxRuntimeError as error:
        found = REQUIRED.search(str(error))
        if found is None:
            raise
        required, available = (int(float(found[i]) * UNITS[found[i + 1]]) for i in (1, 3))
        return Overflow(required=required, available=available, seconds=time.monotonic() - started)
    memory, costs = compiled.memory_analysis(), compiled.cost_analysis()
    program = hlo.parse(compiled.as_text())
    return Step(
        peak=memory.peak_memory_in_bytes,
        arguments=memory.argument_size_in_bytes,
        program=memory.generated_code_size_in_bytes,
        xla_operations=costs.get("flops", 0.0),
        work=work.measure(program),
        exchanges=collectives.find(program, pieces.mesh),
        seconds=time.monotonic() - started,
    )


def model_operations(pieces: Pieces) -> float:
    """Operations of a step by the formula of `t2t.train.flops`, of all chips."""
    return record.step_flops(pieces)


def num_tokens(batch: Mapping[str, Any]) -> int:
    """Positions of a batch, of both sides.

    >>> import numpy as np
    >>> num_tokens({"encoder_input_tokens": np.zeros((2, 8)), "decoder_input_tokens": np.zeros((2, 3))})
    22
    """
    sides = [value.shape for name, value in batch.items() if name in ("encoder_input_tokens", "decoder_input_tokens")]
    return sum(rows * length for rows, length in sides)
