"""Where parameters are read from: a run, a checkpoint, a model or a Hugging Face directory, understood."""

import dataclasses
import functools
import json
import operator
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import safetensors
from flax import traverse_util

from t2t import config_values
from t2t.errors import UsageError
from t2t.hf import hub, original_t5, tensors
from t2t.models.base import Network
from t2t.models.electra import DISCRIMINATOR, ElectraConfig
from t2t.train import checkpoint, trees
from t2t.vocabulary import files as vocabulary_files

_IMPOSSIBLE = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, ImportError, RecursionError)
"""What is raised where a config is made, or its shapes are, of values that it cannot have."""

_MEND = "restore it, or make the directory anew with t2t import"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Source:
    """A directory understood: the model whose parameters it holds."""

    path: Path
    kind: str
    """run, checkpoint, model or Hugging Face."""
    config: Any
    """The model config."""
    vocabulary: Path | None
    """Where its vocabulary is, if it has one."""
    start_id: int | None = None
    """The token with which its decoder starts, where the directory says it beside the vocabulary."""
    shapes: dict[str, Any]
    """Shape and dtype of every parameter, by path."""
    about: dict[str, Any] = dataclasses.field(default_factory=dict)
    """The content of a model directory's config.json."""
    role: str | None = None
    """Which model of a pair it is."""
    origin: dict[str, Any] = dataclasses.field(default_factory=dict)
    """What an export has from the Hugging Face files that the model comes from (`HuggingFaceCheckpoint.origin`)."""
    leaves: Callable[[dict[str, jax.ShapeDtypeStruct]], Iterator[tuple[str, Any]]]
    """Reads the parameters asked for, by path, with the shardings asked for."""


def open_source(path: str | Path, *, ignore_attributes: Sequence[str] = (), role: str | None = None) -> Source:
    """Understands a directory of parameters; reads none of them.

    Args:
        path: the directory, or the name of a repository of the Hub.
        ignore_attributes: attributes of a Hugging Face config.json known to be without effect.
        role: which model of a run that trains two, generator or discriminator; None is the discriminator.

    Raises:
        UsageError: there is nothing there that holds parameters; attributes to ignore in what is no Hugging Face
            directory.
        DamagedCheckpointError: a file of the checkpoint is not as it was written.
    """
    path = hub.find(path)
    source = _open(path, ignore_attributes, role)
    if role is not None and source.role != role:
        raise UsageError(f"{path} holds one model, no pair: leave out the role {role!r}")
    if ignore_attributes and source.kind != "Hugging Face":
        raise UsageError(f"{path} is a {source.kind} of t2t: its config.json has no attributes to ignore")
    return source


def _open(path: Path, ignore_attributes: Sequence[str], role: str | None) -> Source:
    if not path.is_dir():
        raise UsageError(f"{path} is no directory: give a run, a checkpoint, a model or a Hugging Face directory")
    file = path / "config.json"
    if not file.is_file() and original_t5.holds(path):
        return _open_hugging_face(path, ignore_attributes)
    if not file.is_file():
        raise UsageError(f"{path} has no config.json: it is no run, checkpoint, model or Hugging Face directory")
    if (path / checkpoint.STATE).is_dir() and not original_t5.holds(path):
        return _open_checkpoint(path, role)
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError, PermissionError) as error:
        raise UsageError(f"{file} is not JSON ({error}); restore it") from error
    if not isinstance(content, dict):
        raise UsageError(f"{file} holds {type(content).__name__} instead of an object {{...}}; restore it")
    if "experiment" in content:
        return _open_run(path, role)
    if "t2t" in content:
        return _open_model(path, content)
    if "model_type" in content:
        return _open_hugging_face(path, ignore_attributes)
    raise UsageError(f"{file} is of no known kind: it has neither 't2t' nor 'model_type'")


