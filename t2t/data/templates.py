r"""Instructions in the manner of FLAN: several wordings of a task, with or without solved examples before the question.

    templates.add_templates("reviews", source, options=("good", "bad"), templates=(
        Template(inputs="{text}\n\nIs this review good or bad?\n{options}", targets="{label}"),
        Template(inputs="What does the writer think?\n{text}", targets="{label}", between="\nAnswer: "),
    ), inverted=(Template(inputs="Write a review that is {label}.", targets="{text}"),))

registers reviews_zero_shot, reviews_few_shot and reviews_inverted on rows with the fields text and label. A prompt is
made once, when the task is read, and is a function of (seed, copy, index of the row).

Reference: Wei et al., "Finetuned Language Models Are Zero-Shot Learners", arXiv:2109.01652, section 2 (templates,
options, tasks turned around); Longpre et al., "The Flan Collection", arXiv:2301.13688, section 3 (zero- and few-shot
prompts mixed, inputs inverted).
"""

import dataclasses
import functools
import itertools
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from t2t.data import preprocessors, registry, vocabularies  # isort: skip - sets up TensorFlow
import seqio

from t2t.data import cache, corruption, mixing
from t2t.data.host_tensorflow import tf

Row = Mapping[str, str]
"""One row of a supervised task: texts by field."""

OPTIONS = "options"
"""The name by which a template refers to the answers that are possible."""


