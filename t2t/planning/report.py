"""A plan as text and as JSON."""

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp

from t2t.planning import analytic, compiled, costs
from t2t.planning.analytic import Held
from t2t.planning.compiled import Overflow, Step
from t2t.planning.costs import Exchange, Times
from t2t.planning.search import Tried
from t2t.planning.topology import GIB, Topology
from t2t.train.build import Pieces


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """What is known of a run on a topology."""

    topology: Topology
    pieces: Pieces
    held: Held
    kept: float | None
    """Estimated bytes of activations; None where the compiler was asked."""
    outcome: Step | Overflow | None
    """Of compiling; None without libtpu."""
    operations: float
    """By the formula, of a step on all chips."""
    tokens: int
    """Positions of a batch, of both sides."""
    exchanges: list[Exchange]
    times: Times | None
    """None where the step does not compile."""
    price: float | None
    """Dollars of a chip and hour."""
    tried: list[Tried] = dataclasses.field(default_factory=list)

    @property
    def peak(self) -> float:
        """Bytes of a chip's memory that the step needs, or would need, or by the estimate."""
        if isinstance(self.outcome, Step):
            return self.outcome.peak
        if isinstance(self.outcome, Overflow):
            return self.held.arguments + self.outcome.required
        return self.held.arguments + self.held.gradients + (self.kept or 0.0)

    @property
    def fits(self) -> bool:
        """Whether every chip has the memory."""
        return self.peak <= self.topology.chip.hbm and not isinstance(self.outcome, Overflow)


def make(pieces: Pieces, topology: Topology, outcome: Step | Overflow | None, *, price: float | None) -> Plan:
    """The plan of a run from its pieces and what compiling its step gave."""
    held = analytic.held(pieces)
    found = outcome.exchanges if isinstance(outcome, Step) else analytic.exchanges(pieces)
    exchanges = costs.by_kind(found, pieces.mesh, topology)
    operations = compiled.model_operations(pieces)
    work = outcome.work if isinstance(outcome, Step) else None
    return Plan(
        topology=topology,
        pieces=pieces,
        held=held,
        kept=analytic.kept(pieces).on_chip(pieces.experiment, pieces.mesh.shape) if outcome is None else None,
        outcome=outcome,
        operations=operations,
        tokens=compiled.num_tokens(compiled.batch_shapes(pieces)),
        exchanges=exchanges,
        times=None if isinstance(outcome, Overflow) else costs.times(operations, work, exchanges, topology),
        price=price,
    )


def text(plan: Plan) -> Iterator[str]:
    """The plan line by line."""
    chip, topology = plan.topology.chip, plan.topology
    yield _summary(plan.pieces)
    rings = sum(topology.rings)
    yield (
        f"{topology}: {topology.num_chips} chips on {topology.num_hosts} hosts, "
        f"{f'{rings} rings' if rings else 'no rings'}; a chip has "
        f"{chip.peak / 1e12:,.0f} TFLOP/s, {chip.hbm / GIB:.2f} GiB at {chip.hbm_bandwidth / 1e9:,.0f} GB/s, "
        f"{chip.link_bandwidth / 1e9:.0f} GB/s a link each way"
    )
    yield ""
    yield from _verdict(plan)
    yield ""
    yield from _memory(plan)
    yield ""
    yield from _operations(plan)
    if plan.exchanges:
        yield ""
        yield from _exchanges(plan)
    if plan.times is not None:
        yield ""
        yield from _times(plan.times, plan)
    if plan.tried:
        yield ""
        yield from _tried(plan)