def _open_checkpoint(path: Path, role: str | None) -> Source:
    path = path.resolve()
    if not path.name.isdigit():
        raise UsageError(f"{path} holds a checkpoint, whose directory must be named by its step: rename it")
    store = checkpoint.CheckpointStore(path.parent)
    step = int(path.name)
    store.verify(step)  # before anything of it is read: a damaged file must not fail as something else
    content = store.config(step)
    try:
        experiment = config_values.from_json(content["experiment"])
    except _IMPOSSIBLE as error:
        raise UsageError(f"{path} (written by t2t {content.get('t2t')}) cannot be read: {error}") from error
    trained = store.shapes(step)["params"]
    pair = experiment.model if isinstance(experiment.model, ElectraConfig) else None
    if pair is not None:
        role = DISCRIMINATOR if role is None else role
        if role not in trained:
            raise UsageError(f"{path} holds no {role}: there is {' and '.join(sorted(trained))}")
        config = pair.configs()[role]
        shapes = {name: trees.by_path(trained[pair.origins(role, name)[0]])[name] for name in _paths(config)}
    else:
        role, config, shapes = None, experiment.model, trees.by_path(trained["model"])

    def leaves(asked: dict[str, jax.ShapeDtypeStruct]) -> Iterator[tuple[str, Any]]:
        kept: dict[str, dict[str, jax.ShapeDtypeStruct]] = {}
        origins = {name: ("model",) if pair is None else pair.origins(role, name) for name in asked}
        for name, roles in origins.items():
            for origin in roles:
                kept.setdefault(origin, {})[name] = asked[name]
        like = {"params": {origin: traverse_util.unflatten_dict(tree, sep="/") for origin, tree in kept.items()}}
        restored = store.restore(step, like=like, subset=True, cast=True, verified=True).state["params"]
        found = {origin: trees.by_path(tree) for origin, tree in restored.items()}
        for name, roles in origins.items():
            yield name, functools.reduce(operator.add, [found[origin][name] for origin in roles])

    return Source(
        path=path,
        kind="checkpoint",
        config=config,
        role=role,
        vocabulary=path / checkpoint.VOCABULARY if (path / checkpoint.VOCABULARY).is_dir() else None,
        origin=content.get("origin", {}),
        shapes=shapes,
        leaves=leaves,
    )


def _open_run(path: Path, role: str | None) -> Source:
    step = checkpoint.CheckpointStore(path / "checkpoints").latest()
    if step is None:
        raise UsageError(f"the run {path} has no checkpoint yet")
    last = path / "checkpoints" / str(step)
    found = _open_checkpoint(last, role)
    return dataclasses.replace(found, path=path, kind="run")


def _paths(config: Any) -> Iterator[str]:
    """Of the parameters of a model."""
    return iter(Network(config).shapes_by_path())


def _open_model(path: Path, content: dict[str, Any]) -> Source:
    file, vocabulary = path / "config.json", path / "vocabulary"
    config, wanted = _read_model(file, content)
    stored = _find_stored(path)
    _check_stored(path, stored, wanted)
    _check_about(file, content, rows=config.vocab_size)
    if vocabulary.exists() and not vocabulary_files.holds(vocabulary):
        raise UsageError(f"{vocabulary} holds no vocabulary; {_MEND}")

    def leaves(asked: dict[str, jax.ShapeDtypeStruct]) -> Iterator[tuple[str, Any]]:
        for name, leaf in asked.items():
            with safetensors.safe_open(str(stored[name].file), framework="numpy") as opened:
                yield name, _place(opened.get_tensor(name), leaf)

    return Source(
        path=path,
        kind="model",
        config=config,
        vocabulary=vocabulary if vocabulary.is_dir() else None,
        start_id=content.get("start_id"),
        shapes={name: jax.ShapeDtypeStruct(shape, np.float32) for name, shape in wanted.items()},
        about=content,
        origin=content.get("origin", {}),
        leaves=leaves,
    )


def _read_model(file: Path, content: dict[str, Any]) -> tuple[Any, dict[str, tuple[int, ...]]]:
    """The model of a model directory's config.json, and the shape of each of its parameters by path."""
    from t2t.models.base import Config, Network

    try:
        config = config_values.from_json(content.get("model"))
        if not isinstance(config, Config):
            raise ValueError(f"model is {_shown(content.get('model'))}; it must be the config of a model")
        config_values.check_types(config)
        return config, Network(config).shapes_by_path()
    except _IMPOSSIBLE as error:
        raise UsageError(f"{file} (written by t2t {content['t2t']}) describes no model: {error}; {_MEND}") from error


@dataclasses.dataclass(frozen=True)
class _Stored:
    """An array of a model directory, as the header of its file describes it."""

    file: Path
    shape: tuple[int, ...]
    code: str


