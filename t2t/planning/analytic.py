"""What can be said of a run's memory and exchanges without compiling it.

State and batch are exact, from shapes and shardings. Activations are an estimate: the arrays that the traced program
keeps for its backward pass, for one micro-batch of one chip, as if nothing were fused and tensor and sequence axes cut
everything. The compiler keeps less where it fuses and more where it copies.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from t2t.config import Experiment
from t2t.planning.collectives import Collective
from t2t.planning.compiled import batch_shapes
from t2t.train import build
from t2t.train.build import Pieces


@dataclasses.dataclass(frozen=True, kw_only=True)
class Held:
    """Bytes on each chip."""

    parameters: int
    optimizer: int
    other_state: int
    """Frozen parameters, what an objective carries on, the counter of steps, what judges them."""
    batch: int
    gradients: int
    """Of one tree of gradients."""

    @property
    def arguments(self) -> int:
        """What is there before a step begins."""
        return self.parameters + self.optimizer + self.other_state + self.batch


def held(pieces: Pieces) -> Held:
    """State, batch and gradients of a run, exactly."""
    state = pieces.state
    return Held(
        parameters=bytes_on_chip(state.params),
        optimizer=bytes_on_chip(state.opt_state),
        other_state=bytes_on_chip((state.step, state.frozen, state.carry, state.guard)),
        batch=bytes_on_chip(batch_shapes(pieces)),
        gradients=bytes_on_chip(state.params),
    )


def bytes_on_chip(tree: Any) -> int:
    """Bytes on each device of arrays with these shapes, dtypes and shardings, without padding."""
    return sum(
        math.prod(leaf.sharding.shard_shape(leaf.shape)) * np.dtype(leaf.dtype).itemsize
        for leaf in jax.tree.leaves(tree)
    )


@dataclasses.dataclass(frozen=True)
class Kept:
    """Bytes that a backward pass reads, of one micro-batch with `rows` rows on a chip: `fixed + rows * per_row`."""

    fixed: float
    per_row: float

    def on_chip(self, experiment: Experiment, mesh: Mapping[str, int]) -> float:
        """For the rows, and the parts of the model, that a chip of this run has on a mesh of this shape."""
        parts = mesh["data"] * mesh["fsdp"] * experiment.train.micro_batches
        rows = experiment.data.batch_size / parts
        within = mesh["tensor"] * mesh["sequence"]
        return self.fixed / (mesh["fsdp"] * mesh["tensor"]) + rows * self.per_row / within


def kept(pieces: Pieces) -> Kept:
    """What the traced loss keeps for its gradient, by rows of a micro-batch: a line through one row and two.

    What does not grow with the rows is copies of parameters, of which each chip has its part.
    """
    one, two = (_residual_bytes(pieces, rows) for rows in (1, 2))
    return Kept(fixed=max(0.0, 2 * one - two), per_row=two - one)


def _residual_bytes(pieces: Pieces, rows: int) -> float:
    experiment = pieces.experiment
    batch = {
        name: jax.ShapeDtypeStruct((rows, *value.shape[1:]), value.dtype)
        for name, value in batch_shapes(pieces).items()
    }
    small = dataclasses.replace(
        experiment,
        data=dataclasses.replace(experiment.data, batch_size=rows),
        train=dataclasses.replace(experiment.train, micro_batches=1),
    )
    carry = jax.eval_shape(lambda: build.initial_carry(small, pieces.models))
    plain = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), pieces.state.params)
    frozen = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), pieces.state.frozen)

    def residuals(params: Any, frozen: Any, batch: Any, carry: Any, seed: Any) -> Any:
        def loss(params: Any) -> Any:
            key = jax.random.key(seed)
            terms, _, _ = experiment.objective.loss(pieces.models, frozen | params, batch, key=key, carry=carry)
            return sum(term.sum for term in terms.values())

        _, backward = jax.vjp(loss, params)
        given = {id(leaf) for leaf in jax.tree.leaves((params, frozen, batch))}
        return [leaf for leaf in jax.tree.leaves(backward) if id(leaf) not in given]

    found = jax.eval_shape(residuals, plain, frozen, batch, carry, jax.ShapeDtypeStruct((), "int32"))
    return float(sum(leaf.size * _width(leaf.dtype) for leaf in jax.tree.leaves(found)))


def _width(dtype: Any) -> int:
    return 0 if jax.dtypes.issubdtype(dtype, jax.dtypes.extended) else np.dtype(dtype).itemsize


def exchanges(pieces: Pieces) -> list[Collective]:
    """The exchanges that the axes `data` and `fsdp` bring with them; tensor and sequence are left out.

    Over fsdp parameters are gathered in the compute dtype for the forward and for the backward pass of every
    micro-batch, and its gradients are reduced and scattered; over data, and where parameters are not cut, gradients are
    reduced in float32 once.
    """
    mesh, micro_batches = pieces.mesh, pieces.experiment.train.micro_batches
    width = np.dtype(next(iter(pieces.models.values())).dtype).itemsize
    cut = whole = 0
    for leaf in jax.tree.leaves(pieces.state.params):
        axes = {
            name for entry in leaf.sharding.spec if entry for name in ([entry] if isinstance(entry, str) else entry)
        }
        parts = mesh.shape["tensor"] if "tensor" in axes else 1
        if "fsdp" in axes:
            cut += math.prod(leaf.shape) // parts
        else:
            whole += math.prod(leaf.shape) // parts
    found = []

    def add(kind: str, axes: tuple[str, ...], size: float, times: int) -> None:
        group = _group(pieces, axes)
        if size and len(group) > 1:
            found.append(Collective(kind=kind, axes=axes, group=group, bytes=size, times=times, is_hidden=False))

    add("all-gather", ("fsdp",), cut * width, 2 * micro_batches)
    add("reduce-scatter", ("fsdp",), cut * width, micro_batches)
    add("all-reduce", ("data",), cut * 4 / mesh.shape["fsdp"], 1)
    add("all-reduce", ("data", "fsdp"), whole * 4, 1)
    return found


def _group(pieces: Pieces, axes: tuple[str, ...]) -> tuple[int, ...]:
    places = np.arange(pieces.mesh.size).reshape(pieces.mesh.devices.shape)
    index = tuple(slice(None) if name in axes else 0 for name in pieces.mesh.axis_names)
    return tuple(int(place) for place in np.ravel(places[index]))
