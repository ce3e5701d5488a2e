"""`t2t tasks [NAME]`: the tasks that can be trained and evaluated, and examples of one as a model would see them."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import tyro

from t2t import finding
from t2t.commands import arguments as arguments_lib
from t2t.errors import UsageError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tasks:
    """List the tasks that can be trained and evaluated, or show examples of one."""

    name: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[NAME]")] = None
    """A task or mixture, such as pydocs_topic; without one all are listed."""
    modules: tuple[str, ...] = ()
    """Python modules that register tasks; none takes every module under tasks/."""
    examples: int = 3
    """Examples that are shown."""
    split: str = "train"
    """Part of the task that they come from."""
    vocabulary: str | None = None
    """Directory or file of a vocabulary; None takes bytes."""
    lengths: dict[str, int] = dataclasses.field(default_factory=lambda: {"inputs": 128, "targets": 128})
    """Tokens of each feature, to which long texts are cut."""
    seed: int = 0
    """Of the corruption."""


def run(arguments: Sequence[str]) -> int:
    """List the tasks, or show one."""
    options = arguments_lib.parse(Tasks, arguments, command="tasks")
    finding.extend_path()
    modules = options.modules or finding.task_modules()
    finding.check_modules(modules)
    vocabulary = _vocabulary(options.vocabulary)
    with arguments_lib.status() as say:
        say("importing TensorFlow and the tasks")
        from t2t.data import examples as examples_lib  # which keeps TensorFlow quiet and off accelerators
        from t2t.train import tasks as tasks_lib

        tasks_lib.import_modules(modules)
    if options.name is None:
        _list_all()
        return 0
    try:
        provider = examples_lib.get_provider(options.name)
    except ValueError as error:
        raise UsageError(str(error)) from error
    _show(provider, options, vocabulary)
    return 0


def _list_all() -> None:
    from t2t.data import examples as examples_lib

    rows = [("name", "objective", "features", "splits", "metrics")]
    for provider in examples_lib.registered():
        if isinstance(provider, examples_lib.Task):
            metrics = ", ".join(metric.__name__ for metric in provider.predict_metric_fns)
            features, splits = ", ".join(provider.output_features), ", ".join(provider.splits)
            rows.append((provider.name, _objective(provider), features, splits, metrics))
        else:
            rows.append((provider.name, f"mixture of {', '.join(task.name for task in provider.tasks)}", "", "", ""))
    widths = [max(len(row[column]) for row in rows if row[2]) for column in range(5)]
    for row in rows:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def _objective(task: Any) -> str:
    from t2t.data import examples as examples_lib

    corruption = examples_lib.split_corruption(task)[1]
    return "text to text" if corruption is None else type(corruption).__name__


def _show(provider: Any, options: Tasks, vocabulary: Any) -> None:
    from t2t.data import mixtures

    for task in mixtures.leaf_tasks(provider):
        if options.split not in task.splits:
            raise UsageError(f"{task.name} has no split {options.split}; it has {', '.join(task.splits)}")
        read = _read(task, options, vocabulary)
        print(f"{task.name}: {_objective(task)}, {len(read):,} examples in {options.split}")
        for index in range(min(options.examples, len(read))):
            for name, line in _lines(read.example(index, epoch=0), vocabulary):
                print(f"  {name:<9}{line}")
            print()


def _read(task: Any, options: Tasks, vocabulary: Any) -> Any:
    from t2t.data import examples as examples_lib

    with arguments_lib.status() as say:
        say(f"reading {task.name}")
        return examples_lib.load_examples(
            task,
            options.split,
            vocabulary=vocabulary,
            lengths=options.lengths,
            seed=options.seed,
            progress=lambda name, count: say(f"reading {name}: {count:,} examples"),
        )


def _vocabulary(path: str | None) -> Any:
    from t2t.vocabulary import ByteVocabulary, Vocabulary

    if path is None:
        return ByteVocabulary(sentinels=300, modes=True)  # enough for every task
    try:
        return Vocabulary.load(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"--vocabulary: {error}") from error


def _lines(example: Mapping[str, Any], vocabulary: Any) -> Iterator[tuple[str, str]]:
    for name, values in example.items():
        if name == "weights":
            yield name, f"{int(values.sum())} of {len(values)} positions count"
        elif getattr(values, "ndim", 0) == 1:
            yield name, f"{vocabulary.decode(values)!r} ({len(values)} ids)"
