"""Evaluation on held-out tasks: loss and perplexity over every example once, and the task's own metrics by generation.

Results of a task at a step go to eval/TASK/STEP.json, what was generated to eval/TASK/predictions.jsonl (of the newest
evaluation). Nothing random depends on the step: two evaluations of one checkpoint are equal to the bit, and those of
different checkpoints see the same corruption.

A model that remembers reads on, in each row of the batch, in a stretch of the examples, with an empty memory before it.
"""

import json
import logging
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax

from t2t import sharding
from t2t.config import Experiment
from t2t.data import evaluation, examples
from t2t.data.examples import TaskExamples
from t2t.data.features import EncoderDecoderFeatures
from t2t.decode.decoding import Decoding
from t2t.decode.generate import generate
from t2t.models.encoder import EncoderConfig
from t2t.objectives.base import Carry
from t2t.train import build, processes, suites
from t2t.train import state as state_lib
from t2t.train.build import Pieces, start_id
from t2t.train.step import make_eval_step, recurrent_eval_step
from t2t.types import Batch

log = logging.getLogger(__name__)

Values = dict[str, float | None]
"""Metrics by name; None where one is not finite, which JSON cannot hold."""

AHEAD = 3
"""Batches of an evaluation that the devices are given before the first of them is done."""

MAX_EXPONENT = 700.0
"""Cross entropy beyond which the perplexity would overflow."""


class StoppedError(Exception):
    """The evaluation was asked to stop; its results are thrown away."""


