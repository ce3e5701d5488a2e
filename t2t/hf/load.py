"""From a Hugging Face directory to a config and parameters: config.json and safetensors, without torch.

Every tensor and every attribute is accounted for: what the family's lists do not read or ignore is an error, and so is
a parameter the files do not hold, unless the caller asks for another head or names it.
"""

import dataclasses
import difflib
import fnmatch
import functools
import json
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax import traverse_util

from t2t import families, heads
from t2t.errors import UsageError
from t2t.families import labels
from t2t.hf import config_map, files, generation_settings, original_t5, table, tensors, tokenizer
from t2t.models import base
from t2t.models.decoder import DecoderConfig
from t2t.models.encoder import EncoderConfig
from t2t.vocabulary import files as vocabulary_files

log = logging.getLogger(__name__)

_SCORES = "head/classifier/"
"""Where the parameters stand whose last axis are labels."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class HuggingFaceCheckpoint:
    """A Hugging Face directory understood: its config, and its parameters to be read one at a time."""

    directory: Path
    family: config_map.Family
    config: Any
    vocabulary: Path | None
    """The directory, where it holds files of a vocabulary."""
    kept: Mapping[str, Any]
    """Attributes of config.json that say nothing of the model, or of a head other than its own."""
    dropped: tuple[str, ...]
    """Tensors of the files that the model does not hold, by request of the caller."""
    fresh: tuple[str, ...]
    """Parameters that the files do not hold, to be initialised, by request of the caller."""
    labels: tuple[int, ...] | None
    """Where each label of the head asked for stands among those of the files; None where they stand alike."""
    _reader: tensors.TensorReader
    _bindings: tuple[table.Binding, ...]
    _names: Mapping[str, str]  # key of a binding -> name in the files
    _shapes: Mapping[str, table.Shape]

    @property
    def shapes(self) -> Mapping[str, table.Shape]:
        """Shape of every parameter, by path."""
        return self._shapes

    @property
    def origin(self) -> dict[str, Any]:
        """What an export of the model is to say as these files do: attributes ("kept"), settings ("generation").

        Raises:
            UsageError: generation_config.json is not JSON.
        """
        origin: dict[str, Any] = {"kept": dict(self.kept)}
        try:
            architecture = self.family.architecture(self.config)
        except config_map.InexpressibleError:
            return origin
        if generation_settings.generates(architecture):
            origin["generation"] = generation_settings.read(self.directory, read_config(self.directory))
        return origin

    def leaf(self, path: str, *, dtype: str = "float32") -> np.ndarray:
        """One parameter, read from the files or, where it is fresh, drawn."""
        if path in self.fresh:
            return np.asarray(self._drawn[path], files.DTYPES[dtype])
        leaf = np.empty(self._shapes[path], files.DTYPES[dtype])
        for binding, position, index in self._held[path]:
            leaf[... if index is None else index] = binding.part(self._reader(self._names[binding.key]), position)
        if self.labels is not None and path.startswith(_SCORES):
            leaf = leaf[..., list(self.labels)]
        if not np.isfinite(leaf).all():
            log.warning("%s: %s holds values that are not finite", self.directory, path)
        return leaf

    def params(self, *, dtype: str = "float32") -> dict[str, Any]:
        """All parameters as a tree."""
        leaves = {path: self.leaf(path, dtype=dtype) for path in self._shapes}
        return traverse_util.unflatten_dict(leaves, sep="/")

    @functools.cached_property
    def _held(self) -> dict[str, list[tuple[table.Binding, int, int | None]]]:
        """The tensors that hold a parameter: which part of them, and where in the parameter it stands."""
        held: dict[str, list[tuple[table.Binding, int, int | None]]] = {}
        for binding in self._bindings:
            for position, slot in enumerate(binding.slots):
                held.setdefault(slot.path, []).append((binding, position, slot.index))
        return held

    @functools.cached_property
    def _drawn(self) -> dict[str, jax.Array]:
        """The fresh parameters, always the same ones."""

        def draw(key: jax.Array) -> dict[str, jax.Array]:
            drawn = traverse_util.flatten_dict(base.Network(self.config).init(key), sep="/")
            return {path: drawn[path] for path in self.fresh}

        return jax.jit(draw)(jax.random.key(0))


def open_directory(
    directory: str | os.PathLike,
    *,
    head: heads.Head | None = None,
    drop: Sequence[str] = (),
    fresh: Sequence[str] = (),
    ignore_attributes: Sequence[str] = (),
) -> HuggingFaceCheckpoint:
    """Understand a Hugging Face directory; reads config.json and what the tensor files say of themselves.

    Of the tensors themselves only copies of shared ones are read, to see that they are copies. `t2t.load` leaves out
    and initialises nothing by name; `t2t import` does, and what it writes can be loaded.

    Args:
        directory: holds config.json and model.safetensors, or another of the files that `t2t.hf.tensors` reads.
        head: the head the model shall have; None is the one of the files, `heads.BARE` is none. With another head,
          tensors of the old one (and of a decoder that the new one does without) are left out and parameters of the new
          one are fresh. Labels may be asked for by their names, in any order; without names they have those of the
          files.
        drop: patterns of further tensors without a place in the model, to leave out.
        fresh: patterns of parameters that the files lack, to initialise.
        ignore_attributes: attributes of config.json known to be without effect.

    Raises:
        UsageError: no config.json, or one that cannot be understood, or of a class of transformers that has a head
          which t2t has not; a head that the family has not; patterns and attributes that name nothing there.
        FileNotFoundError: no tensors.
        ValueError: attributes that change numbers and that t2t does not do; tensors without a place, parameters without
          a tensor, shapes that differ: each one is listed. Labels asked for that the files do not score.
    """
    for name, given in {"drop": drop, "fresh": fresh, "ignore_attributes": ignore_attributes}.items():
        if isinstance(given, str):
            raise UsageError(f"{name} is the string {given!r}; give a list of such strings")
    directory = Path(directory)
    config_json = read_config(directory)
    family = _family(directory, config_json, ignored=ignore_attributes)
    if head is None:
        _check_class(directory, family, config_json)
    values = family.attributes.values(config_json, ignore=ignore_attributes)
    reader = tensors.TensorReader(directory)
    names = _canonical(family.table, reader)
    has_base = bool(family.table.base) and any(name.startswith(family.table.base) for name in names)
    try:
        config = family.from_hf(values, frozenset(name.removeprefix(family.table.base) for name in names))
    except (ValueError, TypeError, AttributeError, LookupError, ZeroDivisionError) as error:
        raise UsageError(
            f"{directory / 'config.json'} describes no {family.model_type} model ({error}); compare its attributes "
            "with those of a published one"
        ) from error
    order = None
    if head is not None:
        own = config
        try:
            config = family.with_head(own, None if isinstance(head, heads.Bare) else head)
        except (ValueError, TypeError, AttributeError) as error:
            raise UsageError(f"{directory}: {error}") from error
        config = family.head_from_hf(config, values)
        config, order = labels.completed(own, config), labels.order(own, config)
    shapes = base.Network(config).shapes_by_path()
    bindings = family.table.bind(shapes, base=has_base, task=getattr(config.head, "task", None))
    accounts = _Accounts(family.table, reader, names, bindings)
    accounts.settle(drop=drop, fresh=fresh, other_head=head is not None, where=str(directory))
    return HuggingFaceCheckpoint(
        directory=directory,
        family=family,
        config=config,
        vocabulary=directory if vocabulary_files.holds(directory) else None,
        kept=_kept(family, config, config_json),
        dropped=tuple(sorted(accounts.dropped)),
        fresh=tuple(sorted(accounts.fresh)),
        labels=order,
        _reader=reader,
        _bindings=bindings,
        _names=accounts.sources,
        _shapes=shapes,
    )


def read_config(directory: Path) -> dict[str, Any]:
    """The parsed config.json of a directory, or what an original checkpoint of T5 says in its place.

    Raises:
        UsageError: there is none, or it is not JSON.
    """
    path = directory / "config.json"
    if path.exists():
        return _read_object(path)
    if original_t5.holds(directory):
        return original_t5.config(directory)
    if not directory.is_dir():
        raise UsageError(f"there is no directory {directory}")
    raise UsageError(f"{directory} is no Hugging Face directory: it has no config.json")


def _read_object(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError, IsADirectoryError, PermissionError) as error:
        raise UsageError(f"{path} is not JSON: {error}; copy or download it again") from error
    if not isinstance(content, dict):
        raise UsageError(f"{path} holds {type(content).__name__} instead of an object {{...}}")
    return content


def _family(directory: Path, config_json: Mapping[str, Any], *, ignored: Sequence[str]) -> config_map.Family:
    """The family of a config.json all of whose attributes are of the types they can be."""
    path, model_type = directory / "config.json", config_json.get("model_type")
    if not isinstance(model_type, str):
        raise UsageError(f"{path}: model_type is {json.dumps(model_type)}; it must be a string, such as 't5'")
    try:
        family = families.by_model_type(model_type)
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from error
    if misfits := family.attributes.misfits(config_json):
        raise UsageError(f"{path}: {'; '.join(misfits)}")
    for name in ignored:
        if name not in config_json:
            raise UsageError(f"{path} has no attribute {name!r} to ignore; {_closest(name, config_json)}")
    return family


def _kept(family: config_map.Family, config: Any, config_json: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that an export of the model is to have from its files, of the types that transformers 5 wants."""
    names = sorted(config_map.KEPT | family.kept(config))
    kept = {name: config_json[name] for name in names if config_json.get(name) is not None}
    numbers = {name for name in kept if float in family.attributes.kinds(name)}
    return {name: float(value) if name in numbers else value for name, value in kept.items()}


