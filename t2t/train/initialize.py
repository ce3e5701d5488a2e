"""Where parameters come from: fresh ones, or those of a run, a checkpoint, a model or a Hugging Face directory."""

import dataclasses
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import safetensors
from flax import traverse_util

from t2t import config_values, sharding
from t2t.errors import UsageError
from t2t.hf import hub, original_t5, table, tensors
from t2t.train import build, checkpoint, transfer, trees
from t2t.train import state as state_lib
from t2t.train.build import Pieces
from t2t.vocabulary import Vocabulary
from t2t.vocabulary import files as vocabulary_files

log = logging.getLogger(__name__)

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
    origin: dict[str, Any] = dataclasses.field(default_factory=dict)
    """What an export has from the Hugging Face files that the model comes from (`HuggingFaceCheckpoint.origin`)."""
    leaves: Callable[[dict[str, jax.ShapeDtypeStruct]], Iterator[tuple[str, Any]]]
    """Reads the parameters asked for, by path, with the shardings asked for."""


def open_source(path: str | Path, *, ignore_attributes: Sequence[str] = ()) -> Source:
    """Understands a directory of parameters; reads none of them.

    Args:
        path: the directory, or the name of a repository of the Hub.
        ignore_attributes: attributes of a Hugging Face config.json known to be without effect.

    Raises:
        UsageError: there is nothing there that holds parameters; attributes to ignore in what is no Hugging Face
            directory.
        DamagedCheckpointError: a file of the checkpoint is not as it was written.
    """
    path = hub.find(path)
    source = _open(path, ignore_attributes)
    if ignore_attributes and source.kind != "Hugging Face":
        raise UsageError(f"{path} is a {source.kind} of t2t: its config.json has no attributes to ignore")
    return source


def _open(path: Path, ignore_attributes: Sequence[str]) -> Source:
    if not path.is_dir():
        raise UsageError(f"{path} is no directory: give a run, a checkpoint, a model or a Hugging Face directory")
    file = path / "config.json"
    if not file.is_file() and original_t5.holds(path):
        return _open_hugging_face(path, ignore_attributes)
    if not file.is_file():
        raise UsageError(f"{path} has no config.json: it is no run, checkpoint, model or Hugging Face directory")
    if (path / checkpoint.STATE).is_dir() and not original_t5.holds(path):
        return _open_checkpoint(path)
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError, PermissionError) as error:
        raise UsageError(f"{file} is not JSON ({error}); restore it") from error
    if not isinstance(content, dict):
        raise UsageError(f"{file} holds {type(content).__name__} instead of an object {{...}}; restore it")
    if "experiment" in content:
        return _open_run(path)
    if "t2t" in content:
        return _open_model(path, content)
    if "model_type" in content:
        return _open_hugging_face(path, ignore_attributes)
    raise UsageError(f"{file} is of no known kind: it has neither 't2t' nor 'model_type'")


def load_params(source: Source, pieces: Pieces) -> dict[str, Any]:
    """The parameters of a run, read one by one from another model and placed on the mesh.

    Heads and poolers that the source lacks are fresh; those that the model lacks are left out: they belong to what a
    model was trained for. With `init_partial` the same holds for whatever does not fit.

    Raises:
        UsageError: arrays that are missing, left over or of another shape, each is listed; with `init_partial`, when
            nothing fits.
    """
    wanted = trees.by_path(pieces.state.params["model"])
    fit = transfer.compare(source.shapes, wanted, free=table.HEAD_PATHS)
    if not fit.is_exact and not pieces.experiment.init_partial:
        raise UsageError(
            f"the parameters of {source.path} do not fit the model:\n  " + "\n  ".join(fit.misfits()) + "\n"
            "Give the model those sizes, or --init-partial to take what fits and begin with fresh parameters elsewhere"
        )
    if not fit.taken:
        raise UsageError(f"no parameter of {source.path} fits the model:\n  " + "\n  ".join(fit.misfits()))
    if pieces.experiment.init_partial:
        log.info("the parameters of %s in this model:\n  %s", source.path, "\n  ".join(fit.lines()))
    elif fit.fresh:
        log.warning("%s does not hold %s: these begin fresh", source.path, ", ".join(fit.fresh))
    if fit.unused and not pieces.experiment.init_partial:
        log.info("%s of %s have no place in the model and are left out", ", ".join(fit.unused), source.path)
    begin_fresh = [*fit.fresh, *fit.other_shape]
    fresh = trees.by_path(fresh_params(pieces)["model"]) if begin_fresh else {}
    asked = {path: wanted[path] for path in fit.taken}
    params = {path: fresh[path] for path in begin_fresh} | dict(source.leaves(asked))
    nested = traverse_util.unflatten_dict(params, sep="/")
    return {"model": trees.from_nested(nested, like=pieces.state.params["model"])}


