"""What `data.train` names, task or mixture or {name: rate}, flattened to its tasks and one rate for each."""

from collections.abc import Mapping

from t2t.data import host_tensorflow  # noqa: F401 # isort: skip - its settings come before seqio
import seqio

from t2t.data import mixing
from t2t.data.examples import get_provider

Named = str | seqio.Task | seqio.Mixture
"""A task or mixture, or its registered name."""

Spec = Named | Mapping[Named, float]
"""One of them, or the rates of several."""


def leaf_tasks(spec: Spec) -> list[seqio.Task]:
    """The tasks of a mixture, of its mixtures and so on, each once, by name.

    Raises:
        ValueError: a name that is not registered.
    """
    tasks = {}
    for provider in _providers(spec):
        for task in [provider] if isinstance(provider, seqio.Task) else provider.tasks:
            tasks[task.name] = task
    return [tasks[name] for name in sorted(tasks)]


def flat_rates(spec: Spec, counts: Mapping[str, int]) -> dict[str, float]:
    """The rate of each task; a nested mixture's rate is shared out among its tasks in proportion to theirs.

    `counts` are the examples of each task after preprocessing: what rates that are functions of the task
    (`mixing.ExampleCount`, `seqio.mixing_rate_num_examples`) see as its `num_input_examples`. Rate 0 leaves a task out.

    Raises:
        ValueError: a rate is negative or not finite, or all are 0.
    """
    rates: dict[str, float] = {}
    for provider, rate in _providers(spec).items():
        for task, share in _shares(provider, counts).items():
            rates[task] = rates.get(task, 0.0) + rate * share
    wrong = {name: rate for name, rate in rates.items() if not 0 <= rate < float("inf")}
    if wrong or not any(rates.values()):
        raise ValueError(f"Rates of a mixture must be at least 0, finite and not all 0; got {wrong or rates}.")
    return {name: rates[name] for name in sorted(rates) if rates[name]}


def rate_table(spec: Spec, counts: Mapping[str, int]) -> str:
    """The tasks of a mixture as a table for people: examples, rate, and share of the examples that are read."""
    return mixing.rate_table(flat_rates(spec, counts), counts)


def stated_table(spec: Spec) -> str:
    """The same without reading anything, by the numbers of examples that the tasks' sources state.

    Raises:
        ValueError: a rate depends on a number that no source states.
    """
    tasks = leaf_tasks(spec)
    stated = {task.name: _stated(task) for task in tasks}
    counts = {name: number for name, number in stated.items() if number is not None}
    try:
        return mixing.rate_table(flat_rates(spec, counts), counts)
    except KeyError as error:
        raise ValueError(f"The number of examples of {error} is not known before it is read.") from error


def _stated(task: seqio.Task) -> int | None:
    # Sources of seqio would look for the data themselves, and download what describes them.
    return task.source.num_input_examples("train") if hasattr(task.source, "num_examples") else None


def _providers(spec: Spec) -> dict[seqio.Task | seqio.Mixture, float]:
    rates = spec if isinstance(spec, Mapping) else {spec: 1.0}
    return {get_provider(name): float(rate) for name, rate in rates.items()}


def _shares(provider: seqio.Task | seqio.Mixture, counts: Mapping[str, int]) -> dict[str, float]:
    # Fractions of 1 by task. A mixture inside a mixture gets what its own rate says, whatever its rates add up to.
    if isinstance(provider, seqio.Task):
        return {provider.name: 1.0}
    rates: dict[str, float] = {}
    for name, rate in provider.rate_per_task_name.items():
        part = _part(provider, name)
        value = float(rate(_Counted(part, counts)) if callable(rate) else rate)
        for task, share in _shares(part, counts).items():
            rates[task] = rates.get(task, 0.0) + value * share
    total = sum(rates.values())
    if not total > 0:
        raise ValueError(f"The rates of mixture '{provider.name}' add up to {total}.")
    return {task: rate / total for task, rate in rates.items()}


def _part(mixture: seqio.Mixture, name: str) -> seqio.Task | seqio.Mixture:
    # Mixtures that are not registered hold parts that need not be either.
    return mixture._task_map[name]


class _Counted:
    """A task or mixture that says how many examples it has after preprocessing; a mixture has those of its tasks."""

    cache_dir = None  # seqio.mixing_rate_num_examples would read counts from there

    def __init__(self, task: seqio.Task | seqio.Mixture, counts: Mapping[str, int]) -> None:
        self._task = task
        self._counts = counts

    def __getattr__(self, name: str):
        return getattr(self._task, name)

    def num_input_examples(self, split: str) -> int:
        del split  # counts are of the split that is trained on
        tasks = [self._task] if isinstance(self._task, seqio.Task) else self._task.tasks
        return sum(self._counts[task.name] for task in tasks)
