"""`t2t eval RUN_OR_CONFIG`: loss, perplexity and each task's own metrics on held-out examples."""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import tyro

from t2t import finding
from t2t.commands import arguments as arguments_lib
from t2t.commands import metrics as metrics_lib
from t2t.commands.arguments import Source
from t2t.config import Experiment
from t2t.errors import UsageError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(arguments_lib.Processes):
    """What is about this call and no part of the experiment."""

    tasks: tuple[str, ...] = ()
    """Tasks to evaluate; none takes evaluate.tasks of the config."""
    split: str = "validation"
    """Part of the tasks that is read."""
    step: int | None = None
    """Checkpoint of the run; None is the last."""
    output: str | None = None
    """Directory for results and predictions; None is RUN/eval (other splits: RUN/eval_SPLIT), for a config nowhere."""
    submission: str | None = None
    """Directory for predictions in the formats of GLUE, SuperGLUE and SQuAD, for their servers; usually of --split
    test. None writes none."""
    print_config: bool = False
    """Print the experiment as JSON and stop."""
    dry_run: bool = False
    """Show config, parameters, and each task's number of examples, first batch and memory; evaluate nothing."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Eval(Options):
    """Evaluate a run, or the model --init with the tasks of a config; every example is counted exactly once.

    The run or config comes first: t2t eval RUN --tasks NAME. Every setting of its config is an option too;
    t2t eval RUN --help lists them.
    """

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN_OR_CONFIG")]
    """The directory of a run, or a config (a Python file, or a name under configs/)."""


def run(arguments: Sequence[str]) -> int:
    """Resolve the experiment and the parameters, evaluate, print a table."""
    named, settings = arguments_lib.split_config(arguments)
    if named is None:
        options = arguments_lib.parse(Eval, arguments, command="eval")
        source = arguments_lib.find_experiment(options.source)
        experiment = source.experiment
    else:
        source = arguments_lib.find_experiment(named)
        options, experiment = arguments_lib.parse_settings(Options, settings, source=source, command=f"eval {named}")
    if options.print_config:
        arguments_lib.print_config(experiment)
        return 0
    finding.check_modules(experiment.data.modules)
    from t2t.data import host_tensorflow  # noqa: F401 - first, because it keeps TensorFlow quiet and off accelerators
    from t2t.train import processes

    directory = _find_output(source, options)
    if directory is not None and not options.dry_run:
        arguments_lib.check_writable(directory, instead="give --output DIR, a directory that you may write")
    if options.submission is not None and not options.dry_run:
        arguments_lib.check_writable(pathlib.Path(options.submission), instead="give another --submission")
    with processes.joined(options.distributed, peer_timeout=options.peer_timeout):
        opened, vocabulary = _open(experiment, source, options)
        if options.dry_run:
            from t2t.train import preview

            arguments_lib.print_settings(experiment)
            names = options.tasks or None
            for line in preview.evaluation(experiment, opened, vocabulary, names=names, split=options.split):
                print(line, flush=True)
            return 0
        evaluated = _evaluate(experiment, options, directory, opened=opened, vocabulary=vocabulary)
        if processes.is_first():
            _print(evaluated)
    return 0


def _open(experiment: Experiment, source: Source, options: Options) -> tuple[Any, Any]:
    """The parameters that are evaluated (`t2t.train.sources.Source`), and the vocabulary."""
    from t2t.train import beginning, sources

    opened = sources.open_source(_find_parameters(experiment, source, options))
    kept = opened.vocabulary if source.run else None
    return opened, beginning.choose_vocabulary(experiment, opened, kept=kept)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Evaluated:
    """Of one task: its metrics, which of them are of texts, what a predictor that has learned nothing reaches."""

    metrics: Mapping[str, float | None]
    of_texts: Sequence[str]
    baseline: Mapping[str, float]


def _evaluate(
    experiment: Experiment, options: Options, directory: pathlib.Path | None, *, opened: Any, vocabulary: Any
) -> Mapping[str, _Evaluated]:
    from t2t.train import build, evaluate, initialize, processes, submissions, tasks

    pieces = build.build(experiment, vocabulary)
    tasks.register(experiment)
    wanted = tasks.to_evaluate(experiment, options.tasks or None, split=options.split)
    tasks.check_evaluated(wanted, pieces.converter)
    if not wanted:
        raise UsageError("there is nothing to evaluate: name tasks with --tasks")
    if options.submission is not None:
        submissions.check(wanted)
    params = initialize.load_params(opened, pieces)
    with arguments_lib.status() as say:
        evaluator = evaluate.Evaluator(pieces, wanted, split=options.split, on_progress=say)
        results = evaluator(params, _step_of(opened.path), directory=directory)
    if options.submission is not None and processes.is_first():
        for name, records in evaluator.records.items():
            path, num_invalid = submissions.write(pathlib.Path(options.submission), name, records)
            without = f", {num_invalid:,} of them no label: the first one stands for it" if num_invalid else ""
            print(f"wrote {path}: {len(records):,} predictions{without}")
    return {
        name: _Evaluated(
            metrics=metrics,
            baseline=evaluate.baseline(experiment, name, options.split) or {},
            of_texts=evaluator.text_metrics[name],
        )
        for name, metrics in results.items()
    }


def _find_parameters(experiment: Experiment, source: Source, options: Options) -> pathlib.Path:
    """The directory whose parameters are evaluated."""
    if source.run is None:
        if experiment.init is None:
            raise UsageError(
                "a config has no parameters: give --init, a run, checkpoint, model or Hugging Face directory"
            )
        return pathlib.Path(experiment.init)
    from t2t.train import checkpoint

    store = checkpoint.CheckpointStore(source.run / "checkpoints")
    steps = store.steps()
    if not steps:
        raise UsageError(f"the run {source.run} has no checkpoint yet")
    if options.step is not None and options.step not in steps:
        raise UsageError(f"the run {source.run} has no checkpoint {options.step}; it has {', '.join(map(str, steps))}")
    return store.path(steps[-1] if options.step is None else options.step)


def _find_output(source: Source, options: Options) -> pathlib.Path | None:
    if options.output is not None:
        return pathlib.Path(options.output)
    name = "eval" if options.split == "validation" else f"eval_{options.split}"
    return None if source.run is None else source.run / name


def _step_of(path: pathlib.Path) -> int:
    return int(path.name) if path.name.isdecimal() else 0


def _print(evaluated: Mapping[str, _Evaluated]) -> None:
    for task, one in evaluated.items():
        print(f"{task} ({one.metrics['examples']:,.0f} examples)")
        for name, shown, value in metrics_lib.present(one.metrics, of_texts=one.of_texts):
            beside = f"    baseline {one.baseline[name]:.4g}" if name in one.baseline else ""
            print(f"  {shown:<20}{value:>10.4g}{beside}")
