"""`t2t tasks [NAME]`: the tasks that can be trained and evaluated, and examples of one as a model would see them."""

import dataclasses
import pathlib
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

import tyro

from t2t import finding
from t2t.commands import arguments as arguments_lib
from t2t.config import MAX_OPEN_ROWS, MAX_SEED
from t2t.errors import UsageError

FOLDED = 20
"""Tasks of a mixture, such as languages, that the list of all tasks holds one by one; of more it shows the mixture."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tasks:
    """List the tasks that can be trained and evaluated, or show examples of one as a model gets them.

    Inputs and targets with masked and replaced tokens in colours, which positions the loss counts, where examples of a
    row begin, who may read whom; and in numbers the lengths, the padding and the share of tokens with loss. Examples
    come in the order in which a run with this seed draws them.
    """

    name: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[NAME]")] = None
    """A task or mixture, such as pydocs_topic; without one all are listed."""
    modules: tuple[str, ...] = ()
    """Python modules that register tasks; none takes every module under tasks/."""
    examples: int = 3
    """Examples that are shown, of each task of a mixture."""
    statistics: int = 1000
    """Examples that are counted, of each task; 0 counts none."""
    rates: bool = False
    """Show only the rates of a mixture, by the numbers of examples that are published, and read nothing."""
    html: str | None = None
    """File of a page to write too, which holds everything and loads nothing."""
    split: str = "train"
    """Part of the task that they come from."""
    vocabulary: str | None = None
    """Directory or file of a vocabulary; None takes bytes."""
    lengths: dict[str, int] = dataclasses.field(default_factory=lambda: {"inputs": 128, "targets": 128})
    """Tokens of each feature in a row, to which long texts are cut."""
    model: Literal["encoder", "decoder", "prefix-lm", "encoder-decoder", "permutation"] | None = None
    """The kind of model that reads them; None is the usual one for their features."""
    packing: bool = True
    """Whether several short examples share a row."""
    open_rows: int = 1
    """Rows that packing keeps open, as data.open_rows of a run; 1 appends each example to the last row."""
    seed: int = 0
    """Of order and corruption."""


def run(arguments: Sequence[str]) -> int:
    """List the tasks, or show one."""
    options = arguments_lib.parse(Tasks, arguments, command="tasks")
    _check(options)
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
    if options.rates:
        _show_rates(provider)
    else:
        _show(provider, options, vocabulary)
    return 0


def _show_rates(provider: Any) -> None:
    from t2t.data import mixtures

    try:
        print(mixtures.stated_table(provider))
    except ValueError as error:
        raise UsageError(f"{error} Without --rates it is counted") from error


def _check(options: Tasks) -> None:
    """Refuses what cannot work, before TensorFlow is imported."""
    for name in ("examples", "statistics"):
        if getattr(options, name) < 0:
            raise UsageError(f"--{name} is {getattr(options, name)}; it must not be negative")
    wrong = {name: length for name, length in options.lengths.items() if length < 1}
    if wrong:
        raise UsageError(f"--lengths must be positive numbers of tokens, got {wrong}")
    if not 0 <= options.seed <= MAX_SEED:
        raise UsageError(f"--seed is {options.seed}; it must lie between 0 and {MAX_SEED}")
    if not 1 <= options.open_rows <= (MAX_OPEN_ROWS if options.packing else 1):
        possible = f"lie between 1 and {MAX_OPEN_ROWS}" if options.packing else "be 1 with --no-packing"
        raise UsageError(f"--open-rows is {options.open_rows}; it must {possible}")
    if options.rates and options.name is None:
        raise UsageError("--rates are those of one mixture: name it")
    if options.html is not None:
        if options.name is None:
            raise UsageError("--html is a page of one task or mixture: name it")
        page = pathlib.Path(options.html)
        if page.is_dir():
            raise UsageError(f"--html {page} is a directory; give a file to write")
        if page.is_file() and page.suffix.lower() not in (".html", ".htm"):
            raise UsageError(f"--html {page} is there already and no page by its name; give a name that ends in .html")
        arguments_lib.check_writable(page.parent, instead="give another --html")


def _list_all() -> None:
    from t2t.data import examples as examples_lib

    rows = [("name", "objective", "features", "splits", "metrics")]
    providers = examples_lib.registered()
    mixtures = [provider for provider in providers if not isinstance(provider, examples_lib.Task)]
    folded = {task.name for mixture in mixtures if len(mixture.tasks) > FOLDED for task in mixture.tasks}
    for provider in providers:
        if provider.name in folded:
            continue
        if isinstance(provider, examples_lib.Task):
            metrics = ", ".join(metric.__name__ for metric in provider.predict_metric_fns)
            features, splits = ", ".join(provider.output_features), ", ".join(provider.splits)
            rows.append((provider.name, _objective(provider), features, splits, metrics))
        else:
            rows.append((provider.name, f"mixture of {_parts(provider)}", "", "", ""))
    widths = [max(len(row[column]) for row in rows if row[2]) for column in range(5)]
    for row in rows:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def _parts(mixture: Any) -> str:
    """The tasks of a mixture; of many their number, the first and the last."""
    names = sorted(task.name for task in mixture.tasks)
    return ", ".join(names) if len(names) <= FOLDED else f"{len(names)} tasks, {names[0]} to {names[-1]}"


def _objective(task: Any) -> str:
    from t2t.data import examples as examples_lib

    corruption = examples_lib.split_corruption(task)[1]
    return "text to text" if corruption is None else type(corruption).__name__


def _show(provider: Any, options: Tasks, vocabulary: Any) -> None:
    from rich.console import Console

    from t2t.commands import page, tasks_page, tasks_text
    from t2t.commands.pieces import Speller
    from t2t.data import mixtures

    speller, console, shown, counts = Speller(vocabulary), Console(), [], {}
    for task in mixtures.leaf_tasks(provider):
        read = _read(task, options, vocabulary)
        counts[task.name] = len(read)
        view = _view(task, read, options, vocabulary)
        print(f"{view['name']}: {view['about']}\n")
        marks = {name for side in view["marks"] for name in side}
        console.print(tasks_text.legend(sorted(marks), colours=console.color_system is not None))
        for row in view["rows"]:
            tasks_text.show_row(console, row, speller)
        if view["numbers"]:
            print("\n".join(tasks_text.statistics(view["numbers"], judged=view["judged"])) + "\n")
        shown.append(view)
    if len(shown) > 1:
        print(mixtures.rate_table(provider, counts))
    if options.html is not None:
        path = pathlib.Path(options.html)
        path.parent.mkdir(parents=True, exist_ok=True)
        page.write(path, tasks_page.make(shown, speller))
        print(f"wrote {path}")


def _view(task: Any, read: Any, options: Tasks, vocabulary: Any) -> dict[str, Any]:
    """What is shown of a task: rows, and the numbers of more of them."""
    from t2t.data import readers, row_statistics, vocabularies

    reader = options.model or readers.usual_reader(read.features)
    example = read.example(0, epoch=0)
    converter = readers.make_converter(reader, example=example, lengths=options.lengths, vocabulary=vocabulary)
    special = vocabularies.special_tokens(vocabularies.SeqioVocabulary(vocabulary))
    shown: list[dict[str, Any]] = []
    rows = _keep(_rows(read, converter, options), shown, special, wanted=min(options.examples, len(read)))
    numbers = row_statistics.count(rows, special)
    lengths = ", ".join(f"{name} {length}" for name, length in converter.lengths.items())
    return {
        "name": task.name,
        "about": (
            f"{_objective(task)}, {len(read):,} examples in {options.split}, read by a model of the kind {reader} "
            f"(lengths {lengths})"
        ),
        "rows": shown,
        "numbers": numbers.to_json() if options.statistics else None,
        "marks": [side["marks"] for side in numbers.to_json()["sides"].values()],
        "judged": read.corruption is not None and read.corruption.corruption.judged,
    }


def _rows(read: Any, converter: Any, options: Tasks) -> Iterator[Any]:
    """Batches of one row, as a run gets them, with as many examples as are shown and counted, or all there are.

    Raises:
        UsageError: the task does not suit the model.
    """
    from t2t.data import pipeline

    try:
        stream = pipeline.Stream.of([read], [1.0], converter, seed=options.seed)
        batches = pipeline.TrainPipeline(stream, rows=1, packing=options.packing, open_rows=options.open_rows)
    except ValueError as error:
        raise UsageError(str(error)) from error
    left = min(max(options.statistics, options.examples), len(read))
    while left > 0:
        batch = next(batches)
        left -= _num_examples(batch)
        yield batch


def _keep(batches: Iterator[Any], shown: list[dict[str, Any]], special: Any, *, wanted: int) -> Iterator[Any]:
    """The same batches; the rows of the first ones, until so many examples are in them, are put into `shown`."""
    from t2t.data import views

    for batch in batches:
        if wanted > 0:
            number = _num_examples(batch)
            wanted -= number
            positions = [value for name, value in batch.items() if name.endswith("_segment_ids")]
            filled = ", ".join(f"{(value != 0).sum():,} of {value.size:,} positions" for value in positions)
            label = batch.get("next_sentence_labels")
            shown.append(
                {
                    "name": (
                        f"row {len(shown) + 1}: {number:,} example{'s' * (number != 1)}, {filled}"
                        + ("" if label is None else f", label {label[0]}")
                    ),
                    "strips": views.strips(batch, 0, special),
                    "attention": views.attention(batch, 0),
                }
            )
        yield batch


def _num_examples(batch: Any) -> int:
    return max(int(value.max()) for name, value in batch.items() if name.endswith("_segment_ids"))


def _read(task: Any, options: Tasks, vocabulary: Any) -> Any:
    from t2t.data import examples as examples_lib

    if options.split not in task.splits:
        raise UsageError(f"{task.name} has no split {options.split}; it has {', '.join(task.splits)}")
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