def _check_class(directory: Path, family: config_map.Family, config_json: Mapping[str, Any]) -> None:
    """Refuses classes of transformers by their name, before anything is said about their tensors."""
    for name in config_json.get("architectures") or ():
        if isinstance(name, str) and name in family.refused:
            raise UsageError(f"{directory / 'config.json'}: t2t does not read {name}: {family.refused[name]}")


def _closest(pattern: str, names: Iterable[str]) -> str:
    """What may have been meant by a pattern that matches none of the names."""
    found = difflib.get_close_matches(pattern, list(names), n=3, cutoff=0.5)
    shown = found or sorted(names)[:10]
    return f"{'the closest are' if found else 'there are'} {', '.join(shown) or 'none'}"


def start_id(directory: Path, config: Any) -> int | None:
    """The token with which a decoder starts; None for encoders, and decoders whose text begins with the prompt itself.

    A decoder's is what its tokenizer puts before every text, an encoder-decoder's the one its config names (T5's 0,
    BART's end token), or where it names none that of the family (mBART has none: it is the code of the language).
    """
    if isinstance(config, EncoderConfig):
        return None
    if isinstance(config, DecoderConfig):
        return tokenizer.first_token(directory)
    generation = directory / "generation_config.json"
    said = _read_object(generation) if generation.exists() else {}
    config_json = read_config(directory)
    published = families.by_model_type(config_json["model_type"]).published_ids
    usual = 0 if published is None else published.get("decoder_start_token_id")
    token = {"decoder_start_token_id": usual, **config_json, **said}["decoder_start_token_id"]
    if token is not None and not (type(token) is int and 0 <= token < config.vocab_size):
        name = generation.name if "decoder_start_token_id" in said else "config.json"
        raise UsageError(
            f"{directory / name}: decoder_start_token_id is {json.dumps(token)}; it must be an integer, the id of a "
            f"token from 0 to {config.vocab_size - 1}"
        )
    return token