def options_block(options: Sequence[str]) -> str:
    """The possible answers as FLAN lists them.

    Example:
        >>> print(options_block(["yes", "no"]))
        OPTIONS:
        - yes
        - no
    """
    return "\n- ".join(["OPTIONS:", *options])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Template:
    r"""One wording of a task: what is asked of a row and what the answer is, with its fields in braces.

    Example:
        >>> template = Template(inputs="{text}\nThe mood of this?", targets="{mood}", between=" ")
        >>> template.prompt({"text": "Hurrah!"}, [{"text": "Alas.", "mood": "sad"}])
        'Alas.\nThe mood of this? sad\n\n\nHurrah!\nThe mood of this?'
    """

    inputs: str
    """The question, such as "{text} Is this good or bad?"; {{ and }} are braces of the text."""
    targets: str = "{targets}"
    """The answer."""
    between: str = "\n"
    """Between question and answer of a solved example; without spaces at its end it also ends the question to solve, so
    that "\\nAnswer: " asks for one."""
    separator: str = "\n\n\n"
    """Between two solved examples, and before the question."""

    def __post_init__(self):
        """Refuse braces that are no fields."""
        for text in (self.inputs, self.targets):
            try:
                parts = list(string.Formatter().parse(text))
            except ValueError as error:
                raise ValueError(f"template {text!r}: {error}; write braces of the text as {{{{ and }}}}") from error
            for _, field, form, conversion in parts:
                if field is not None and (not field.isidentifier() or form or conversion):
                    raise ValueError(f"template {text!r} has {{{field}}}; only plain names of fields are possible")

    @functools.cached_property
    def fields(self) -> tuple[str, ...]:
        """The fields it reads, each once, in the order of their names."""
        parts = itertools.chain.from_iterable(map(string.Formatter().parse, (self.inputs, self.targets)))
        return tuple(sorted({field for _, field, _, _ in parts if field is not None}))

    def inverted(self) -> "Template":
        """The template turned around: the answer is given, the question is wanted."""
        return dataclasses.replace(self, inputs=self.targets, targets=self.inputs)

    def prompt(self, row: Row, solved: Sequence[Row] = ()) -> str:
        """The question of a row, after solved examples."""
        examples = [f"{self.inputs.format_map(one)}{self.between}{self.answer(one)}" for one in solved]
        return self.separator.join([*examples, self.inputs.format_map(row) + self.between.rstrip()])

    def answer(self, row: Row) -> str:
        """The answer of a row."""
        return self.targets.format_map(row)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SourceRows:
    """The first rows of a split of any seqio source as texts, read when first called."""

    source: seqio.DataSource = dataclasses.field(repr=False)
    split: str = "train"
    limit: int = 30_000
    """Rows that are read at most; FLAN takes so many of a data set."""

    def __call__(self) -> tuple[dict[str, str], ...]:
        """The rows; fields that are neither texts nor numbers are left out."""
        dataset = self.source.get_dataset(split=self.split, shuffle=False)
        names = _text_fields(dataset)
        rows = itertools.islice(dataset.as_numpy_iterator(), self.limit)
        return tuple({name: _as_text(row[name]) for name in names} for row in rows)

    def cache_facts(self) -> list[Any]:
        """What decides the rows, for the names of cached tokens that hold some of them."""
        return [cache.describe_source(self.source, self.split), self.split, self.limit]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Prompts:
    """Makes {"inputs": prompt, "targets": answer} of rows, each by one of several templates; other fields are dropped.

    The templates of a row's copies are all different while there are so many: copy c takes the c-th of an order that is
    drawn for the row. Solved examples are drawn without replacement, never one that equals the row.

    Example:
        >>> prompts = Prompts(templates=(Template(inputs="{a}?", targets="{b}"),))
        >>> prompts.example({"a": "2+2", "b": "4"}, index=0)
        ('2+2?', '4')
    """

    templates: tuple[Template, ...]
    """Wordings of the task; each is equally likely."""
    options: Sequence[str] | Callable[[], Sequence[str]] = ()
    """Possible answers, which {options} of a template lists; or a function that gives them when they are needed."""
    shots: int = 0
    """Solved examples before the question."""
    solved: Callable[[], Sequence[Row]] | None = None
    """Gives the rows that solved examples are drawn from: those of the training split."""
    max_characters: int | None = None
    """Solved examples are left out, the first ones first, until a prompt has no more; the question stays whole."""
    copies: int = 1
    """Prompts that are made of each row."""
    seed: int = 0
    """Of the choices."""

    def __post_init__(self):
        """Refuse numbers and settings without meaning."""
        if not self.templates:
            raise ValueError("templates is empty; give at least one")
        if isinstance(self.options, str):
            raise ValueError(f"options={self.options!r} must be several texts, such as ('yes', 'no')")
        if self.copies < 1 or self.shots < 0:
            raise ValueError(f"copies={self.copies} must be positive and shots={self.shots} not negative")
        if self.shots and self.solved is None:
            raise ValueError(f"shots={self.shots} needs solved=..., a function that gives the rows of solved examples")
        if self.max_characters is not None and self.max_characters < 1:
            raise ValueError(f"max_characters={self.max_characters} must be positive, or None for no limit")

    @functools.cached_property
    def fields(self) -> tuple[str, ...]:
        """The fields of rows that the templates read."""
        names = {field for template in self.templates for field in template.fields}
        return tuple(sorted(names - ({OPTIONS} if self.options else set())))

    @functools.cached_property
    def _given(self) -> dict[str, str]:
        options = self.options() if callable(self.options) else self.options
        return {OPTIONS: options_block(options)} if options else {}

    @functools.cached_property
    def _pool(self) -> tuple[Row, ...]:
        """The rows of solved examples, equal ones once, reduced to the fields that are read."""
        rows = () if self.solved is None else self.solved()
        if rows:
            self.check(rows[0])
        unique = {self._key(row): row for row in rows}
        if len(unique) <= self.shots:
            raise ValueError(
                f"shots={self.shots} solved examples need more different training rows than that, since a row is not "
                f"its own example; there are {len(unique)}"
            )
        return tuple(dict(zip(self.fields, key, strict=True)) for key in unique)

    def _key(self, row: Row) -> tuple[str, ...]:
        return tuple(row[field] for field in self.fields)

    def check(self, available: Sequence[str] | Mapping[str, Any]) -> None:
        """Refuses templates that read what rows do not have.

        Raises:
            ValueError: naming the field, the template and the fields that exist.
        """
        if self.options and OPTIONS in available:
            raise ValueError(f"rows have a field {OPTIONS!r}, which options={self.options!r} would hide: rename it")
        for template in self.templates:
            for field in template.fields:
                if field not in available and not (field == OPTIONS and self.options):
                    hint = "; options=... gives it" if field == OPTIONS else ""
                    known = ", ".join(sorted(available))
                    raise ValueError(f"{template} reads the field {field!r}, but rows have {known}{hint}")

    def example(self, row: Row, *, index: int, copy: int = 0) -> tuple[str, str]:
        """Prompt and answer of a row: a function of (seed, copy, index) and the row."""
        turn, place = divmod(copy, len(self.templates))
        order = self._rng("templates", turn, index).permutation(len(self.templates))
        template = self.templates[order[place]]
        solved = self._draw(row, self._rng("solved", copy, index)) if self.shots else []
        question = {**row, **self._given}
        prompt = template.prompt(question, solved)
        while solved and self.max_characters is not None and len(prompt) > self.max_characters:
            solved = solved[1:]
            prompt = template.prompt(question, solved)
        return prompt, template.answer(question)

    def _rng(self, purpose: str, copy: int, index: int) -> np.random.Generator:
        return corruption.example_rng(mixing.derive_seed(self.seed, purpose), copy, index)

    def _draw(self, row: Row, rng: np.random.Generator) -> list[Row]:
        key = self._key(row)
        chosen: dict[int, Row] = {}
        while len(chosen) < self.shots:  # ends: there are more different rows than that
            place = int(rng.integers(len(self._pool)))
            if self._key(self._pool[place]) != key:
                chosen[place] = {**self._pool[place], **self._given}
        return list(chosen.values())

    def __call__(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        """As a seqio preprocessor, before `preprocessors.tokenize`.

        Raises:
            ValueError: a template reads a field that rows do not have, or there are too few rows for solved examples.
        """
        self.check(_text_fields(dataset))
        if self.shots:
            _ = self._pool  # refuses too few rows before any is read

        def run(index: np.int64, copy: np.int64, *values: Any) -> tuple[np.ndarray, np.ndarray]:
            row = dict(zip(self.fields, map(_as_text, values), strict=True))
            texts = self.example(row, index=int(index), copy=int(copy))
            return tuple(np.array(text.encode(), object) for text in texts)

        def make(index: tf.Tensor, copy: tf.Tensor, features: dict[str, Any]) -> dict[str, Any]:
            values = [features[field] for field in self.fields]
            made = tf.numpy_function(run, [index, copy, *values], [tf.string, tf.string])
            return {name: tf.ensure_shape(text, []) for name, text in zip(("inputs", "targets"), made, strict=True)}

        def repeat(index: tf.Tensor, features: dict[str, Any]) -> tf.data.Dataset:
            return tf.data.Dataset.range(self.copies).map(lambda copy: (index, copy, features))

        return dataset.enumerate().flat_map(repeat).map(make, num_parallel_calls=tf.data.AUTOTUNE)


def apply_templates(dataset: tf.data.Dataset, **settings: Any) -> tf.data.Dataset:
    """`Prompts(**settings)` as a function: in a `functools.partial` the cache of tokens sees each setting."""
    return Prompts(**settings)(dataset)


def prompts_of(step: Callable[..., Any]) -> Prompts | None:
    """The prompts that a preprocessor of `add_templates` makes; None for others."""
    is_prompts = isinstance(step, functools.partial) and step.func is apply_templates
    return Prompts(**step.keywords) if is_prompts else None


def draws_solved(task: seqio.Task) -> bool:
    """Whether prompts of a task hold solved examples from the training split of its source."""
    made = filter(None, map(prompts_of, task.preprocessors))
    return any(prompts.shots and isinstance(prompts.solved, SourceRows) for prompts in made)


def with_solved(task: seqio.Task, source: seqio.DataSource) -> seqio.Task:
    """The task with its solved examples, if it has any, drawn from the training split of another source."""

    def changed(step: Callable[..., Any]) -> Callable[..., Any]:
        prompts = prompts_of(step)
        if prompts is None or not isinstance(prompts.solved, SourceRows):
            return step
        return functools.partial(step, solved=dataclasses.replace(prompts.solved, source=source))

    return task.replace(preprocessors=list(map(changed, task.preprocessors)))


def _text_fields(dataset: tf.data.Dataset) -> list[str]:
    """Fields of a dataset that are one text or number each."""
    spec = dataset.element_spec
    return [name for name, one in spec.items() if isinstance(one, tf.TensorSpec) and one.shape.rank == 0]


def _as_text(value: Any) -> str:
    value = value.item() if isinstance(value, np.ndarray | np.generic) else value
    return vocabularies.as_text(value) if isinstance(value, str | bytes) else str(value)


def add_templates(
    name: str,
    source: seqio.DataSource,
    *,
    templates: Sequence[Template],
    inverted: Sequence[Template] = (),
    options: Sequence[str] | Callable[[], Sequence[str]] = (),
    shots: int = 2,
    max_characters: int | None = None,
    copies: int = 1,
    seed: int = 0,
    metric_fns: Sequence[Callable[..., Any]] = (),
) -> tuple[str, ...]:
    """Register a supervised source as instructions; returns the names of the tasks.

        NAME_zero_shot   the question alone
        NAME_few_shot    after solved examples, drawn from the training split
        NAME_inverted    the task turned around, where `inverted` says how; without metrics

    Args:
        name: the first part of all names.
        source: of rows with the fields that the templates read; it has a split "train".
        templates: wordings of the task.
        inverted: wordings of the task turned around (`Template.inverted` makes plain ones).
        options: possible answers, which {options} of a template lists; or a function that gives them.
        shots: solved examples of a few-shot prompt.
        max_characters: of a few-shot prompt; solved examples that do not fit are left out.
        copies: prompts that are made of each row, in held-out splits too.
        seed: of the choice of templates and solved examples.
        metric_fns: functions (targets, predictions) -> {name: value} of texts.

    Raises:
        ValueError: settings without meaning. What templates read is checked when a task is read.
    """
    shared = Prompts(templates=tuple(templates), options=options, copies=copies, seed=seed)
    rows = SourceRows(source=source)
    few = dataclasses.replace(shared, shots=shots, solved=rows, max_characters=max_characters)
    variants = {"zero_shot": (shared, metric_fns), "few_shot": (few, metric_fns)}
    if inverted:
        variants["inverted"] = (dataclasses.replace(shared, templates=tuple(inverted)), ())
    fields = dataclasses.fields(Prompts)
    for suffix, (prompts, metrics) in variants.items():
        registry.add_task(
            f"{name}_{suffix}",
            source,
            output_features={"inputs": registry.feature(), "targets": registry.feature()},
            preprocessors=[
                functools.partial(apply_templates, **{f.name: getattr(prompts, f.name) for f in fields}),
                preprocessors.tokenize,
                seqio.preprocessors.append_eos_after_trim,
            ],
            metric_fns=list(metrics),
        )
    return tuple(f"{name}_{suffix}" for suffix in variants)
