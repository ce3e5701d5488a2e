"""`t2t plan CONFIG --topology v5e:16x16`: what a run would take on a slice of TPU chips, without one."""

import contextlib
import dataclasses
import json
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import tyro

from t2t.commands import arguments as arguments_lib
from t2t.config import Experiment
from t2t.errors import UsageError

if TYPE_CHECKING:
    from t2t.planning.report import Plan
    from t2t.planning.topology import Topology

SILENCE = 20.0
"""Seconds after which a plain terminal is told that a compilation still goes on."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """What is about this call and no part of the experiment."""

    slices: int = 1
    """Equal slices, joined by the network of the data centre."""
    without_libtpu: bool = False
    """Say what needs no compiler: state exactly, activations and times by estimate."""
    price: float | None = None
    """Dollars of a chip and hour, to state what 100 billion tokens cost."""
    alternatives: int = 2
    """Where the run does not fit: find so many changes that do (0: none)."""
    tries: int = 8
    """Where the run does not fit: compile at most so many changes."""
    quick: bool = False
    """Compile with less care for speed: the same memory sooner, times a little worse."""
    json: bool = False
    """Print one JSON object."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan_(Options):  # noqa: N801 - the name tyro shows
    """Compile a run's real training step for a slice of TPU chips that need not be there, and say whether it fits.

    The config comes first: t2t plan CONFIG --topology v5e:16x16. Topologies are slices of v4, v5e, v5p and v6e, such as
    v5e:4x4 or v5p:4x4x8; without one the config's own is taken. Every setting of the config is an option, as of t2t
    train. Shown are the memory of a chip, operations, collectives, the time of a step at least and by the compiler's
    estimate, and costs; where the run does not fit, which changes make it. The exit code is 0 where it fits, 1 where it
    does not.
    """

    config: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="CONFIG")]
    """A Python file, a name under configs/ (pretrain/t5_small), or the directory of a run."""
    topology: str | None = None
    """The slice, such as v5e:16x16."""


def run(arguments: Sequence[str]) -> int:
    """Resolve experiment and topology, compile, report."""
    from t2t.planning import topology as topologies

    topologies.prepare_environment()  # before a config imports JAX
    config, settings = arguments_lib.split_config(arguments)
    if config is None:
        given = arguments_lib.parse(Plan_, arguments, command="plan")
        source = arguments_lib.find_experiment(given.config)
        experiment = dataclasses.replace(source.experiment, topology=given.topology or source.experiment.topology)
        options: Options = given
    else:
        source = arguments_lib.find_experiment(config)
        options, experiment = arguments_lib.parse_settings(Options, settings, source=source, command=f"plan {config}")
    if experiment.topology is None:
        raise UsageError(f"{experiment.name} states no topology: give one, such as --topology v5e:4x4")
    if options.price is not None and options.price <= 0:
        raise UsageError(f"--price {options.price}: dollars of a chip and hour are more than 0")
    return _plan(experiment, topologies.parse(experiment.topology, slices=options.slices), options)


def _plan(experiment: Experiment, topology: "Topology", options: Options) -> int:
    with _clock(f"compiling {experiment.name} for {topology}", on=not options.without_libtpu):
        import jax

        jax.config.update("jax_enable_compilation_cache", False)
        from t2t.planning import compiled, report

        devices = topology.stand_ins() if options.without_libtpu else topology.devices()
        pieces = compiled.pieces_of(experiment, devices)
        outcome = None if options.without_libtpu else compiled.compile_step(pieces, quick=options.quick)
    plan = report.make(pieces, topology, outcome, price=options.price)
    if isinstance(outcome, compiled.Overflow) and options.alternatives:
        plan = _search(plan, devices, options)
    if options.json:
        json.dump(report.to_json(plan), sys.stdout, indent=2)
        print()
    else:
        for line in report.text(plan):
            print(line, flush=True)
    return 0 if plan.fits else 1


def _search(plan: "Plan", devices: Sequence[object], options: Options) -> "Plan":
    """The plan with the changes that were tried."""
    from t2t.planning import compiled, search

    def compile_variant(variant: search.Variant, pieces: object) -> "compiled.Step | compiled.Overflow":
        with _clock(f"it does not fit; trying {variant.flags}"):
            return compiled.compile_step(pieces, quick=True)  # type: ignore[arg-type]

    experiment = plan.pieces.experiment
    found = search.search(
        experiment,
        plan.topology,
        plan.outcome,  # type: ignore[arg-type]
        wanted=options.alternatives,
        tries=options.tries,
        compile_variant=compile_variant,
        devices=devices,
    )
    return dataclasses.replace(plan, tried=list(found))


@contextlib.contextmanager
def _clock(what: str, *, on: bool = True) -> Iterator[None]:
    """Says on standard error what goes on, and again with the time when that takes long."""
    if not on:
        yield
        return
    started, ended = time.monotonic(), threading.Event()
    print(what, file=sys.stderr, flush=True)

    def watch() -> None:
        while not ended.wait(SILENCE):
            print(f"{what} ({time.monotonic() - started:.0f} s)", file=sys.stderr, flush=True)

    thread = threading.Thread(target=watch, name="t2t-plan", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    print(f"{what}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
