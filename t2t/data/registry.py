"""Registering tasks: sources of texts in memory, the usual objectives on a source of documents, names used again.

A module of tasks is imported once by a training run, again from its copy in a run directory, and reloaded in notebooks;
so a module may register its names again, where seqio's own registry refuses the second. Another module may not, for a
run would learn from what was imported last: it takes a name that is free, or says that it means it (`replacing`).
"""

import contextlib
import contextvars
import functools
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from t2t.data import preprocessors  # isort: skip - sets up TensorFlow
import seqio

from t2t.data import cache
from t2t.data.denoisers import CausalLM, MaskedTokens, PrefixLM, SpanCorruption
from t2t.data.host_tensorflow import tf
from t2t.data.one_shard import OneShardSource
from t2t.data.vocabularies import PlaceholderVocabulary
from t2t.errors import UsageError

Texts = Mapping[str, str]
"""One example as strings by field."""


class TextSource(OneShardSource):
    """A source of texts that a function makes when they are first asked for, kept in memory.

    Cached tokens are known by the function, the file that defines it and what it holds (arguments of a partial,
    defaults, a closure). Files that it reads are not looked at: where they change, delete the cached tokens.

    Args:
        texts: the examples of a split, all with the same fields.
        splits: the splits `texts` knows.
        modules: further modules that decide the texts, whose files tell cached tokens apart too.
    """

    def __init__(
        self,
        texts: Callable[[str], Sequence[Texts]],
        *,
        splits: Sequence[str],
        modules: Sequence[types.ModuleType] = (),
    ):
        super().__init__(splits=splits)
        self._function = texts
        self._texts = functools.cache(texts)
        self._modules = tuple(modules)

    def num_input_examples(self, split: str) -> int:
        """Number of examples; reads the texts."""
        return len(self._texts(split))

    def rows(self, split: str) -> Sequence[Texts]:
        """The examples of a split."""
        return self._texts(split)

    def fingerprint(self, split: str) -> list[Any]:
        """What decides the texts of a split, without reading them."""
        return [cache.describe(self._function), split, [cache.describe(module) for module in self._modules]]

    def dataset(self, split: str) -> tf.data.Dataset:
        """The examples of a split as strings.

        Raises:
            ValueError: there are none.
        """
        rows = self._texts(split)
        fields = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
        if not fields:
            raise ValueError(f"split {split!r} is empty: {self._function} gives no examples")
        return tf.data.Dataset.from_tensor_slices(fields)


def feature(*, add_eos: bool = True) -> seqio.Feature:
    """A feature of token ids whose vocabulary is bound when the task is used."""
    return seqio.Feature(vocabulary=PlaceholderVocabulary(), add_eos=add_eos, dtype=tf.int32)


@contextlib.contextmanager
def replacing() -> Iterator[None]:
    """What is registered inside takes the place of tasks and mixtures of other modules, whichever is imported first.

    with registry.replacing():
        registry.add_objectives("c4", FileSource({"train": ["my_c4/*.jsonl"]}))
    """
    token = _REPLACES.set(True)
    try:
        yield
    finally:
        _REPLACES.reset(token)


_REPLACES: contextvars.ContextVar[bool] = contextvars.ContextVar("replaces", default=False)

_OWNERS: dict[tuple[str, str], tuple[str, bool]] = {}
"""By registry and name: the module that registered it, and whether it takes the place of others."""


_BETWEEN = ("t2t.data.", "jaxtyping", "beartype")
"""Modules between a module of tasks and its registration; the last two where annotations are checked."""


def add_task(name: str, source: seqio.DataSource, **settings: Any) -> seqio.Task:
    """Register a task under a name; `settings` are those of `seqio.TaskRegistry.add`.

    Raises:
        UsageError: another module has registered the name.
    """
    return _register(seqio.TaskRegistry, name, lambda: seqio.TaskRegistry.add(name, source=source, **settings))


def add_mixture(name: str, rates: Mapping[str, Any]) -> seqio.Mixture:
    """Register a mixture of tasks by their rates, numbers or functions of the task.

    Raises:
        UsageError: another module has registered the name.
    """
    return _register(seqio.MixtureRegistry, name, lambda: seqio.MixtureRegistry.add(name, list(rates.items())))