def ends_prompts(directory: Path, config: Any) -> bool:
    """Whether the tokenizer of a decoder ends every text, as it does for one that learned text-to-text tasks."""
    return isinstance(config, DecoderConfig) and tokenizer.last_token(directory) is not None


def _canonical(names: table.Table, reader: tensors.TensorReader) -> dict[str, str]:
    """Present name -> name in the files, for all tensors that the family does not ignore."""
    found: dict[str, str] = {}
    for key in sorted(reader.names):
        if names.ignores(key) or (names.ignores(key, is_zero=True) and not reader(key).any()):
            continue
        name = names.canonical(key)
        if name in found:
            raise ValueError(f"the tensors {found[name]} and {key} are the same under an old and a new name")
        found[name] = key
    return found


class _Accounts:
    """Which tensor each binding is read from, and what is left over on either side."""

    def __init__(
        self,
        names: table.Table,
        reader: tensors.TensorReader,
        present: dict[str, str],
        bindings: Sequence[table.Binding],
    ):
        self._table, self._reader = names, reader
        self._paths = {slot.path for binding in bindings for slot in binding.slots}
        self.sources: dict[str, str] = {}
        self.missing: dict[str, tuple[str, ...]] = {}  # key -> paths
        self.wrong: list[str] = []
        left = dict(present)
        for binding in bindings:
            held = [left.pop(name) for name in (binding.key, *binding.copies) if name in left]
            if not held:
                self.missing[binding.key] = tuple(slot.path for slot in binding.slots)
                continue
            self.sources[binding.key] = held[0]
            self._compare(binding, held)
        self.unused = sorted(key for name, key in left.items() if not names.ignores(name, unused=True))
        self.dropped: set[str] = set()
        self.fresh: set[str] = set()

    def _compare(self, binding: table.Binding, held: list[str]) -> None:
        """Note a shape or type that cannot be, and copies of a shared tensor that are not copies."""
        if self._reader.shape(held[0]) != binding.shape:
            self.wrong.append(f"{held[0]} has shape {self._reader.shape(held[0])}, config.json means {binding.shape}")
            return
        if self._reader.code(held[0]) not in tensors.READABLE:
            readable = ", ".join(sorted(tensors.READABLE))
            self.wrong.append(
                f"{held[0]} is stored as {self._reader.code(held[0])}; parameters are read from {readable}"
            )
            return
        copies = () if binding.copies_may_differ else held[1:]
        first = self._reader(held[0]) if copies else None
        for copy in copies:
            if not np.array_equal(first, self._reader(copy)):
                self.wrong.append(f"{copy} differs from {held[0]}, but config.json says that they are shared")

    def settle(self, *, drop: Sequence[str], fresh: Sequence[str], other_head: bool, where: str) -> None:
        """Apply what the caller asked to leave out and to initialise; raises for the rest."""
        absent = [path for paths in self.missing.values() for path in paths]
        _check_patterns(drop, self.unused, what="drop", means="tensor without a place in the model")
        _check_patterns(fresh, absent, what="fresh", means="parameter that the files lack")
        has_decoder = any(path.startswith("decoder/") for path in self._paths)
        unneeded = table.HEAD_PATHS if has_decoder else (*table.HEAD_PATHS, "decoder/", "decoder_embed/")
        self.dropped = {
            k
            for k in self.unused
            if _matches(k, drop) or (other_head and self._table.is_of(self._table.canonical(k), unneeded))
        }
        lacking = []
        for key, paths in self.missing.items():
            of_head = other_head and all(path.startswith(table.HEAD_PATHS) for path in paths)
            self.fresh |= {path for path in paths if of_head or _matches(path, fresh)}
            lacking += [f"{path} ({key})" for path in paths if path not in self.fresh]
        unused = [key for key in self.unused if key not in self.dropped]
        problems = [
            f"tensors without a place in the model: {', '.join(unused)}" if unused else "",
            f"parameters without a tensor: {', '.join(lacking)}" if lacking else "",
            f"tensors that do not fit: {'; '.join(self.wrong)}" if self.wrong else "",
        ]
        if any(problems):
            raise ValueError(
                f"{where} does not match its config.json. " + ". ".join(p for p in problems if p) + ". "
                "If another head is meant, t2t.load takes it (head=...), and so does t2t import (--head). What is to "
                "be left out or initialised all the same, name there: t2t import --drop TENSORS --fresh PARAMETERS."
            )


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _check_patterns(patterns: Sequence[str], names: Sequence[str], *, what: str, means: str) -> None:
    for pattern in patterns:
        if not any(_matches(name, [pattern]) for name in names):
            raise UsageError(f"{what} {pattern!r} matches no {means}; {_closest(pattern, names)}")