def _summary(pieces: Pieces) -> str:
    experiment = pieces.experiment
    parameters = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(pieces.state.params))
    mesh = " x ".join(f"{axis}={size}" for axis, size in pieces.mesh.shape.items() if size > 1) or "1 chip"
    micro_batches, dtype = experiment.train.micro_batches, jnp.dtype(next(iter(pieces.models.values())).dtype).name
    return (
        f"{experiment.name}: {parameters:,} parameters, {dtype}, {mesh}, batch of {experiment.data.batch_size} rows"
        + (f" in {micro_batches} micro-batches" if micro_batches > 1 else "")
        + (f", remat {experiment.train.remat}" if experiment.train.remat else "")
    )


def _verdict(plan: Plan) -> Iterator[str]:
    capacity = plan.topology.chip.hbm
    how = "" if plan.outcome is not None else ", by the estimate"
    if plan.fits:
        yield f"it fits{how}: {_size(plan.peak)} of {_size(capacity)} on each chip ({plan.peak / capacity:.0%})"
    else:
        yield f"IT DOES NOT FIT{how}: a chip needs {_size(plan.peak)} and has {_size(capacity)}"


def _memory(plan: Plan) -> Iterator[str]:
    held = plan.held
    rest = plan.peak - held.arguments
    yield "memory of a chip, at the fullest moment"
    yield f"  parameters              {_size(held.parameters)}"
    yield f"  optimizer               {_size(held.optimizer)}"
    yield f"  batch and other state   {_size(held.batch + held.other_state)}"
    if plan.outcome is None:
        yield f"  gradients               {_size(held.gradients)}"
        yield f"  activations             {_size(rest - held.gradients)}  (estimate: kept for the backward pass)"
        return
    yield f"  activations, gradients  {_size(rest)}  (gradients alone {_size(held.gradients)})"
    if isinstance(plan.outcome, Step):
        yield f"  peak                    {_size(plan.peak)}, and {_size(plan.outcome.program)} of program"


def _operations(plan: Plan) -> Iterator[str]:
    chips = plan.topology.num_chips
    yield "operations of a step"
    yield f"  by the formula          {plan.operations:.4g}, {plan.operations / chips:.4g} a chip"
    if not isinstance(plan.outcome, Step):
        return
    work, counted = plan.outcome.work, plan.outcome.xla_operations
    yield (
        f"  by XLA                  {counted:.4g} a chip with the body of each loop once, "
        f"{counted + work.looped_operations:.4g} as often as they run"
    )
    share = work.matrix_operations * chips / plan.operations
    yield f"  matrix products         {work.matrix_operations:.4g} a chip, {share:.3f} of the formula's"
    if work.kernels:
        yield f"  ({work.kernels} custom kernels are in no count of the program)"
    yield (
        f"  intensity               {work.matrix_operations / work.bytes:,.0f} operations a byte "
        f"({work.bytes / 1e9:,.1f} GB a chip); the chip is balanced at "
        f"{plan.topology.chip.peak / plan.topology.chip.hbm_bandwidth:,.0f}"
    )


def _exchanges(plan: Plan) -> Iterator[str]:
    if not isinstance(plan.outcome, Step):
        yield "collectives by the estimate, those of data and fsdp alone"
    yield f"{'collectives':<28}{'along':<22}{'times':>7}{'GB':>10}{'ms at least':>13}{'hidden':>9}"
    for one in plan.exchanges:
        along = " x ".join(one.axes) or "?"
        yield (
            f"  {one.kind:<26}{along:<22}{one.times:>7,}{one.bytes / 1e9:>10.3f}{one.seconds * 1e3:>13.2f}"
            f"{one.hidden / one.seconds if one.seconds else 0:>9.0%}"
        )