def _find_stored(path: Path) -> dict[str, _Stored]:
    """The arrays of a model directory by path."""
    files = sorted((path / "params").glob("*.safetensors"))
    if not files:
        raise UsageError(f"{path} has a t2t config.json but no params/*.safetensors: it is no model directory")
    stored: dict[str, _Stored] = {}
    for file in files:
        try:
            with safetensors.safe_open(str(file), framework="numpy") as opened:
                for name in opened.keys():
                    if name in stored:
                        raise ValueError(f"it holds {name}, and so does {stored[name].file.name}")
                    array = opened.get_slice(name)
                    stored[name] = _Stored(file, tuple(array.get_shape()), array.get_dtype())
        except (safetensors.SafetensorError, OSError, ValueError) as error:
            raise UsageError(f"{file} cannot be read as safetensors: {error}; {_MEND}") from error
    return stored


def _check_stored(path: Path, stored: dict[str, _Stored], wanted: dict[str, tuple[int, ...]]) -> None:
    """Compares what the files hold with the parameters of the model; says everything that differs."""
    problems = [f"{name} is lacking" for name in wanted if name not in stored]
    problems += [
        f"{stored[name].file.name} holds {name}, which is no parameter of it" for name in stored if name not in wanted
    ]
    for name in (name for name in wanted if name in stored):
        array, shape = stored[name], wanted[name]
        if array.shape != shape:
            problems.append(f"{array.file.name} holds {name} of shape {array.shape}, config.json means {shape}")
        elif array.code not in tensors.READABLE:
            possible = ", ".join(sorted(tensors.READABLE))
            problems.append(f"{array.file.name} holds {name} as {array.code}; possible are {possible}")
    if problems:
        raise UsageError(
            f"{path / 'params'} does not hold the parameters that {path / 'config.json'} describes: "
            f"{'; '.join(problems)}. Restore both as they were written, or make the directory anew with t2t import"
        )


def _check_about(file: Path, content: dict[str, Any], *, rows: int) -> None:
    """Refuses what a model directory's config.json cannot say besides the model, whose embedding has so many rows."""
    origin, ends = content.get("origin", {}), content.get("ends_prompts", False)
    inner = [origin.get(name, {}) for name in ("kept", "special", "generation")] if isinstance(origin, dict) else [None]
    if not all(isinstance(part, dict) for part in inner):
        raise UsageError(f"{file}: origin is {_shown(origin)}; it must hold objects only: kept, special, generation")
    if not isinstance(ends, bool):
        raise UsageError(f"{file}: ends_prompts is {_shown(ends)}; it must be true or false")
    first = inner[2].get("forced_bos_token_id")
    for name, token in (("start_id", content.get("start_id")), ("forced_bos_token_id of origin.generation", first)):
        if token is not None and not (type(token) is int and 0 <= token < rows):
            raise UsageError(
                f"{file}: {name} is {_shown(token)}; it must be a token, from 0 to {rows - 1}, or null; {_MEND}"
            )


def _shown(value: Any) -> str:
    """A value as JSON, cut where it is long."""
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _open_hugging_face(path: Path, ignore_attributes: Sequence[str]) -> Source:
    from t2t.hf import load
    from t2t.models.base import Network

    opened = load.open_directory(path, ignore_attributes=ignore_attributes)

    def leaves(asked: dict[str, jax.ShapeDtypeStruct]) -> Iterator[tuple[str, Any]]:
        for name, leaf in asked.items():
            yield name, _place(opened.leaf(name), leaf)

    return Source(
        path=path,
        kind="Hugging Face",
        config=opened.config,
        vocabulary=opened.vocabulary,
        start_id=load.start_id(path, opened.config),
        origin=opened.origin,
        shapes=trees.by_path(Network(opened.config).shapes()),
        leaves=leaves,
    )


def _place(value: np.ndarray, leaf: jax.ShapeDtypeStruct) -> jax.Array:
    """One array on the mesh; every process reads it whole and keeps its part."""
    value = np.asarray(value, leaf.dtype)
    if leaf.sharding is None:
        return jax.numpy.asarray(value)
    return jax.make_array_from_callback(value.shape, leaf.sharding, lambda index: value[index])
