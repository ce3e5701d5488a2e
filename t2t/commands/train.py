"""`t2t train CONFIG`: train what a config describes, or continue a run."""

import dataclasses
import pathlib
import sys
from collections.abc import Sequence
from typing import Annotated

import tyro

from t2t import finding
from t2t.commands import arguments as arguments_lib
from t2t.commands.arguments import Source
from t2t.config import Experiment
from t2t.errors import UsageError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(arguments_lib.Processes):
    """What is about this call and no part of the experiment."""

    workdir: str | None = None
    """Directory of the run; None is runs/NAME. A run that is there already is continued."""
    print_config: bool = False
    """Print the experiment as JSON and stop."""
    fallback: bool = False
    """Continue from an older checkpoint where the newest is damaged."""
    dry_run: bool = False
    """Show config, shapes, parameters, memory and the first batch, compile the step, and stop."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Train(Options):
    """Train what a config describes, or continue the run in a directory.

    The config comes first: t2t train CONFIG --train.steps 1000 --mesh.fsdp 4. Every setting of the config is such an
    option; t2t train CONFIG --help lists them. Ctrl-C and SIGTERM save a checkpoint before the run ends, and the same
    command goes on from there.
    """

    config: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="CONFIG")]
    """A Python file, a name under configs/ (quickstart, pretrain/t5_small), or the directory of a run."""


def run(arguments: Sequence[str]) -> int:
    """Resolve the experiment, then print, show or train it."""
    config, settings = arguments_lib.split_config(arguments)
    if config is None:
        options = arguments_lib.parse(Train, arguments, command="train")
        source = arguments_lib.find_experiment(options.config)
        experiment = source.experiment
    else:
        source = arguments_lib.find_experiment(config)
        options, experiment = arguments_lib.parse_settings(Options, settings, source=source, command=f"train {config}")
    if options.print_config:
        arguments_lib.print_config(experiment)
        return 0
    finding.check_modules(experiment.data.modules)
    return _start(experiment, source, options)


def _check_init(experiment: Experiment, workdir: pathlib.Path) -> None:
    """Refuses to begin with the parameters of a run that is not there."""
    init = pathlib.Path(experiment.init or ".")
    if init.parts[:1] != ("runs",) or init.exists() or (workdir / "checkpoints").is_dir():
        return
    first = "/".join(init.parts[1:])
    way_out = f"train it first (t2t train {first})" if finding.has_config(first) else "train it first"
    raise UsageError(f"init is {init}, and there is no such run: {way_out}, or give another --init")


def _start(experiment: Experiment, source: Source, options: Options) -> int:
    workdir = pathlib.Path(options.workdir) if options.workdir else source.run or pathlib.Path("runs", experiment.name)
    _check_init(experiment, workdir)
    print("importing JAX and TensorFlow", file=sys.stderr, flush=True)  # the longest time in which nothing is heard
    from t2t.data import host_tensorflow  # noqa: F401 - first, because it keeps TensorFlow quiet and off accelerators
    from t2t.train import processes

    with processes.joined(options.distributed, peer_timeout=options.peer_timeout):
        if options.dry_run:
            from t2t.train import preview

            arguments_lib.print_settings(experiment)
            for line in preview.training(experiment, workdir, fallback=options.fallback):
                print(line, flush=True)
            return 0
        from t2t.train import loop

        loop.train(experiment, workdir, recipe=source.recipe, fallback=options.fallback)
    return 0