def _register(where: Any, name: str, add: Callable[[], Any]) -> Any:
    module, replaces = _caller(), _REPLACES.get()
    key = (where.__name__, name)
    owner, holds = _OWNERS.get(key, ("", False)) if name in where.names() else ("", False)
    if owner not in ("", module) and not replaces:
        if holds:
            return where.get(name)
        raise UsageError(
            f"{module} registers {name!r}, which is a name of {owner} already: take another, or, if yours is meant to "
            "be read in its place, register it inside `with t2t.data.registry.replacing():`"
        )
    where.remove(name)
    _OWNERS[key] = (module, replaces)
    return add()


def _caller() -> str:
    """The module that asks for a registration: the first outside of t2t.data on the way up."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_BETWEEN):
        frame = frame.f_back
    return frame.f_globals.get("__name__", "")


def add_objectives(name: str, source: seqio.DataSource, *, field: str = "text") -> tuple[str, ...]:
    """Register the four pretraining objectives on a source of documents, and return their names.

        NAME_span_corruption   inputs, targets            15 % noise in spans of 3 (T5)
        NAME_mlm               inputs, targets, weights   15 % chosen, 80/10/10 (BERT), masked anew each epoch
        NAME_causal_lm         targets                    EOS after each document (GPT)
        NAME_prefix_lm         inputs, targets            split at a random place

    Documents are joined and cut to the raw length that fills the run's lengths exactly.

    Args:
        name: of the corpus, the first part of the names of the tasks.
        source: of examples with a field of text.
        field: the name of that field.
    """
    objectives = {
        "span_corruption": SpanCorruption(),
        "mlm": MaskedTokens(),
        "causal_lm": CausalLM(),
        "prefix_lm": PrefixLM(),
    }
    for suffix, corruption in objectives.items():
        add_objective(f"{name}_{suffix}", source, corruption, field=field)
    return tuple(f"{name}_{suffix}" for suffix in objectives)


def add_objective(
    name: str,
    source: seqio.DataSource,
    corruption: preprocessors.Corruption,
    *,
    field: str = "text",
    across_documents: bool = True,
    marks: Sequence[Callable[..., Any]] = (),
) -> seqio.Task:
    """Register one objective on a source of documents, joined and cut to the raw length that fills the run's lengths.

    Args:
        name: of the task.
        source: of examples with a field of text.
        corruption: the objective.
        field: the name of that field.
        across_documents: whether documents are joined; else each is cut by itself.
        marks: preprocessors of the pieces before they are corrupted, such as `translation_pairs.Language`.
    """
    return add_task(
        name,
        source,
        # The ends of documents are in causal text already; a piece may be cut in the middle of one.
        output_features={made: feature(add_eos=not isinstance(corruption, CausalLM)) for made in corruption.makes},
        preprocessors=[
            functools.partial(seqio.preprocessors.rekey, key_map={"targets": field}),
            functools.partial(preprocessors.tokenize, copy_pretokenized=False),
            preprocessors.Chunk(
                corruption=corruption,
                across_documents=across_documents,
                end_documents=isinstance(corruption, CausalLM),
            ),
            *marks,
            corruption,
        ],
    )


def add_text_to_text(
    name: str,
    source: seqio.DataSource,
    *,
    metric_fns: Sequence[Callable[..., Any]],
    prefix: str = "",
    fields: tuple[str, str] = ("inputs", "targets"),
) -> seqio.Task:
    """Register a supervised task on a source of examples with two fields of text.

    Args:
        name: of the task.
        source: of examples with these fields.
        metric_fns: functions (targets, predictions) -> {name: value} of texts.
        prefix: put before the inputs, its space included, where they do not have it.
        fields: names of the text and of the answer in the source, such as ("question", "answer").
    """
    is_plain = not prefix and fields == ("inputs", "targets")
    put_together = [] if is_plain else [preprocessors.TextToText(prefix=prefix, inputs=fields[0], targets=fields[1])]
    return add_task(
        name,
        source,
        output_features={"inputs": feature(), "targets": feature()},
        preprocessors=[
            *put_together,
            preprocessors.tokenize,
            seqio.preprocessors.append_eos_after_trim,
        ],
        metric_fns=list(metric_fns),
    )
