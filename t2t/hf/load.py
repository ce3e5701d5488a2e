"""From a Hugging Face directory to a config and parameters: config.json and safetensors, without torch.

Every tensor and every attribute is accounted for: what the family's lists do not read or ignore is an error, and so is
a parameter the files do not hold, unless the caller asks for another head or names it.
"""

import dataclasses
import functools
import json
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax import traverse_util

from t2t import families, heads
from t2t.errors import UsageError
from t2t.families import labels
from t2t.hf import accounts as accounts_lib
from t2t.hf import config_map, files, generation_settings, original_t5, table, tensors, tokenizer
from t2t.models import base
from t2t.models.decoder import DecoderConfig
from t2t.models.encoder import EncoderConfig
from t2t.vocabulary import files as vocabulary_files
from t2t.vocabulary import reading

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
    special: Mapping[str, Any]
    """Attributes of config.json that name special ids."""
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
        """What an export of the model is to say as these files do.

        Attributes ("kept"), special ids where it has no vocabulary ("special"), settings ("generation").

        Raises:
            UsageError: generation_config.json is not JSON.
        """
        origin: dict[str, Any] = {"kept": dict(self.kept), "special": dict(self.special)}
        try:
            architecture = self.family.architecture(self.config)
        except config_map.InexpressibleError:
            return origin
        if generation_settings.generates(architecture):
            origin["generation"] = generation_settings.read(self.directory, read_config(self.directory))
        return origin

    def leaf(self, path: str, *, dtype: str = "float32") -> np.ndarray:
        """One parameter, read from the files or, where it is fresh, drawn.

        Raises:
            UsageError: a number of the files is too large for the type.
        """
        if path in self.fresh:
            return np.asarray(self._drawn[path], files.DTYPES[dtype])
        leaf = np.empty(self._shapes[path], files.DTYPES[dtype])
        for binding, position, index in self._held[path]:
            with np.errstate(over="ignore"):
                leaf[... if index is None else index] = self._part(binding, position)
        if self.labels is not None and path.startswith(_SCORES):
            leaf = leaf[..., list(self.labels)]
        if not np.isfinite(leaf).all():
            self._check_fits(path, dtype)
            log.warning("%s: %s holds values that are not finite", self.directory, path)
        return leaf

    def _part(self, binding: table.Binding, position: int) -> np.ndarray:
        return binding.part(self._reader(self._names[binding.key]), position)

    def _check_fits(self, path: str, dtype: str) -> None:
        """Refuses numbers that only the type makes infinite."""
        for binding, position, _ in self._held[path]:
            part = self._part(binding, position)
            with np.errstate(over="ignore"):
                lost = part[np.isfinite(part) & ~np.isfinite(part.astype(files.DTYPES[dtype]))]
            if lost.size:
                raise UsageError(
                    f"{self.directory}: {path} holds {float(lost[0]):.3g}, which {dtype} has no number for"
                    f"{'' if dtype == 'float32' else ': take bfloat16 or float32'}"
                )

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
    accounts = accounts_lib.Accounts(family.table, reader, names, bindings)
    accounts.settle(drop=drop, fresh=fresh, other_head=head is not None, where=str(directory))
    return HuggingFaceCheckpoint(
        directory=directory,
        family=family,
        config=config,
        vocabulary=directory if vocabulary_files.holds(directory) else None,
        kept=_kept(family, config, config_json),
        special=_special(family, config, config_json),
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
        return reading.read_object(path)
    if original_t5.holds(directory):
        return original_t5.config(directory)
    if not directory.is_dir():
        raise UsageError(f"there is no directory {directory}")
    raise UsageError(f"{directory} is no Hugging Face directory: it has no config.json")


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
            raise UsageError(f"{path} has no attribute {name!r} to ignore; {accounts_lib.closest(name, config_json)}")
    return family


def _kept(family: config_map.Family, config: Any, config_json: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that an export of the model is to have from its files, of the types that transformers 5 wants."""
    names = sorted(config_map.KEPT | family.kept(config))
    kept = {name: config_json[name] for name in names if config_json.get(name) is not None}
    numbers = {name for name in kept if float in family.attributes.kinds(name)}
    return {name: float(value) if name in numbers else value for name, value in kept.items()}


def _special(family: config_map.Family, config: Any, config_json: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that name special ids, where they are rows of the embedding."""
    usual = family.published_ids or {}
    names = [name for name in config_json if name.endswith("_token_id") and not name.startswith("forced_")]
    found = {}
    for name in {*names, *usual} & config_json.keys():
        value = config_json[name]
        ids = value if isinstance(value, list) else [value]
        if ids and all(type(token) is int and 0 <= token < config.vocab_size for token in ids):
            found[name] = value
    return found


def _check_class(directory: Path, family: config_map.Family, config_json: Mapping[str, Any]) -> None:
    """Refuses classes of transformers by their name, before anything is said about their tensors."""
    for name in config_json.get("architectures") or ():
        if isinstance(name, str) and name in family.refused:
            raise UsageError(f"{directory / 'config.json'}: t2t does not read {name}: {family.refused[name]}")


def start_id(directory: Path, config: Any) -> int | None:
    """The token with which a decoder starts; None for encoders, and decoders whose text begins with the prompt itself.

    A decoder's is what its tokenizer puts before every text, an encoder-decoder's the one its config names (T5's 0,
    BART's end token), or where it names none that of the family (mBART has none: it is the code of the language).

    Raises:
        UsageError: what the files say is no number.
    """
    if isinstance(config, EncoderConfig):
        return None
    if isinstance(config, DecoderConfig):
        return tokenizer.first_token(directory)
    generation = directory / "generation_config.json"
    said = reading.read_object(generation) if generation.exists() else {}
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
