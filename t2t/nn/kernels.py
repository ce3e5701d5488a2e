"""Choosing what computes the attention of all blocks of a stack."""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from t2t.functional.kernels.choice import REFERENCE, Kernel

Stack = TypeVar("Stack")


def may_differ(blocks: Iterable[Any]) -> bool:
    """Whether the attention of any of these blocks may be computed otherwise than by the reference."""
    return any(layer.kernels != REFERENCE for block in blocks for _, layer in _layers(block))


def with_kernels(stack: Stack, kernels: tuple[Kernel, ...]) -> Stack:
    """The config of a stack whose blocks compute their attention by the first of these that can."""

    def changed(block: Any) -> Any:
        layers = {name: dataclasses.replace(layer, kernels=kernels) for name, layer in _layers(block)}
        return dataclasses.replace(block, **layers)

    parts = {name: tuple(map(changed, getattr(stack, name))) for name in ("prefix", "pattern", "suffix")}
    return dataclasses.replace(stack, **parts)  # type: ignore[type-var]


def _layers(block: Any) -> Iterator[tuple[str, Any]]:
    for name in ("attention", "cross_attention"):
        if (layer := getattr(block, name)) is not None:
            yield name, layer
