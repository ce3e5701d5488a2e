"""`t2t cache CONFIG`: the tokens of a config's tasks, made once, for runs that read them instead of the text."""

import dataclasses
import os
import pathlib
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import tyro

from t2t import finding
from t2t.commands import arguments as arguments_lib
from t2t.commands.arguments import Source
from t2t.config import Experiment
from t2t.errors import UsageError

EVERY = 10.0
"""Seconds between two lines about a cache in the making, where no line can move."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """What is about this call and no part of the experiment."""

    output: str | None = None
    """Directory of all caches; None is that of T2T_CACHE, else cache/ in the working directory."""
    workers: int | None = None
    """Processes that tokenise; None is one for each core."""
    split: str = "train"
    """Which examples of the tasks."""
    shard_megabytes: float = 32.0
    """Text of a shard, millions of characters; what is lost when a worker is killed."""
    runner: str = "local"
    """Who tokenises: local is processes here, others are runners of Apache Beam (direct, flink, spark, dataflow)."""
    runner_options: str = ""
    """Options of Beam's pipeline, as its command line takes them: --runner-options='--flink_master=host:8081 ...'."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cache(Options):
    """Make the tokens that a config learns from, once, for runs that are told of them by T2T_CACHE.

    The config comes first, then settings as for t2t train: t2t cache CONFIG --data.files 'books/*.txt' --workers 8.
    What was interrupted is gone on with by the same command, which also makes damaged shards anew. How many workers
    there are changes nothing in what a run reads.
    """

    config: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="CONFIG")]
    """A Python file, a name under configs/ (quickstart, pretrain/t5_small), or the directory of a run."""


def run(arguments: Sequence[str]) -> int:
    """Resolve the experiment and make the caches of its tasks."""
    config, settings = arguments_lib.split_config(arguments)
    if config is None:
        options = arguments_lib.parse(Cache, arguments, command="cache")
        config = options.config
        source = arguments_lib.find_experiment(config)
        experiment = source.experiment
    else:
        source = arguments_lib.find_experiment(config)
        options, experiment = arguments_lib.parse_settings(Options, settings, source=source, command=f"cache {config}")
    _check(options)
    finding.check_modules(experiment.data.modules)
    directory = pathlib.Path(options.output or os.environ.get("T2T_CACHE") or "cache")
    arguments_lib.check_writable(directory, instead="give another --output")
    _make_all(experiment, source, options, directory)
    print(f"train from it, with the same settings: T2T_CACHE={directory} t2t train {config} ...")
    return 0


def _check(options: Options) -> None:
    if options.workers is not None and options.workers < 1:
        raise UsageError(f"--workers is {options.workers}; it must be positive")
    if not 1e-6 <= options.shard_megabytes <= 1e6:
        raise UsageError(f"--shard-megabytes is {options.shard_megabytes}; it must be positive, and at most a million")
    if options.runner_options and options.runner == "local":
        raise UsageError("--runner-options are for a runner of Apache Beam, and --runner is local")


def _make_all(experiment: Experiment, source: Source, options: Options, directory: pathlib.Path) -> None:
    with arguments_lib.status() as say, arguments_lib.show_log():
        say("importing JAX and TensorFlow")
        from t2t.data import examples, mixtures, token_cache
        from t2t.train import beginning, build, tasks

        tasks.register(experiment)
        tasks.check_trained(experiment)
        say("preparing the vocabulary")
        kept = None if source.run is None else source.run / "vocabulary"
        init = beginning.open_init(experiment) if kept is None else None
        vocabulary = beginning.choose_vocabulary(experiment, init, kept=kept)
        build.check_kinds(experiment)
        build.check_vocabulary(experiment, vocabulary)
        converter = build.make_converter(experiment, vocabulary)
        tasks.check_trained(experiment, converter=converter)
        for task in mixtures.leaf_tasks(tasks.to_train(experiment)):
            part, _ = examples.fit(task, options.split, vocabulary=vocabulary, lengths=converter.lengths)
            began, shown = time.monotonic(), _Shown(task.name, say)
            settings = token_cache.Settings(
                workers=options.workers or arguments_lib.num_cores(),
                shard_size=round(options.shard_megabytes * 1e6),
                runner=_runner(options),
                on_shard=shown.add,
            )
            say(f"making the tokens of {task.name}")
            made = token_cache.make(
                part, options.split, lengths=converter.lengths, directory=directory, settings=settings
            )
            for line in _summary(task.name, made, seconds=time.monotonic() - began):
                print(line, flush=True)


def _runner(options: Options) -> Any:
    if options.runner == "local":
        return None
    from t2t.data import beam_cache

    return beam_cache.BeamRunner(options.runner, shlex.split(options.runner_options))


class _Shown:
    """Says how far a cache is: on a terminal with every shard, elsewhere now and then a line."""

    def __init__(self, task: str, say: Callable[[str], None]) -> None:
        self._task, self._say = task, say
        self._began = self._last = time.monotonic()
        self._shards = self._tokens = 0

    def add(self, shard: Any) -> None:
        self._shards += 1
        self._tokens += sum(shard.values.values())
        now = time.monotonic()
        rate = self._tokens / max(now - self._began, 1e-9)
        line = f"{self._task}: {self._shards:,} shards, {self._tokens:,} tokens, {rate:,.0f} a second"
        if sys.stderr.isatty():
            self._say(line)
        elif now - self._last > EVERY:
            self._last = now
            print(line, file=sys.stderr, flush=True)


def _summary(task: str, made: Any, *, seconds: float) -> list[str]:
    manifest = made.manifest
    tokens = ", ".join(f"{number:,} {name}" for name, number in manifest.values.items())
    size = sum(shard.size for shard in manifest.shards)
    skipped = manifest.skipped
    left_out = [
        f"{number:,} documents {what}"
        for number, what in ((skipped.empty, "empty"), (skipped.unreadable, "that cannot be read"))
        if number
    ]
    return [
        f"{task}: {manifest.examples:,} examples ({tokens}) in {len(manifest.shards):,} shards, {size / 1e6:,.1f} MB, "
        f"of which {made.kept:,} were there; {seconds:.1f} s",
        *([f"  left out: {', '.join(left_out)}"] if left_out else []),
        f"  {made.directory}",
    ]
