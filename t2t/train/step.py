"""One training step, as a pure function: gradients over micro-batches, an update, metrics.

How a batch travels, in five files:

1. `tasks/<name>.py`: source, tokenise, corrupt, features.
2. `t2t/data/pipeline.py`: mixture -> feature converter -> packed, sharded, resumable global batches.
3. `t2t/train/loop.py`: the run as one story: mesh, data, state, steps, evaluations, saves.
4. `t2t/train/step.py`: this file.
5. `t2t/objectives/<kind>.py`: which model call, which loss.

Only this file divides a loss by a weight. The weight of each term is that of the whole global batch, known before
anything is differentiated, so the gradient does not depend on how the batch was cut into micro-batches or spread over
devices, apart from dropout masks (each micro-batch draws its own) and rounding. A batch in which a term has no weight
at all (no targets) gives that term loss and gradient 0, never NaN; what the optimizer remembers of earlier steps still
moves the parameters.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array

from t2t.config import Faults
from t2t.objectives.base import Carry, Metrics, Objective
from t2t.train import faults
from t2t.train.state import TrainState
from t2t.types import Batch


def train_step(
    state: TrainState,
    batch: Batch,
    *,
    objective: Objective,
    models: Mapping[str, Any],
    optimizer: optax.GradientTransformation,
    rate: Callable[..., Array] | None,
    seed: int,
    micro_batches: int,
    policy: Faults | None = None,
) -> tuple[TrainState, Metrics]:
    """The state after one update, and what happened.

    Metrics are (sum, weight): each term and metric of the objective, and with weight 1 `loss` (what was minimised),
    `grad_norm` (before clipping), `param_norm` and `learning_rate`. Where one of them is NaN or infinite, the update is
    made all the same unless the `policy` skips it: the loop decides.
    """
    gradients, loss, metrics, carry = accumulate_gradients(
        objective,
        models,
        state.params,
        batch,
        frozen=state.frozen,
        key=jax.random.fold_in(jax.random.key(seed), state.step),
        carry=state.carry,
        micro_batches=micro_batches,
    )
    updates, opt_state = optimizer.update(gradients, state.opt_state, state.params)
    params = optax.apply_updates(state.params, updates)

    one = jnp.ones((), jnp.float32)
    metrics = metrics | {"loss": (loss, one), "grad_norm": (optax.tree.norm(gradients), one)}
    new = dataclasses.replace(state, params=params, opt_state=opt_state, carry=carry)
    if faults.is_watching(policy):
        new, metrics = leave_out_if_bad(state, new, metrics, policy=policy)
    metrics["param_norm"] = (optax.tree.norm(new.params), one)
    if rate is not None:
        metrics["learning_rate"] = (rate(state.step - state.guard.skipped), one)  # the optimizer counts its updates
    return dataclasses.replace(new, step=state.step + 1), metrics


def leave_out_if_bad(
    old: TrainState, new: TrainState, metrics: Metrics, *, policy: Faults
) -> tuple[TrainState, Metrics]:
    """The new state, or the old one where the policy skips the step, whose metrics then weigh nothing.

    The verdict goes along with the metrics; the guard has seen the step in either case.
    """
    is_finite = jnp.all(jnp.stack([jnp.isfinite(total) for total, _ in metrics.values()]))
    verdict, guard = faults.judge(old.guard, metrics["loss"][0], is_finite=is_finite, settings=policy)
    is_left_out = faults.is_skip(verdict)
    state = jax.tree.map(lambda before, after: jnp.where(is_left_out, before, after), old, new)
    metrics = jax.tree.map(lambda value: jnp.where(is_left_out, 0, value), metrics)
    metrics[faults.VERDICT] = (verdict, jnp.ones((), jnp.float32))
    return dataclasses.replace(state, guard=guard), metrics


def accumulate_gradients(
    objective: Objective,
    models: Mapping[str, Any],
    params: Any,
    batch: Batch,
    *,
    frozen: Any,
    key: Array | None,
    carry: Carry,
    micro_batches: int = 1,
) -> tuple[Any, Array, Metrics, Carry]:
    """Gradient and value of sum over terms of coefficient * sum / weight of the global batch.

    Each micro-batch draws from fold_in(key, its index). One tree of gradients is held; the carry goes from one
    micro-batch to the next.

    Returns:
        gradients, loss, metrics added over the micro-batches (each term among them, as (sum, weight)), and the carry.
    """
    totals = {name: jnp.where(weight == 0, 1, weight) for name, weight in objective.weights(batch).items()}

    def loss_of(params: Any, rows: Batch, key: Array | None, carry: Carry) -> tuple[Array, tuple[Metrics, Carry]]:
        terms, metrics, carry = objective.loss(models, frozen | params, rows, key=key, carry=carry)
        if terms.keys() != totals.keys():
            raise ValueError(f"{objective}: loss has terms {sorted(terms)}, weights has {sorted(totals)}")
        loss = sum(term.coefficient * term.sum / totals[name] for name, term in terms.items())
        return loss, ({name: (term.sum, term.weight) for name, term in terms.items()} | metrics, carry)

    def gradients_of(index: Any, rows: Batch, carry: Carry) -> tuple[Any, Array, Metrics, Carry]:
        own_key = None if key is None else jax.random.fold_in(key, index)
        (loss, (metrics, carry)), gradients = jax.value_and_grad(loss_of, has_aux=True)(params, rows, own_key, carry)
        return gradients, loss, metrics, carry

    if micro_batches == 1:
        return gradients_of(0, batch, carry)

    def add(total: Any, step: tuple[Array, Batch]) -> tuple[Any, None]:
        *sums, carry = total
        *new, carry = gradients_of(*step, carry)
        return (*jax.tree.map(jnp.add, tuple(sums), tuple(new)), carry), None

    rows = split_rows(batch, micro_batches=micro_batches)
    shapes = jax.eval_shape(gradients_of, 0, jax.tree.map(lambda x: x[0], rows), carry)
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes[:3])
    (gradients, loss, metrics, carry), _ = jax.lax.scan(add, (*zeros, carry), (jnp.arange(micro_batches), rows))
    return gradients, loss, metrics, carry


def split_rows(batch: Batch, *, micro_batches: int) -> dict[str, Array]:
    """The batch as [micro_batches, rows, ...]: micro-batch m has rows m, m + micro_batches, ...

    Strided, because then each device's share of every micro-batch is among the rows it holds already.

    Example:
        >>> split_rows({"x": jnp.arange(4)}, micro_batches=2)["x"].tolist()
        [[0, 2], [1, 3]]
    """

    def split(x: Array) -> Array:
        return jnp.swapaxes(jnp.reshape(x, (-1, micro_batches, *x.shape[1:])), 0, 1)

    return {name: split(jnp.asarray(value)) for name, value in batch.items()}


@dataclasses.dataclass(frozen=True)
class TrainStep:
    """`train_step` compiled: `step(state, batch) -> (state, metrics)`; the state given is donated, but for `frozen`."""

    jitted: Any

    def __call__(self, state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
        """The state after one update, and (sum, weight) of each metric."""
        new, metrics = self.jitted(dataclasses.replace(state, frozen={}), state.frozen, batch)
        return dataclasses.replace(new, frozen=state.frozen), metrics

    def lower(self, state: TrainState, batch: Mapping[str, Any]) -> jax.stages.Lowered:
        """The program for arguments of these shapes and shardings, not compiled."""
        return self.jitted.lower(dataclasses.replace(state, frozen={}), state.frozen, batch)


def make_train_step(
    objective: Objective,
    models: Mapping[str, Any],
    optimizer: optax.GradientTransformation,
    *,
    seed: int,
    micro_batches: int = 1,
    rate: Callable[..., Array] | None = None,
    state_shardings: TrainState | None = None,
    policy: Faults | None = None,
) -> TrainStep:
    """The compiled training step of a run.

    Args:
        objective: see `t2t/objectives/base.py`.
        models: networks by role.
        optimizer: made by a config's `make`.
        seed: of dropout and sampling: step s, micro-batch m draws from fold_in(fold_in(key(seed), s), m).
        micro_batches: number of parts the rows are computed in, one after another.
        rate: the learning rate of each step, to report it.
        state_shardings: where the new state shall live; None: where XLA leaves it.
        policy: which steps are left out; None leaves out none.

    Raises:
        ValueError: if the objective cannot be computed in parts.
    """
    if micro_batches > 1 and not objective.additive:
        raise ValueError(
            f"{type(objective).__name__} compares the rows of a batch with each other, so "
            f"micro_batches={micro_batches} would change what it means: set micro_batches=1"
        )
    step = functools.partial(
        train_step,
        objective=objective,
        models=models,
        optimizer=optimizer,
        rate=rate,
        seed=seed,
        micro_batches=micro_batches,
        policy=policy,
    )

    def without_frozen(state: TrainState, frozen: Any, batch: Batch) -> tuple[TrainState, Metrics]:
        new, metrics = step(dataclasses.replace(state, frozen=frozen), batch)
        return dataclasses.replace(new, frozen={}), metrics

    if state_shardings is None:
        return TrainStep(jax.jit(without_frozen, donate_argnums=0))
    out = (dataclasses.replace(state_shardings, frozen={}), state_shardings.step)  # metrics: a copy everywhere, as step
    return TrainStep(jax.jit(without_frozen, donate_argnums=0, out_shardings=out))


def make_eval_step(objective: Objective, models: Mapping[str, Any]) -> Callable[[Any, Batch], Metrics]:
    """The compiled evaluation step: `step(params of every role, batch)` -> (sum, weight) of each term and metric.

    Deterministic, without the carry of training, and without label smoothing: the losses of runs that smooth and of
    runs that do not can be compared, and exp(cross entropy) is the perplexity.
    """
    recurrent = recurrent_eval_step(objective, models)
    return jax.jit(lambda params, batch: recurrent(params, batch, ())[0])


def recurrent_eval_step(
    objective: Objective, models: Mapping[str, Any]
) -> Callable[[Any, Batch, Carry], tuple[Metrics, Carry]]:
    """The same with a carry of its own, not compiled: `step(params, batch, carry)` -> (metrics, the next carry)."""
    if getattr(objective, "label_smoothing", 0.0):
        objective = dataclasses.replace(objective, label_smoothing=0.0)  # type: ignore[type-var]

    def eval_step(params: Any, batch: Batch, carry: Carry) -> tuple[Metrics, Carry]:
        terms, metrics, carry = objective.loss(models, params, batch, key=None, carry=carry)
        return {name: (term.sum, term.weight) for name, term in terms.items()} | metrics, carry

    return eval_step