def _times(times: Times, plan: Plan) -> Iterator[str]:
    memory = "" if times.memory is None else f", memory {times.memory * 1e3:,.1f}"
    yield (
        f"a step takes at least {times.bound * 1e3:,.1f} ms, bound by {times.limit} "
        f"(ms: compute {times.compute * 1e3:,.1f}{memory}, interconnect {times.links * 1e3:,.1f})"
    )
    for name, seconds in _candidates(times):
        share = costs.utilisation(plan.operations, seconds, plan.topology)
        line = f"  {name:<20}{seconds * 1e3:>10,.1f} ms, MFU {share:.1%}, {plan.tokens / seconds:,.0f} tokens/s"
        if plan.price is not None:
            cost = costs.dollars(plan.tokens, seconds, plan.topology, price=plan.price)
            line += f", ${cost:,.0f} for 100 billion tokens"
        yield line
    steps = plan.pieces.experiment.train.steps
    seconds = times.expected or times.bound
    yield f"  {steps:,} steps of {plan.tokens:,} tokens (positions of all sides) take {_duration(steps * seconds)}" + (
        "" if times.expected else " at least"
    )


def _candidates(times: Times) -> Iterator[tuple[str, float]]:
    yield "at best", times.bound
    if times.expected is not None:
        yield "by XLA's estimate", times.expected


def _tried(plan: Plan) -> Iterator[str]:
    fitting = [one for one in plan.tried if one.fits]
    yield "changes that fit" if fitting else "no change that was tried fits; a larger topology does, or a smaller model"
    for one in fitting or plan.tried:
        needed = one.outcome.peak if isinstance(one.outcome, Step) else one.outcome.required
        slower = "" if not one.fits else f", a step takes some {one.variant.slowdown:.2f} of the time"
        yield f"  {one.variant.flags:<60} {_size(needed)}{slower}"
    failed = [one for one in plan.tried if not one.fits]
    if fitting and failed:
        yield f"tried and too large: {'; '.join(one.variant.flags for one in failed)}"


def to_json(plan: Plan) -> dict[str, Any]:
    """The plan as JSON; sizes in bytes, times in seconds, of a step and a chip where not said otherwise."""
    step = plan.outcome if isinstance(plan.outcome, Step) else None
    found: dict[str, Any] = {
        "name": plan.pieces.experiment.name,
        "topology": str(plan.topology),
        "chips": plan.topology.num_chips,
        "mesh": dict(plan.pieces.mesh.shape),
        "fits": plan.fits,
        "compiled": step is not None,
        "memory": {**dataclasses.asdict(plan.held), "peak": plan.peak, "available": plan.topology.chip.hbm},
        "tokens": plan.tokens,
        "operations": {"formula_all_chips": plan.operations},
        "collectives": [dataclasses.asdict(one) for one in plan.exchanges],
        "tried": [
            {"changes": dict(one.variant.changes), "fits": one.fits, "slowdown": one.variant.slowdown}
            for one in plan.tried
        ],
    }
    if step is not None:
        found["operations"] |= {
            "xla_loops_once": step.xla_operations,
            "xla": step.xla_operations + step.work.looped_operations,
            "matrix_products": step.work.matrix_operations,
        }
        found["memory"]["traffic"] = step.work.bytes
        found["compile_seconds"] = step.seconds
    if plan.times is not None:
        found["seconds"] = {**dataclasses.asdict(plan.times), "bound": plan.times.bound, "limit": plan.times.limit}
        found["mfu"] = {
            name: costs.utilisation(plan.operations, seconds, plan.topology)
            for name, seconds in (("bound", plan.times.bound), ("expected", plan.times.expected))
            if seconds
        }
        if plan.price is not None:
            best, expected = plan.times.bound, plan.times.expected or plan.times.bound
            found["dollars_per_100_billion_tokens"] = {
                "at_least": costs.dollars(plan.tokens, best, plan.topology, price=plan.price),
                "expected": costs.dollars(plan.tokens, expected, plan.topology, price=plan.price),
            }
    return found


def _size(count: float) -> str:
    return f"{count / GIB:8.3f} GiB"


def _duration(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> _duration(5400), _duration(864000)
    ('1.5 hours', '10.0 days')
    """
    return f"{seconds / 3600:,.1f} hours" if seconds < 2 * 86400 else f"{seconds / 86400:,.1f} days"
