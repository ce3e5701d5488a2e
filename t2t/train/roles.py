"""What each parameter is for: decay and its like follow this role, never a parameter's rank or a family's spelling."""

from typing import Any, Literal

import jax

Role = Literal["kernel", "embedding", "norm", "bias", "position_bias"]
"""kernel: multiplied with activations. embedding: looked up by token, position or type. norm: gain of a normalisation.
bias: added to activations. position_bias: added to attention scores (T5's relative bias table)."""

DECAYED: tuple[Role, ...] = ("kernel", "embedding")
"""Roles with weight decay.

Embedding tables are decayed as BERT's and GPT-2's own code does: only norms and biases are left out there
(`bert/optimization.py`, exclude_from_weight_decay). The tables of relative position biases are biases."""

_BY_LAST_NAME: dict[str, Role] = {
    "kernel": "kernel",
    "scale": "norm",
    "bias": "bias",
    "embedding": "embedding",
    "positions": "embedding",
    "types": "embedding",
    "languages": "embedding",
    "query_state": "embedding",
    "content_bias": "bias",
    "position_bias": "bias",
    "type_bias": "bias",
}


def parameter_role(path: str) -> Role:
    """The role of the parameter at a path of the tree.

    Example:
        >>> [parameter_role(p) for p in ("decoder/layers_0/attention/out/kernel", "encoder/position/embedding")]
        ['kernel', 'position_bias']

    Raises:
        ValueError: if no rule knows the last name of the path.
    """
    *parents, name = path.split("/")
    if name not in _BY_LAST_NAME:
        raise ValueError(f"no role is known for parameter {path!r}: names end in one of {sorted(_BY_LAST_NAME)}")
    if name == "embedding" and parents and parents[-1] == "position":
        return "position_bias"
    return _BY_LAST_NAME[name]


def roles(params: Any) -> Any:
    """The role of each parameter, as a tree like `params` (arrays or shapes)."""
    return jax.tree_util.tree_map_with_path(lambda path, _: parameter_role(path_name(path)), params)


def decay_mask(params: Any) -> Any:
    """Which parameters weight decay applies to, as a tree of booleans like `params`."""
    return jax.tree.map(lambda role: role in DECAYED, roles(params))


def path_name(path: tuple[Any, ...]) -> str:
    """The keys of a pytree path, joined by slashes."""
    return jax.tree_util.keystr(path, simple=True, separator="/")
