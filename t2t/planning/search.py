"""Which changes of rematerialisation, micro-batches, mesh or batch make a run fit that does not.

One setting is changed at a time first, then two, then three; among as many settings those come first that slow the run
down least. The estimate of `t2t.planning.analytic` tells which are worth compiling; every compilation corrects it.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from t2t.config import Experiment
from t2t.errors import UsageError
from t2t.planning import analytic, compiled
from t2t.planning.compiled import Overflow, Step
from t2t.planning.topology import Topology
from t2t.train import build
from t2t.train.build import Pieces

REMATS = {"none": 1.0, "dots": 1.05, "dots_no_batch": 1.2, "full": 1.33}
"""What the backward pass computes again, with the assumed time of a step relative to `none`."""
DOUBLED = {"micro_batches": 1.03, "fsdp": 1.06, "tensor": 1.15, "batch_size": 1.6}
"""The assumed time of a step relative to before, for each doubling; of the batch for each halving, the last resort."""
HALVINGS = 3
"""Of the batch, at most."""
MARGIN = 1.1
"""Estimates up to so much of the memory are tried."""


@dataclasses.dataclass(frozen=True)
class Variant:
    """A run with some settings changed."""

    experiment: Experiment
    changes: tuple[tuple[str, Any], ...]
    """Settings by their flags, with their new values."""
    slowdown: float

    @property
    def flags(self) -> str:
        """As options of the command line."""
        return " ".join(f"--{name.replace('_', '-')} {value}" for name, value in self.changes)


@dataclasses.dataclass(frozen=True)
class Tried:
    """A variant that was compiled."""

    variant: Variant
    pieces: Pieces
    outcome: Step | Overflow

    @property
    def fits(self) -> bool:
        """Whether a chip has the memory."""
        return isinstance(self.outcome, Step)


def variants(experiment: Experiment, topology: Topology) -> list[Variant]:
    """Every change worth thinking of, those of fewest settings first, then by their cost."""
    choices: list[list[tuple[dict[str, Any], float]]] = [
        list(_remats(experiment)),
        list(_micro_batches(experiment)),
        list(_meshes(experiment, topology)),
        list(_batches(experiment)),
    ]
    found = []
    for combination in itertools.product(*([({}, 1.0), *options] for options in choices)):
        changes = {name: value for part, _ in combination for name, value in part.items()}
        slowdown = 1.0
        for _, factor in combination:
            slowdown *= factor
        if changes:
            found.append((sum(bool(part) for part, _ in combination), slowdown, changes))
    found.sort(key=lambda entry: entry[:2])
    return [Variant(_changed(experiment, changes), tuple(changes.items()), slowdown) for _, slowdown, changes in found]


def _remats(experiment: Experiment) -> Iterator[tuple[dict[str, Any], float]]:
    now = experiment.train.remat or _stack_remat(build.reader(experiment.model))
    names = list(REMATS)
    for name in names[names.index(now) + 1 :]:
        yield {"train.remat": name}, REMATS[name] / REMATS[now]


def _stack_remat(model: Any) -> str:
    stacks = (getattr(model, name, None) for name in ("stack", "encoder", "decoder"))
    return max((stack.remat for stack in stacks if stack is not None), key=list(REMATS).index)


def _micro_batches(experiment: Experiment) -> Iterator[tuple[dict[str, Any], float]]:
    now, factor = experiment.train.micro_batches, 1.0
    if not experiment.objective.additive:
        return
    count = now * 2
    while experiment.data.batch_size % count == 0 and count <= experiment.data.batch_size:
        factor *= DOUBLED["micro_batches"]
        yield {"train.micro_batches": count}, factor
        count *= 2


def _meshes(experiment: Experiment, topology: Topology) -> Iterator[tuple[dict[str, Any], float]]:
    """More devices along fsdp, and with them along tensor; data takes what is left."""
    fsdp, tensor, sequence = experiment.mesh.fsdp, experiment.mesh.tensor, experiment.mesh.sequence
    if min(fsdp, tensor, sequence) < 1:
        return
    chips = topology.num_chips // topology.slices
    for more_tensor, more_fsdp in itertools.product((1, 2, 4), (2**power for power in range(13))):
        sizes = {"mesh.data": -1, "mesh.fsdp": fsdp * more_fsdp, "mesh.tensor": tensor * more_tensor}
        if more_fsdp * more_tensor == 1 or chips % (fsdp * more_fsdp * tensor * more_tensor * sequence):
            continue
        changed = {name: value for name, value in sizes.items() if value != _setting(experiment, name)}
        doublings = (more_fsdp.bit_length() - 1, more_tensor.bit_length() - 1)
        yield changed, DOUBLED["fsdp"] ** doublings[0] * DOUBLED["tensor"] ** doublings[1]


def _batches(experiment: Experiment) -> Iterator[tuple[dict[str, Any], float]]:
    size, factor = experiment.data.batch_size, 1.0
    for _ in range(HALVINGS):
        if size % 2:
            return
        size, factor = size // 2, factor * DOUBLED["batch_size"]
        yield {"data.batch_size": size}, factor


def _setting(experiment: Experiment, name: str) -> Any:
    part, field = name.split(".")
    return getattr(getattr(experiment, part), field)


def _changed(experiment: Experiment, changes: dict[str, Any]) -> Experiment:
    for name, value in changes.items():
        part, field = name.split(".")
        replaced = dataclasses.replace(getattr(experiment, part), **{field: value})
        experiment = dataclasses.replace(experiment, **{part: replaced})
    return experiment


@dataclasses.dataclass
class Estimator:
    """How much memory a variant needs, corrected by what compilations found.

    State depends on the mesh alone, what a row keeps on rematerialisation alone: each is worked out once.
    """

    devices: Sequence[Any]
    correction: float = 1.0
    _held: dict[Any, tuple[analytic.Held, Mapping[str, int]] | None] = dataclasses.field(default_factory=dict)
    _kept: dict[Any, analytic.Kept] = dataclasses.field(default_factory=dict)

    def __call__(self, experiment: Experiment) -> float | None:
        """Bytes on a chip; None where the sizes do not go together."""
        parts = self._parts(experiment)
        return None if parts is None else parts[0] + self.correction * parts[1]

    def learn(self, experiment: Experiment, outcome: Step | Overflow) -> None:
        """Corrects itself by what a variant really needs, so that no estimate is too hopeful twice."""
        arguments, added = self._parts(experiment) or (0.0, 1.0)
        real = outcome.required if isinstance(outcome, Overflow) else outcome.peak - arguments
        self.correction = max(self.correction, real / max(added, 1.0))

    def _parts(self, experiment: Experiment) -> tuple[float, float] | None:
        """Bytes that are there before a step, and those that it adds, by the estimate."""
        if experiment.mesh not in self._held:
            self._held[experiment.mesh] = self._look(experiment)
        found = self._held[experiment.mesh]
        if found is None:
            return None
        held, mesh = found
        rows = experiment.data.batch_size / (mesh["data"] * mesh["fsdp"] * experiment.train.micro_batches)
        if rows != int(rows):
            return None
        if experiment.train.remat not in self._kept:
            self._kept[experiment.train.remat] = analytic.kept(compiled.pieces_of(experiment, self.devices))
        return held.arguments, held.gradients + self._kept[experiment.train.remat].on_chip(experiment, mesh)

    def _look(self, experiment: Experiment) -> tuple[analytic.Held, Mapping[str, int]] | None:
        try:
            pieces = compiled.pieces_of(experiment, self.devices)
        except UsageError:
            return None
        return analytic.held(pieces), pieces.mesh.shape


def search(
    experiment: Experiment,
    topology: Topology,
    first: Step | Overflow,
    *,
    wanted: int,
    tries: int,
    compile_variant: Callable[[Variant, Pieces], Step | Overflow],
    devices: Sequence[Any],
) -> Iterator[Tried]:
    """Compiles variants until `wanted` of them fit, in different settings, or `tries` were compiled.

    Args:
        experiment: the run, which does not fit.
        topology: the chips.
        first: what compiling the run itself gave.
        wanted: changes that fit, in different settings.
        tries: compilations at most.
        compile_variant: compiles.
        devices: of the topology.

    Raises:
        ValueError: the run fits.
    """
    if isinstance(first, Step):
        raise ValueError("the run fits: there is nothing to search")
    estimate = Estimator(devices=devices)
    estimate.learn(experiment, first)
    fitting: set[frozenset[str]] = set()
    for variant in variants(experiment, topology):
        settings = frozenset("mesh" if name.startswith("mesh.") else name for name, _ in variant.changes)
        if len(fitting) >= wanted or tries <= 0:
            return
        if any(known <= settings for known in fitting):
            continue  # fewer changes do
        needed = estimate(variant.experiment)
        if needed is None or needed > MARGIN * topology.chip.hbm:
            continue
        tries -= 1
        pieces = compiled.pieces_of(variant.experiment, devices)
        tried = Tried(variant, pieces, compile_variant(variant, pieces))
        estimate.learn(variant.experiment, tried.outcome)
        if tried.fits:
            fitting.add(settings)
        yield tried
