"""Everything a training step reads and returns, and where each part of it lives."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh, NamedSharding
from jaxtyping import Array

from t2t import sharding
from t2t.train import adafactor, faults, roles


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainState:
    """A run between two steps."""

    step: Any
    """Int scalar: updates made so far."""
    params: Any
    """{role: tree} of the parameters being trained, float32."""
    frozen: Any
    """{role: tree} of parameters the objective only reads (a teacher); never donated, never in a checkpoint."""
    opt_state: Any
    """The optimizer's memory."""
    carry: Any
    """What the objective takes from one batch to the next."""
    guard: Any
    """A `t2t.train.faults.Guard`: what tells a good step from a bad one."""


def init_params(models: Mapping[str, Any], key: Array) -> dict[str, Any]:
    """Fresh parameters of each model; a single model gets `key` itself."""
    keys = [key] if len(models) == 1 else list(jax.random.split(key, len(models)))
    return {role: models[role].init(k) for role, k in zip(sorted(models), keys, strict=True)}


def init_state(
    params: Any, optimizer: optax.GradientTransformation, *, frozen: Any = None, carry: Any = ()
) -> TrainState:
    """The state of step 0 around these parameters; runs under jit and eval_shape."""
    return TrainState(
        step=jnp.zeros((), jnp.int32),
        params=params,
        frozen={} if frozen is None else frozen,
        opt_state=optimizer.init(params),
        carry=carry,
        guard=faults.new_guard(),
    )


def state_shardings(
    state: TrainState, axes: Any, mesh: Mesh, *, carry_axes: Any = None, zero: bool = False
) -> TrainState:
    """The sharding of every array of a state; optimizer state follows its parameters.

    Args:
        state: arrays or shapes.
        axes: {role: tree} of the logical axes of every parameter, trained or frozen.
        mesh: made by `t2t.sharding.make_mesh`.
        carry_axes: logical axes of every array of the carry; None = it is on every device.
        zero: whether optimizer state is split over data too (`t2t.train.zero`).
    """
    everywhere = sharding.replicated(mesh)
    trained, frozen = ({role: axes[role] for role in tree} for tree in (state.params, state.frozen))
    return TrainState(
        step=everywhere,
        params=sharding.param_shardings(state.params, trained, mesh),
        frozen=sharding.param_shardings(state.frozen, frozen, mesh),
        opt_state=_optimizer_shardings(state.opt_state, state.params, trained, mesh, zero=zero),
        carry=carry_shardings(state.carry, carry_axes, mesh),
        guard=jax.tree.map(lambda _: everywhere, state.guard),
    )


def carry_shardings(carry: Any, axes: Any, mesh: Mesh) -> Any:
    """The sharding of every array of a carry by its logical axes; without axes a copy is on every device."""
    if axes is None:
        return jax.tree.map(lambda _: sharding.replicated(mesh), carry)
    return jax.tree.map(lambda leaf, names: sharding.named_sharding(leaf.shape, names, mesh, path="carry"), carry, axes)


def _optimizer_shardings(opt_state: Any, params: Any, axes: Any, mesh: Mesh, *, zero: bool) -> Any:
    """Shardings of the optimizer's arrays: each belongs to the parameter whose path ends its own path."""
    place = sharding.divided_sharding if zero else sharding.named_sharding
    by_path: dict[tuple[Any, ...], tuple[tuple[int, ...], sharding.Axes]] = {}
    jax.tree_util.tree_map_with_path(lambda path, p, a: by_path.update({path: (p.shape, a)}), params, axes)

    def one(path: tuple[Any, ...], leaf: Any) -> NamedSharding:
        for start in range(len(path)):
            if path[start:] in by_path:
                names = _moment_axes(leaf.shape, *by_path[path[start:]], field=roles.path_name(path[start - 1 : start]))
                return place(leaf.shape, names, mesh, path=roles.path_name(path))
        return sharding.replicated(mesh)

    return jax.tree_util.tree_map_with_path(one, opt_state)


def _moment_axes(
    shape: tuple[int, ...], param_shape: tuple[int, ...], axes: sharding.Axes, *, field: str
) -> sharding.Axes:
    """Logical axes of one array the optimizer keeps for a parameter: its own, Adafactor's factor, or a placeholder."""
    view, names = adafactor.matrix_view(param_shape, axes)
    layers = axes[:1] if axes[:1] == ("layers",) else ()
    if shape == param_shape:
        return axes
    if shape == param_shape[: len(layers)] + view:
        return layers + names
    factors = adafactor.factored_axes(param_shape, axes, min_dim=0)
    if factors is not None and field in ("v_row", "v_col") and shape[len(layers) :] != (1,):
        return factors[0] if field == "v_row" else factors[1]
    return layers + ("head",) * (len(shape) - len(layers))  # one element per layer: never split
