"""Which kernel can compute an attention exactly as the reference does; one that cannot is never taken.

The reference is `t2t/functional/attention.py`: it honours everything, and holds the scores [B, N, T, S].

| kernel | runs on             | honours besides packed examples and causality                           |
|--------|---------------------|-------------------------------------------------------------------------|
| splash | TPU                 | windows, cross-attention                                                |
| flash  | TPU                 | biases with their gradient, cross-attention                             |
| cudnn  | GPU, half precision | windows, prefixes, biases with their gradient, cross-attention          |
| triton | GPU                 | nothing                                                                 |

None drops attention weights, hands them out, or adds scores that depend on content and distance at once.
"""

import contextlib
import contextvars
import dataclasses
from collections.abc import Iterator
from typing import Any, Literal

import jax.numpy as jnp
from jax import Array

from t2t.functional import parallel
from t2t.functional.masks import Mask

Kernel = Literal["reference", "splash", "flash", "cudnn", "triton"]
KERNELS: tuple[Kernel, ...] = ("reference", "splash", "flash", "cudnn", "triton")
REFERENCE: tuple[Kernel, ...] = ("reference",)
PLATFORMS: dict[Kernel, str] = {"splash": "tpu", "flash": "tpu", "cudnn": "gpu", "triton": "gpu"}
"""What each kernel runs on; the reference runs everywhere."""
HALVES = ("bfloat16", "float16")
SHORT = 256
"""Below so many positions on both sides no kernel is preferred to the reference: it computes blocks of 128 to 512."""
FASTEST: dict[str, tuple[Kernel, ...]] = {
    "tpu": ("splash", "flash", "reference"),
    "gpu": ("cudnn", "triton", "reference"),
}
"""What "auto" tries on each platform, in this order."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request:
    """What an attention has to honour, as far as kernels differ in it; all is known while the program is traced."""

    length: int
    key_length: int
    head_dim: int
    kv_groups: int = 1
    """Query heads that share a key head."""
    dtype: str = "float32"
    rules: Mask | None = Mask()
    """None: the mask is given as booleans, pair by pair."""
    bias: bool = False
    dropout: float = 0.0
    weights: bool = False
    """Whether the attention weights are wanted."""
    own_scores: bool = False
    """Whether more is added to the scores than a bias that does not depend on content."""
    split_length: bool = False
    """Whether the mesh splits rows by position."""

    @classmethod
    def of(cls, query: Array, key: Array, mask: Mask | Array | None, bias: Array | None, **options: Any) -> "Request":
        """The request of arrays [B, N, T, H] and [B, G, S, H]."""
        rules = Mask() if mask is None else mask if isinstance(mask, Mask) else None
        return cls(
            length=query.shape[2],
            key_length=key.shape[2],
            head_dim=query.shape[3],
            kv_groups=query.shape[1] // key.shape[1],
            dtype=jnp.dtype(query.dtype).name,
            rules=rules,
            bias=bias is not None,
            split_length=bool(parallel.mesh_axes().positions),
            **options,
        )


def refusal(kernel: Kernel, request: Request) -> str | None:
    """Why the kernel cannot honour the request, as the end of "it ..."; None if it can."""
    if kernel == "reference":
        return None
    rules = request.rules
    reasons = [
        (request.own_scores, "cannot add scores that depend on content and distance"),
        (request.weights, "does not hand out attention weights"),
        (request.dropout > 0, f"cannot drop attention weights (AttentionConfig.dropout = {request.dropout})"),
        (rules is None, "cannot read a mask given pair by pair (a cache, a memory, a permuted order)"),
        (request.split_length, "needs whole rows (mesh.sequence = 1)"),
    ]
    if rules is not None:
        reasons += _OWN_REASONS[kernel](request, rules)
    return next((reason for holds, reason in reasons if holds), None)


Reasons = list[tuple[bool, str]]


def _splash(request: Request, rules: Mask) -> Reasons:
    return [(request.bias, "cannot add a bias"), (rules.prefix is not None, "cannot read a prefix of each row")]


def _flash(request: Request, rules: Mask) -> Reasons:
    head_dim = request.head_dim
    return [
        (rules.prefix is not None, "cannot read a prefix of each row"),
        (rules.window is not None, "cannot read a window"),
        (head_dim > 128 and head_dim % 128 != 0, f"needs a head_dim of at most 128, or a multiple, not {head_dim}"),
    ]


def _cudnn(request: Request, rules: Mask) -> Reasons:
    is_even = request.length % 2 == 0 and request.key_length % 2 == 0
    has_pairs = request.bias or rules.reader is not None or rules.prefix is not None or _is_two_sided(rules)
    return [
        (request.dtype not in HALVES, f"computes in bfloat16 and float16, not in {request.dtype}"),
        (request.head_dim % 8 != 0 or request.head_dim > 128, "needs a head_dim of at most 128, a multiple of 8"),
        (has_pairs and not is_even, "needs even lengths for packed examples, prefixes and biases"),
    ]


def _triton(request: Request, rules: Mask) -> Reasons:
    return [
        (request.bias, "cannot add a bias"),
        (rules.prefix is not None, "cannot read a prefix of each row"),
        (rules.window is not None, "cannot read a window"),
        (request.length != request.key_length, "needs as many readers as positions read (no cross-attention)"),
    ]


_OWN_REASONS = {"splash": _splash, "flash": _flash, "cudnn": _cudnn, "triton": _triton}


def _is_two_sided(rules: Mask) -> bool:
    return rules.window is not None and not rules.causal


@dataclasses.dataclass(frozen=True)
class Choice:
    """What one attention layer is computed by, and why not by those before it."""

    layer: str
    kernel: Kernel
    refused: tuple[tuple[Kernel, str], ...] = ()


_recorded: contextvars.ContextVar[list[Choice] | None] = contextvars.ContextVar("recorded", default=None)


@contextlib.contextmanager
def recording() -> Iterator[list[Choice]]:
    """Every choice made while a program is traced, in a list."""
    choices: list[Choice] = []
    token = _recorded.set(choices)
    try:
        yield choices
    finally:
        _recorded.reset(token)


def choose(kernels: tuple[Kernel, ...], request: Request, *, layer: str = "attention") -> Kernel:
    """The first kernel that honours the request.

    Raises:
        ValueError: there is none; says why, and which kernels would.

    Example:
        >>> choose(("splash", "flash", "reference"), Request(length=512, key_length=512, head_dim=64, bias=True))
        'flash'
    """
    refused: list[tuple[Kernel, str]] = []
    for kernel in kernels:
        reason = refusal(kernel, request)
        if kernel != "reference" and "reference" in kernels and max(request.length, request.key_length) < SHORT:
            reason = reason or f"is not preferred below {SHORT} positions"
        if reason is None:
            if (choices := _recorded.get()) is not None:
                choices.append(Choice(layer, kernel, tuple(refused)))
            return kernel
        refused.append((kernel, reason))
    raise ValueError(_no_kernel(layer, refused, request))


def check(kernel: Kernel, request: Request) -> None:
    """Refuses a kernel that cannot honour the request.

    Raises:
        ValueError: says why, and which kernels would.
    """
    if (reason := refusal(kernel, request)) is not None:
        raise ValueError(_no_kernel("attention", [(kernel, reason)], request))


def _no_kernel(layer: str, refused: list[tuple[Kernel, str]], request: Request) -> str:
    able = [kernel for kernel in KERNELS if refusal(kernel, request) is None]
    return (
        f"{layer} cannot be computed as it is asked for: {'; '.join(f'{kernel} {why}' for kernel, why in refused)}. "
        f"What can: {', '.join(able)}. Set train.attention to one of them, or to 'auto'."
    )


def of_setting(setting: str, *, platform: str) -> tuple[Kernel, ...]:
    """The kernels that the setting `train.attention` means on a platform ("cpu", "gpu", "tpu").

    Raises:
        ValueError: the kernel does not run there.

    Example:
        >>> of_setting("auto", platform="tpu"), of_setting("auto", platform="cpu")
        (('splash', 'flash', 'reference'), ('reference',))
    """
    if setting == "auto":
        return FASTEST.get(platform, REFERENCE)
    kernel: Kernel = setting  # type: ignore[assignment]
    if PLATFORMS.get(kernel, platform) != platform:
        here = [name for name in KERNELS if PLATFORMS.get(name, platform) == platform]
        raise ValueError(
            f"train.attention is {setting!r}, which runs on a {PLATFORMS[kernel].upper()}, and this is a "
            f"{platform.upper()}: possible are {', '.join(here)}, and auto"
        )
    return (kernel,)


def described(choices: list[Choice]) -> str:
    """One line about choices: each kernel with its layers, and what kept others from the last kind of it.

    Example:
        >>> described([Choice("decoder/attention", "flash", (("splash", "cannot add a bias"),))])
        'flash in decoder/attention (splash cannot add a bias)'
    """
    kinds: dict[tuple[Kernel, tuple[tuple[Kernel, str], ...]], list[str]] = {}
    for choice in choices:
        layers = kinds.setdefault((choice.kernel, choice.refused), [])
        if choice.layer not in layers:
            layers.append(choice.layer)
    parts = []
    for (kernel, refused), layers in kinds.items():
        why = "; ".join(f"{name} {reason}" for name, reason in refused)
        parts.append(f"{kernel} in {', '.join(layers)}" + (f" ({why})" if why else ""))
    return "; ".join(parts)
