"""Checkpoints of Google's own libraries as arrays by name, each read when NumPy asks for it.

    T5X         `checkpoint`, a msgpack tree, beside directories `target.encoder...` of zarr arrays
    Orbax       `_METADATA` of a tree of zarr arrays, in the directory itself or in `state/`: later versions of T5X
    TensorFlow  `model.ckpt-N.index` and `model.ckpt-N.data-...`: Mesh TensorFlow

The library that wrote a file opens it here too: flax, tensorstore, and TensorFlow, imported for its own files alone.

Reference: `t5x/checkpoints.py`, `orbax.checkpoint`, `tf.train.load_checkpoint`.
"""

import glob
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorstore
from flax import serialization

from t2t import file_checks

MSGPACK = "checkpoint"
"""T5X's file. TensorFlow's of the same name is text that says which checkpoint is the last."""

METADATA = "_METADATA"
"""Orbax's file about its tree."""


def find(directory: Path) -> Path | None:
    """The file that says what a directory holds, if it is one of these.

    Raises:
        ValueError: there is a pointer of Git LFS in its place.
    """
    tree = directory / MSGPACK
    if tree.is_file():
        with open(tree, "rb") as file:
            start = file.read(len(file_checks.POINTER))
        if start[:1] >= b"\x80":  # a map of msgpack; text begins lower
            return tree
        file_checks.refuse_pointer(tree, start)
    for file in (directory / METADATA, directory / "state" / METADATA):
        if file.is_file() and b'"target"' in file.read_bytes():  # T5X's parameters; other trees of Orbax have others
            return file
    return max(_indices(directory), default=None)


def _indices(directory: Path) -> list[Path]:
    """TensorFlow's files that have their data beside them."""
    return [file for file in directory.glob("*.index") if any(directory.glob(f"{glob.escape(file.stem)}.data-*"))]


def open_arrays(file: Path) -> dict[str, Any]:
    """The arrays of a checkpoint by name, with shape and dtype; those of T5X and Orbax are joined by dots.

    Args:
        file: as `find` gives it.

    Raises:
        ValueError: the checkpoint is damaged, or the directory holds several.
    """
    opener = {MSGPACK: _open_t5x, METADATA: _open_orbax}.get(file.name, _open_tensorflow)
    if opener is _open_tensorflow and len(found := _indices(file.parent)) > 1:
        raise ValueError(
            f"{file.parent} holds {len(found)} checkpoints; leave the files of one, such as {found[0].stem}.*"
        )
    file_checks.require(file)
    try:
        return opener(file)
    except Exception as error:  # the libraries that read what is damaged raise errors of many kinds
        raise ValueError(
            f"{file} cannot be read: {type(error).__name__}, {error}. If it is damaged, or files beside it are "
            "missing, copy or download the checkpoint again"
        ) from error


def _open_t5x(file: Path) -> dict[str, Any]:
    tree = serialization.msgpack_restore(file.read_bytes())
    # Small arrays stand in the tree itself; of the others it holds what tensorstore needs to open them.
    return {name: _open_zarr(file.parent, leaf) for name, leaf in _leaves(tree["optimizer"]["target"], "target")}


def _leaves(tree: Mapping[str, Any], name: str) -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping) and "kvstore" not in value:
            yield from _leaves(value, f"{name}.{key}")
        else:
            yield f"{name}.{key}", value


def _open_zarr(directory: Path, leaf: Any) -> Any:
    if not isinstance(leaf, Mapping):
        return np.asarray(leaf)
    place = directory / Path(leaf["kvstore"]["path"]).name  # the whole path is the writer's, often of a bucket
    return _open({"driver": "zarr", "kvstore": {"driver": "file", "path": f"{place.resolve()}/"}})


def _open_orbax(file: Path) -> dict[str, Any]:
    folder = file.parent.resolve()
    content = json.loads(file.read_text(encoding="utf-8"))
    driver = "zarr3" if content.get("use_zarr3") else "zarr"
    names = [
        ".".join(str(part["key"]) for part in entry["key_metadata"])
        for entry in content["tree_metadata"].values()
        if not entry["value_metadata"].get("skip_deserialize")
    ]

    def place(name: str) -> dict[str, Any]:
        if (folder / "manifest.ocdbt").exists():
            return {"driver": "ocdbt", "base": f"file://{folder}/", "path": f"{name}/"}
        return {"driver": "file", "path": f"{folder / name}/"}

    return {name: _open({"driver": driver, "kvstore": place(name)}) for name in names}


def _open(spec: dict[str, Any]) -> Any:
    return tensorstore.open(spec, open=True, read=True).result()


def _open_tensorflow(file: Path) -> dict[str, Any]:
    from t2t.data import tensorflow_checkpoint  # TensorFlow takes seconds to load, for files that few have

    return tensorflow_checkpoint.open_arrays(file.with_suffix(""))