def fresh_params(pieces: Pieces) -> dict[str, Any]:
    """New parameters by role, drawn from the seed of the experiment; the same on any mesh."""
    init = jax.jit(lambda key: state_lib.init_params(pieces.models, key), out_shardings=pieces.shardings.params)
    with sharding.use_mesh(pieces.mesh):
        return init(jax.random.key(pieces.experiment.seed))


def make_state(params: dict[str, Any], pieces: Pieces) -> state_lib.TrainState:
    """The state of step 0 around these parameters, on the mesh."""

    def init(params: Any) -> state_lib.TrainState:
        return state_lib.init_state(
            params, pieces.optimizer, carry=build.initial_carry(pieces.experiment, pieces.models)
        )

    with sharding.use_mesh(pieces.mesh):
        return jax.jit(init, out_shardings=pieces.shardings)(params)


def load_vocabulary(source: Source) -> Vocabulary:
    """The vocabulary of a source that has one.

    Raises:
        UsageError: its files are not understood.
    """
    try:
        return Vocabulary.load(source.vocabulary)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"the vocabulary of {source.path} is not understood: {error}. Restore it, or give files of the "
            "same one with --vocabulary"
        ) from error


def check_same_vocabulary(source: Source, vocabulary: Vocabulary) -> None:
    """Refuses to read parameters whose embedding rows mean other tokens than the vocabulary of the run.

    Raises:
        UsageError: naming the first id that differs.
    """
    try:
        theirs = None if source.vocabulary is None else load_vocabulary(source).pieces()
    except UsageError as error:
        theirs = None
        log.warning("%s", error)
    if theirs is None:
        log.warning("%s holds no vocabulary: nothing tells whether its tokens are those of this run", source.path)
        return
    ours = vocabulary.pieces()
    for token, (left, right) in enumerate(zip(theirs, ours, strict=False)):
        if left != right:
            raise UsageError(
                f"the vocabulary of {source.path} is another one than the run's: id {token} is {left!r} there and "
                f"{right!r} here, so its embeddings would mean other tokens. Leave out `vocabulary` to take that of "
                "the model, or drop `init`."
            )


def _open_checkpoint(path: Path) -> Source:
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
    shapes = trees.by_path(store.shapes(step)["params"]["model"])

    def leaves(asked: dict[str, jax.ShapeDtypeStruct]) -> Iterator[tuple[str, Any]]:
        like = {"params": {"model": traverse_util.unflatten_dict(asked, sep="/")}}
        restored = store.restore(step, like=like, subset=True, cast=True, verified=True)
        yield from trees.by_path(restored.state["params"]["model"]).items()

    return Source(
        path=path,
        kind="checkpoint",
        config=experiment.model,
        vocabulary=path / checkpoint.VOCABULARY if (path / checkpoint.VOCABULARY).is_dir() else None,
        origin=content.get("origin", {}),
        shapes=shapes,
        leaves=leaves,
    )


def _open_run(path: Path) -> Source:
    step = checkpoint.CheckpointStore(path / "checkpoints").latest()
    if step is None:
        raise UsageError(f"the run {path} has no checkpoint yet")
    last = path / "checkpoints" / str(step)
    found = _open_checkpoint(last)
    return dataclasses.replace(found, path=path, kind="run")


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