class Evaluator:
    """Evaluates the parameters of a run on its tasks; reads the tasks once.

    Args:
        pieces: of the run.
        tasks: what to evaluate, by name (see `t2t.train.tasks.to_evaluate`).
        split: which examples.
        on_progress: called with a line that says what is being done.
        should_stop: asked between batches; True ends the evaluation by `StoppedError`.

    Attributes:
        text_metrics: names of the metrics of generated texts, by task, of the last evaluation.
        records: what was generated, by task, of the last evaluation: input, prediction, target, numbers of the example.
    """

    def __init__(
        self,
        pieces: Pieces,
        tasks: Mapping[str, examples.Task],
        *,
        split: str = "validation",
        on_progress: Callable[[str], None] = lambda text: None,
        should_stop: Callable[[], bool] = lambda: False,
    ):
        self._pieces = pieces
        self._tasks = tasks
        self._split = split
        self._on_progress = on_progress
        self._should_stop = should_stop
        self._step = make_eval_step(pieces.experiment.objective, pieces.models)
        self._recurrent_step = jax.jit(recurrent_eval_step(pieces.experiment.objective, pieces.models))
        self._read: dict[str, TaskExamples] = {}
        self.text_metrics: dict[str, list[str]] = {}
        self.records: dict[str, list[dict[str, Any]]] = {}

    def __call__(self, params: Mapping[str, Any], step: int, *, directory: Path | None = None) -> dict[str, Values]:
        """The values of every task.

        Args:
            params: {role: tree} on the mesh.
            step: the step they are of.
            directory: where to write the results; None writes nothing.

        Raises:
            StoppedError: `should_stop` said so.
        """
        results, of_texts = {}, {}
        for name in self._tasks:
            held_out = self._examples(name)
            values = self.losses(params, held_out)
            predicted, generated = self.predictions(params, held_out)
            values = _finite(values | predicted, of=f"{name} at step {step}")
            self.text_metrics[name] = list(predicted)
            if directory is not None and processes.is_first():
                nothing_learned = baseline(self._pieces.experiment, name, self._split)
                about = {"step": step, "task": name, "split": self._split, "metrics": values}
                about |= {"text_metrics": self.text_metrics[name], "baseline": nothing_learned}
                _write(directory / name, about, generated)
            results[name] = values
            self.records[name] = generated
            of_texts[name] = {measured: values.get(measured) for measured in ("examples", *predicted)}
        return results | self._averages(of_texts, step, directory=directory)

    def _averages(self, of_texts: Mapping[str, Values], step: int, *, directory: Path | None) -> dict[str, Values]:
        """The one number of benchmarks that are evaluated as a whole, such as glue/average."""
        means = suites.averages(of_texts)
        for name, values in means.items():
            self.text_metrics[name] = ["average"]
            if directory is not None and processes.is_first():
                about = {"step": step, "task": name, "split": self._split, "metrics": values}
                _write(directory / name, about | {"text_metrics": ["average"], "baseline": None}, [])
        return dict(means)

    def read(self) -> None:
        """Reads every task now and not when it is evaluated.

        Raises:
            ValueError: one cannot be read, or has no examples.
        """
        for name in self._tasks:
            self._examples(name)

    def losses(self, params: Mapping[str, Any], held_out: TaskExamples) -> dict[str, float]:
        """Mean of each term and metric of the objective over all examples, and the perplexity."""
        mesh, reads_on = self._pieces.mesh, build.reads_on(self._pieces.experiment)
        waiting = []
        with sharding.use_mesh(mesh):
            carry = self._empty_carry() if reads_on else ()
            for batch in self.batches(held_out.name):
                self._check(f"evaluating {held_out.name}")
                rows = sharding.shard_batch(batch, mesh)
                if reads_on:
                    metrics, carry = self._recurrent_step(params, rows, carry)
                else:
                    metrics = self._step(params, rows)
                waiting.append(metrics)
                jax.block_until_ready(waiting[max(len(waiting) - AHEAD, 0)])  # so that what is shown is what is done
        sums: dict[str, list[float]] = {}
        for metrics in jax.device_get(waiting):
            for name, (total, weight) in metrics.items():
                pair = sums.setdefault(name, [0.0, 0.0])
                pair[0] += float(total)
                pair[1] += float(weight)
        values = {name: total / weight for name, (total, weight) in sums.items() if weight}
        if "cross_entropy" in values:
            values["perplexity"] = math.exp(min(values["cross_entropy"], MAX_EXPONENT))
        return {**values, "examples": float(self.number(held_out.name))}

    def _empty_carry(self) -> Carry:
        experiment, models = self._pieces.experiment, self._pieces.models

        def make() -> Carry:
            return experiment.objective.initial_carry(models, rows=self._rows(), micro_batches=1)

        shapes = jax.eval_shape(make)
        axes = experiment.objective.carry_axes(shapes)
        return jax.jit(make, out_shardings=state_lib.carry_shardings(shapes, axes, self._pieces.mesh))()

    def predictions(
        self, params: Mapping[str, Any], held_out: TaskExamples
    ) -> tuple[dict[str, float], list[dict[str, Any]]]:
        """The task's own metrics of generated texts, and the texts; nothing for tasks or models that have none."""
        task = self._tasks[held_out.name]
        if not task.predict_metric_fns or isinstance(build.reader(self._pieces.experiment.model), EncoderConfig):
            return {}, []
        vocabulary = self._pieces.vocabulary
        number = self._pieces.experiment.evaluate.max_examples
        rows = list(evaluation.eval_examples(held_out, self._pieces.converter, max_examples=number))
        tokens = self._generate(params, held_out.name, rows)
        generated = [vocabulary.decode(row) for row in tokens]
        targets = [row.get("targets_pretokenized", vocabulary.decode(row["targets"])) for row in rows]
        targets = [vocabulary.split_language(target)[0] for target in targets]
        values = _measure(task, rows, targets, generated)
        inputs = [row.get("inputs_pretokenized", vocabulary.decode(row["inputs"])) for row in rows]
        texts = [
            {"input": text, "prediction": prediction, "target": target, **_identity(row)}
            for text, prediction, target, row in zip(inputs, generated, targets, rows, strict=True)
        ]
        return values, texts

    def _generate(self, params: Mapping[str, Any], name: str, rows: list[dict[str, Any]]) -> list[list[int]]:
        pieces = self._pieces
        prompts = [row["inputs"].tolist() for row in rows]
        both_sides = isinstance(pieces.converter, EncoderDecoderFeatures)
        start = pieces.converter.start_ids(rows) if both_sides else start_id(pieces.vocabulary)
        decoding = Decoding(
            eos_id=pieces.vocabulary.eos_id,
            pad_id=pieces.converter.pad_id,
            max_tokens=pieces.converter.lengths["targets"],
            beams=pieces.experiment.evaluate.beams,
            vocab_size=pieces.vocabulary.size,
        )
        self._check(f"predicting {name}")
        return generate(
            pieces.models["model"],
            params["model"],
            prompts,
            decoding=decoding,
            start_id=start,
            batch_size=self._rows(),
            on_batch=lambda done: self._check(f"predicting {name} {done}/{len(prompts)}"),
        )

    def _examples(self, name: str) -> TaskExamples:
        if name not in self._read:
            self._on_progress(f"reading {name} {self._split}")
            self._read[name] = evaluation.load_eval(
                self._tasks[name],
                split=self._split,
                vocabulary=self._pieces.vocabulary,
                lengths=self._pieces.converter.lengths,
                texts=bool(self._tasks[name].predict_metric_fns),
                progress=lambda task, count: self._on_progress(f"reading {task}: {count:,} examples"),
            )
        return self._read[name]

    def batches(self, task: str) -> Iterator[Batch]:
        """The batches whose loss is measured, this process's part of each."""
        return evaluation.eval_batches(
            self._examples(task),
            self._pieces.converter,
            rows=self._rows(),
            contiguous=build.reads_on(self._pieces.experiment),
            lanes=sharding.host_rows(self._rows(), self._pieces.mesh),
            max_examples=self._pieces.experiment.evaluate.max_examples,
        )

    def _rows(self) -> int:
        """The rows of a batch: as configured, rounded up to what the devices can share."""
        experiment, mesh = self._pieces.experiment, self._pieces.mesh
        wanted = experiment.evaluate.batch_size or experiment.data.batch_size
        unit = mesh.shape["data"] * mesh.shape["fsdp"]
        return -(-wanted // unit) * unit

    def number(self, task: str) -> int:
        """How many examples of a task are evaluated."""
        limit, number = self._pieces.experiment.evaluate.max_examples, len(self._examples(task))
        return number if limit is None else min(limit, number)

    def _check(self, doing: str) -> None:
        self._on_progress(doing)
        if self._should_stop():
            raise StoppedError(doing)


def _identity(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a benchmark calls the example: its id, idx, or the numbers of its parts."""
    names = [name for name in row if name in ("id", "idx") or name.startswith("idx/")]
    return {name: row[name] if isinstance(row[name], str) else int(row[name]) for name in names}


def _measure(
    task: examples.Task, rows: list[dict[str, Any]], targets: list[str], generated: list[str]
) -> dict[str, float]:
    """The task's own metrics.

    Raises:
        ValueError: its functions fail, or give something else than numbers by name; says which.
    """
    values: dict[str, float] = {}
    doing = "the postprocessing"
    try:
        right = [
            task.postprocess_fn(text, example=row, is_target=True) for text, row in zip(targets, rows, strict=True)
        ]
        ours = [
            task.postprocess_fn(text, example=row, is_target=False) for text, row in zip(generated, rows, strict=True)
        ]
        for metric in task.predict_metric_fns:
            doing = f"the metric function {metric.__name__}"
            values |= {name: float(value) for name, value in metric(right, ours).items()}
    except Exception as error:  # the code of a user may raise anything
        raise ValueError(f"{doing} of the task {task.name} failed: {type(error).__name__}: {error}") from error
    return values


def baseline(experiment: Experiment, task: str, split: str) -> dict[str, float] | None:
    """What a predictor that has learned nothing reaches on the examples evaluated; None where nobody knows.

    A module of tasks may offer it: `baseline(task, split, max_examples)`. It knows its own examples alone, not those of
    a user's files.
    """
    if experiment.data.files or experiment.data.eval_files:
        return None
    for module in experiment.data.modules:
        offer = getattr(sys.modules.get(module), "baseline", None)
        if offer is None:
            continue
        try:
            return offer(task, split, experiment.evaluate.max_examples)
        except ValueError as error:
            log.debug("%s", error)
    return None


def _finite(values: dict[str, float], *, of: str) -> Values:
    """The values with None for those that are not finite, which a warning names: no reason to end a run."""
    bad = [name for name, value in values.items() if not math.isfinite(value)]
    if bad:
        log.warning("the evaluation of %s gives no finite %s: null in its results", of, ", ".join(bad))
    return {name: None if name in bad else value for name, value in values.items()}


def _write(directory: Path, result: dict[str, Any], generated: list[dict[str, Any]]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    if generated:
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in generated]
        _replace(directory / "predictions.jsonl", "".join(lines))
    _replace(directory / f"{result['step']}.json", json.dumps(result, indent=2, ensure_ascii=False) + "\n")


def _replace(path: Path, text: str) -> None:
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
