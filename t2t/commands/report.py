"""`t2t report RUN ...`: losses at start and end, each task's metrics beside its baseline, and where everything is."""

import dataclasses
import json
import math
import pathlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any

import tyro

from t2t.commands import arguments as arguments_lib
from t2t.commands import metrics as metrics_lib
from t2t.errors import UsageError

LOWER_IS_BETTER = frozenset({"loss", "cross_entropy", "perplexity", "invalid_predictions", "wrong_lengths"})
"""Metrics whose lowest value is the best; of all others it is the highest."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report:
    """Show what runs have reached: losses, metrics beside baselines and their best step, and where everything is."""

    runs: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN ...")]
    """Directories of runs."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
    """One metric of one task at one step, beside what a predictor that has learned nothing reaches."""

    task: str
    split: str
    step: int
    metric: str
    value: float  # NaN where it is not finite
    baseline: float | None
    examples: int
    best: tuple[int, float] | None
    """The step of this run's best value, and that value; None where there is one step alone."""


def run(arguments: Sequence[str]) -> int:
    """Print the report of every run."""
    options = arguments_lib.parse(Report, arguments, command="report")
    if not options.runs:
        raise UsageError("name the directory of a run, such as runs/quickstart")
    runs = [pathlib.Path(name) for name in options.runs]
    for path in runs:
        if not (path / "metrics.jsonl").is_file():
            raise UsageError(f"{path} is no run that has logged anything: it has no metrics.jsonl")
    _print(("run", "steps", "loss at start", "at the end", "learned"), [_loss_row(path) for path in runs])
    rows = [_result_row(result) for path in runs for result in read_results(path)]
    if rows:
        print()
        _print(("task", "split", "examples", "metric", "result", "baseline", "best"), rows)
    print()
    arguments_lib.print_columns(dict(row for path in runs for row in _files(path)))
    return 0


def read_results(run: pathlib.Path) -> Iterator[Result]:
    """The metrics of the newest evaluation of every task and split; losses for tasks that have no other."""
    own = _own_files(run)
    for directory in sorted([*run.glob("eval/*"), *run.glob("eval_*/*")]):
        steps = sorted(int(file.stem) for file in directory.glob("*.json") if file.stem.isdecimal())
        if not steps:
            continue
        contents = [_read_result(directory / f"{step}.json") for step in steps]
        content = contents[-1]
        metrics: Mapping[str, float | None] = content["metrics"]
        baseline: Mapping[str, float] = content["baseline"] or {}
        of_texts = content.get("text_metrics", baseline)
        compared = {name for name in metrics if name in baseline} or set(metrics) - {"loss"}
        for name, shown, value in metrics_lib.present(metrics, of_texts=of_texts):
            if name in compared:
                yield Result(
                    task=_on_own_files(content["task"], content["split"], own),
                    split=content["split"],
                    step=content["step"],
                    metric=shown,
                    value=value,
                    baseline=baseline.get(name),
                    examples=int(metrics.get("examples") or 0),
                    best=_best(contents, name, of_texts=of_texts),
                )


def _best(contents: Sequence[Mapping[str, Any]], metric: str, *, of_texts: Collection[str]) -> tuple[int, float] | None:
    """The step with the best value of a metric, the earliest of equals, and the value as it is shown."""
    values = [
        (one["step"], value)
        for one in contents
        for name, _, value in metrics_lib.present(one["metrics"], of_texts=of_texts)
        if name == metric and not math.isnan(value)
    ]
    sign = 1.0 if metric in LOWER_IS_BETTER else -1.0
    return min(values, key=lambda one: (sign * one[1], one[0])) if len(values) > 1 else None


def _own_files(run: pathlib.Path) -> Mapping[str, str]:
    """The task that reads files of the user, by the splits that they hold."""
    file = run / "config.json"
    content = _read_json(file, advice="restore it") if file.is_file() else None
    try:
        data = content["experiment"]["data"] if isinstance(content, dict) and "experiment" in content else {}
        files = {"train": data.get("files"), "validation": data.get("eval_files")}
        return {split: data["train"] for split, given in files.items() if given}
    except (LookupError, TypeError, AttributeError) as error:
        raise UsageError(f"{file} is no config of a run; restore it") from error


def _on_own_files(task: str, split: str, own: Mapping[str, str]) -> str:
    return f"{task} on own files" if own.get(split) == task else task


def _read_result(file: pathlib.Path) -> dict[str, Any]:
    content = _read_json(file, advice="delete it and evaluate again with t2t eval")
    written = isinstance(content, dict) and {"task", "split", "step", "metrics", "baseline"} <= set(content)
    if not (written and isinstance(content["metrics"], dict) and isinstance(content["baseline"], dict | None)):
        raise UsageError(f"{file} is not what t2t eval writes; delete it and evaluate again")
    return content


def _read_json(file: pathlib.Path, *, advice: str) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError, IsADirectoryError, PermissionError) as error:
        raise UsageError(f"{file} is not JSON ({error}); {advice}") from error


def _loss_row(run: pathlib.Path) -> tuple[str, ...]:
    from t2t.train import writer

    try:
        log = [line for line in writer.read(run / "metrics.jsonl") if line["split"] == "train"]
    except ValueError as error:
        raise UsageError(str(error)) from error
    if not log:
        return (str(run), "0", "", "", "")
    first, last = log[0], log[-1]
    learned = _on_own_files(str(last["task"]), "train", _own_files(run))
    return (str(run), f"{last['step']:,}", f"{first['loss']:.3f}", f"{last['loss']:.3f}", learned)


def _result_row(result: Result) -> tuple[str, ...]:
    baseline = "" if result.baseline is None else f"{result.baseline:.1f}"
    shape = ".3g" if result.baseline is None else ".1f"
    best = "" if result.best is None else f"{result.best[1]:{shape}} at step {result.best[0]:,}"
    return (result.task, result.split, f"{result.examples:,}", result.metric, f"{result.value:{shape}}", baseline, best)


def _files(run: pathlib.Path) -> Iterator[tuple[str, str]]:
    for name, purpose in (
        ("checkpoints", "parameters, optimizer, position in the data"),
        ("vocabulary", "pieces of text and their ids"),
        ("metrics.jsonl", "every number above and more, by step"),
        ("events", "the same for tensorboard --logdir"),
        ("eval", "results and predictions by task"),
        ("eval_test", "the same on test examples"),
    ):
        if (run / name).exists():
            yield str(run / name), purpose


def _print(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    for row in (header, *rows):
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
