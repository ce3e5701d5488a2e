"""Pytrees as plain nested dicts of arrays keyed by strings: what goes into a checkpoint, and the way back.

Nothing on disk depends on a class of ours, of flax or of optax: a field, a key and an index are all just names on a
path. `differences` says where two such trees disagree before anything is loaded.
"""

from typing import Any

import jax
import numpy as np

Nested = dict[str, Any]
"""A nested dict of arrays (or shapes) whose keys are strings."""


def to_nested(tree: Any) -> Nested:
    """The leaves of `tree` in nested dicts keyed by the names on their paths; nodes without leaves vanish.

    Example:
        >>> to_nested({"a": (1, 2), "b": {}})
        {'a': {'0': 1, '1': 2}}
    """
    nested: Nested = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        *parents, last = _names(path)
        node = nested
        for name in parents:
            node = node.setdefault(name, {})
        node[last] = leaf
    return nested


def from_nested(nested: Nested, *, like: Any) -> Any:
    """The leaves of `nested` arranged as the tree `like`, whose own leaves only lend their paths.

    Example:
        >>> from_nested({"a": {"0": 1, "1": 2}}, like={"a": (0, 0)})
        {'a': (1, 2)}
    """
    paths, structure = jax.tree_util.tree_flatten_with_path(like)
    leaves = []
    for path, _ in paths:
        node: Any = nested
        for name in _names(path):
            node = node[name]
        leaves.append(node)
    return jax.tree_util.tree_unflatten(structure, leaves)


def by_path(tree: Any) -> dict[str, Any]:
    """The leaves of `tree` by their paths.

    Example:
        >>> by_path({"a": (1, 2)})
        {'a/0': 1, 'a/1': 2}
    """
    return {"/".join(_names(path)): leaf for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]}


def differences(saved: Any, wanted: Any, *, subset: bool = False, cast: bool = False) -> list[str]:
    """One line for each path at which two trees of arrays differ in presence, shape or dtype.

    Args:
        saved: the tree that is there.
        wanted: the tree that is asked for.
        subset: whether `saved` may hold more than is wanted.
        cast: whether a floating-point type may stand for another.
    """
    there, asked = by_path(saved), by_path(wanted)
    paths = list(asked) + ([] if subset else [path for path in there if path not in asked])
    lines = []
    for path in paths:
        left = _describe(there[path]) if path in there else "absent"
        right = _describe(asked[path]) if path in asked else "absent"
        may_cast = cast and path in there and path in asked and _is_castable(there[path], asked[path])
        if left != right and not may_cast:
            lines.append(f"{path}: saved {left}, wanted {right}")
    return lines


def _is_castable(saved: Any, wanted: Any) -> bool:
    both_float = all(jax.dtypes.issubdtype(leaf.dtype, np.floating) for leaf in (saved, wanted))
    return both_float and tuple(saved.shape) == tuple(wanted.shape)


def _describe(leaf: Any) -> str:
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return f"{leaf.dtype}{list(leaf.shape)}"
    return f"{np.dtype(leaf.dtype).name}{list(leaf.shape)}"


def _names(path: tuple[Any, ...]) -> list[str]:
    if not path:
        raise ValueError("a single array is not a tree with names: put it into a dict")
    return [str(_name(entry)) for entry in path]


def _name(entry: Any) -> Any:
    match entry:
        case jax.tree_util.GetAttrKey(name):
            return name
        case jax.tree_util.SequenceKey(index):
            return index
        case jax.tree_util.DictKey(key) | jax.tree_util.FlattenedIndexKey(key):
            return key
        case _:
            raise TypeError(f"unknown kind of path entry {entry!r}")
