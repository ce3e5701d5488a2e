"""The tasks of a run: registered by the modules of its config, read from its own files where it names some."""

import importlib
import importlib.util
import logging
import traceback
from collections.abc import Mapping, Sequence

from t2t.config import Experiment
from t2t.data import corpora, examples, features, file_source, mixtures, templates
from t2t.data.mixtures import Spec
from t2t.errors import UsageError
from t2t.train import suites, text_metrics

log = logging.getLogger(__name__)

SPLIT = "validation"
"""The split that evaluations during training read."""


def register(experiment: Experiment) -> None:
    """Imports the modules that register the tasks of the run.

    Raises:
        UsageError: a module of `data.modules` cannot be imported.
    """
    import_modules(experiment.data.modules)


def import_modules(names: Sequence[str]) -> None:
    """Imports modules of tasks.

    Raises:
        UsageError: what the code of a module raises, with the line in which it does.
    """
    for name in names:
        try:
            importlib.import_module(name)
        except OSError:  # a file that cannot be read now
            raise
        except Exception as error:  # the code of a user may raise anything
            here = importlib.util.find_spec(name)
            file = None if here is None else here.origin
            lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
            place = f" ({file}:{lines[-1]})" if lines else ""
            raise UsageError(
                f"the task module {name}{place} cannot be imported: {type(error).__name__}: {error}"
            ) from error


def to_train(experiment: Experiment) -> Spec:
    """What the run learns, as `t2t.data.pipeline.load_stream` takes it.

    Raises:
        UsageError: own files for a mixture, whose tasks would all read the same text.
    """
    own = _reader_of_files(experiment)
    if own is None or not experiment.data.files:
        return experiment.data.train
    return _with_files(experiment, own, split="train")


def check_trained(experiment: Experiment, *, converter: features.Converter | None = None) -> None:
    """Refuses what the run cannot learn, before anything is made for it.

    Raises:
        UsageError: a task that is not registered or, with a converter, does not suit the model; own files that are
            not there.
    """
    try:
        for task in mixtures.leaf_tasks(experiment.data.train):
            if converter is not None:
                converter.check_task(task.name, task.output_features)
    except ValueError as error:
        raise UsageError(f"data.train: {error}") from error
    to_train(experiment)


def to_evaluate(
    experiment: Experiment, names: Sequence[str] | None = None, *, split: str = SPLIT
) -> dict[str, examples.Task]:
    """The tasks to evaluate: `names`, or those of the config; with own held-out files, the training task on them.

    A mixture is evaluated task by task.

    Raises:
        UsageError: a name that is not registered, a task without this split, or own files for a mixture.
    """
    data, own = experiment.data, _reader_of_files(experiment)
    wanted = list(experiment.evaluate.tasks if names is None else names)
    if names is None and data.eval_files and own is not None and own not in wanted:
        wanted.append(own)
    found = {}
    for name in wanted:
        if name == own and not data.eval_files:
            log.warning("%s learns from data.files and is not evaluated: name held-out text in data.eval_files", name)
            continue
        try:
            named = [_with_files(experiment, name, split=split)] if name == own else mixtures.leaf_tasks(name)
        except corpora.CorpusError:
            raise
        except ValueError as error:
            raise UsageError(f"evaluate.tasks: {error}") from error
        for task in named:
            if split not in task.splits:
                splits = ", ".join(task.splits)
                raise UsageError(f"evaluate.tasks: {task.name} has no split '{split}'; it has {splits}")
            found[task.name] = task
    return found


def check_evaluated(found: Mapping[str, examples.Task], converter: features.Converter) -> None:
    """Refuses to evaluate what would fail: tasks that do not suit the model, metrics whose library is missing.

    Raises:
        UsageError: naming the task.
    """
    for name, task in found.items():
        try:
            converter.check_task(name, task.output_features)
            text_metrics.check_installed(task.predict_metric_fns)
        except (ValueError, ImportError) as error:
            raise UsageError(f"evaluate.tasks: {name}: {error}") from error


def check_best(experiment: Experiment, names: Sequence[str]) -> None:
    """Refuses a `checkpoint.best` that is never measured.

    Raises:
        UsageError: no such task among those evaluated, or checkpoints between evaluations.
    """
    best = experiment.checkpoint.best
    if best is None:
        return
    measured = [*names, *suites.complete(names)]
    if best.rpartition("/")[0] not in measured:
        raise UsageError(
            f"checkpoint.best is {best!r}; it must be TASK/METRIC with a task of evaluate.tasks "
            f"({', '.join(measured) or 'there are none'})"
        )
    if experiment.checkpoint.every % experiment.evaluate.every:
        raise UsageError(
            f"checkpoint.best needs an evaluation at every checkpoint: checkpoint.every={experiment.checkpoint.every} "
            f"must be a multiple of evaluate.every={experiment.evaluate.every}"
        )


def never_measured(experiment: Experiment, results: Mapping[str, Mapping[str, object]]) -> UsageError | None:
    """The error of a `checkpoint.best` that an evaluation does not measure: no checkpoint would ever be the best.

    Args:
        experiment: whose `checkpoint.best` has passed `check_best`.
        results: of the evaluation, by task; empty before the first.
    """
    best = experiment.checkpoint.best or ""
    task, _, metric = best.rpartition("/")
    if task not in results or metric in results[task]:
        return None
    measured = ", ".join(f"{task}/{name}" for name in results[task])
    return UsageError(f"checkpoint.best is {best!r}, which no evaluation measures; it can be one of {measured}")


def _reader_of_files(experiment: Experiment) -> str | None:
    """The task that reads the run's own files; None where there are none.

    Raises:
        UsageError: it is a mixture.
    """
    data = experiment.data
    if not (data.files or data.eval_files):
        return None
    if not isinstance(data.train, str):
        raise UsageError(
            "data.files and data.eval_files take the place of the text of one task, but data.train is a mixture: "
            f"{data.train}"
        )
    return data.train


def _with_files(experiment: Experiment, name: str, *, split: str | None = None) -> examples.Task:
    """The task on the run's files: those of a split alone, if it has any, since the others need not be there.

    Solved examples of instructions are of the training split, which must be there for them.
    """
    data = experiment.data
    files = {"train": data.files, "validation": data.eval_files}
    try:
        if split is not None and files.get(split):
            shown = {"train"} if templates.draws_solved(examples.get_task(name)) else set()
            files = {one: named for one, named in files.items() if one in {split} | shown}
        return file_source.with_files(
            name,
            files=files.get("train", ()),
            eval_files=files.get("validation", ()),
            field=data.field,
            unit=data.unit,
            on_error=data.on_error,
        )
    except corpora.CorpusError as error:
        raise type(error)(f"data.{'eval_' if list(files) == ['validation'] else ''}files: {error}") from error
    except ValueError as error:
        raise UsageError(f"data.files: {error}") from error
