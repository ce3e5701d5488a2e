"""All blocks of an encoder or decoder: unrolled prefix, scanned pattern, unrolled suffix, final norm."""

import dataclasses
import operator
from collections.abc import Callable
from typing import Any, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from t2t.functional import gradients, masks
from t2t.functional.masks import Mask
from t2t.nn import checks, kernels
from t2t.nn.block import Block, BlockConfig, BlockOutput
from t2t.nn.dropout import Dropout
from t2t.nn.norm import Norm
from t2t.nn.positions.context import PositionContext
from t2t.nn.positions.schemes import Position

Remat = Literal["none", "full", "dots", "dots_no_batch"]


def _saving_linear(policy: Callable[..., bool]) -> Callable[..., bool]:
    """The policy, which also saves the products that have gradient rules of their own and so hide their dots."""
    policies = jax.checkpoint_policies
    return policies.save_from_both_policies(policy, policies.save_only_these_names(gradients.LINEAR))


REMAT_POLICIES = {
    "full": jax.checkpoint_policies.nothing_saveable,
    "dots": _saving_linear(jax.checkpoint_policies.dots_saveable),
    "dots_no_batch": _saving_linear(jax.checkpoint_policies.dots_with_no_batch_dims_saveable),
}
REMATS: tuple[Remat, ...] = ("none", "full", "dots", "dots_no_batch")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SharedLayers:
    """Repetitions of the pattern use the parameters of few: the n repetitions in `groups` runs of equal length.

    Reference: Lan et al., ALBERT, arXiv:1909.11942, section 3.1 (all layers share: one group).
    """

    groups: int = 1
    """How many sets of parameters there are."""

    def __post_init__(self):
        """Refuses values without meaning."""
        checks.check_positive(self, "groups")


@dataclasses.dataclass(frozen=True, kw_only=True)
class StackConfig:
    """Depth and width of a stack: `num_layers = len(prefix) + n * len(pattern) + len(suffix)`, the pattern n times."""

    num_layers: int
    d_model: int
    pattern: tuple[BlockConfig, ...]
    """Blocks repeated through the depth; their parameters are stacked along a leading axis of n."""
    prefix: tuple[BlockConfig, ...] = ()
    suffix: tuple[BlockConfig, ...] = ()
    sharing: SharedLayers | None = None
    """Whose parameters the repetitions use; None = each its own. The leading axis of their parameters is `groups`."""
    position: Position | None = None
    """A position scheme whose parameters all layers share; one owned by each layer belongs to the block."""
    dropout: float = 0.0
    """Fraction in [0, 1) of the output dropped, after the final norm (T5)."""
    remat: Remat = "none"
    """What the backward pass recomputes: none, all but each block's input (full), all but the results of matrix
    products (dots), or of those without a batch axis, so attention is recomputed (dots_no_batch)."""
    final_norm: Norm | None = None

    def __post_init__(self):
        """Refuses values without meaning."""
        checks.check_positive(self, "num_layers", "d_model")
        checks.check(
            len(self.pattern) > 0,
            self,
            "pattern",
            allowed="at least one block",
            repair="Set pattern=(BlockConfig(...),).",
        )
        repeated = self.num_layers - len(self.prefix) - len(self.suffix)
        checks.check(
            repeated > 0 and repeated % len(self.pattern) == 0,
            self,
            "num_layers",
            allowed=f"len(prefix) + n * len(pattern) + len(suffix) = {len(self.prefix) + len(self.suffix)}"
            f" + n * {len(self.pattern)} with n of at least 1",
            repair="Change num_layers, or move blocks to prefix or suffix.",
        )
        if self.sharing is not None:
            allowed = f"a divisor of the {repeated // len(self.pattern)} repetitions of the pattern"
            is_divisor = repeated // len(self.pattern) % self.sharing.groups == 0
            checks.check(is_divisor, self, "sharing", allowed=allowed, repair="Set sharing=SharedLayers(groups=1).")
        checks.check_fraction(self, "dropout")
        checks.check_choice(self, "remat", REMATS)
        heads = {block.attention.num_heads for block in self.blocks}
        if self.position is not None and len(heads) > 1:
            raise ValueError(
                f"StackConfig.position = {self.position!r}: a scheme that all layers share needs blocks with"
                f" equally many heads, not {sorted(heads)}. Give the blocks their own position instead."
            )

    @property
    def repeats(self) -> int:
        """How often the pattern is repeated."""
        return (self.num_layers - len(self.prefix) - len(self.suffix)) // len(self.pattern)

    @property
    def blocks(self) -> tuple[BlockConfig, ...]:
        """Every block in depth order."""
        return self.prefix + self.pattern * self.repeats + self.suffix

    def make(
        self,
        *,
        dtype: Any = jnp.float32,
        param_dtype: Any = jnp.float32,
        unrolled: bool = False,
        name: str | None = None,
    ) -> "Stack":
        """The linen module; `unrolled` reads parameters taken apart by `unstack`."""
        return Stack(self, dtype=dtype, param_dtype=param_dtype, unrolled=unrolled, name=name)


def shortest_pattern(blocks: tuple[BlockConfig, ...]) -> dict[str, tuple[BlockConfig, ...]]:
    """Blocks in depth order as the `pattern` and `suffix` of a stack: the fewest that repeat, and what is left over."""
    numbers = range(len(blocks))
    period = next(n for n in range(1, len(blocks) + 1) if all(blocks[i] == blocks[i % n] for i in numbers))
    return {"pattern": blocks[:period], "suffix": blocks[len(blocks) - len(blocks) % period :]}


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class StackOutput:
    """Results of a stack; tuples are in depth order, None where not asked for.

    Attributes:
        last_hidden: [B, T, D], after the final norm.
        hidden_states: The input and the output of every block, the last after the final norm: num_layers + 1 arrays.
        attentions: Weights [B, N, T, S] of every block.
        cross_attentions: The same of the attention to the encoder.
        caches: The LayerCache of every block.
    """

    last_hidden: Any
    hidden_states: Any = None
    attentions: Any = None
    cross_attentions: Any = None
    caches: Any = None


class Group(nn.Module):
    """The blocks of one repetition of the pattern: the body of the scan."""

    blocks: tuple[Block, ...]
    deterministic: bool
    hidden_states: bool
    attentions: bool

    def __call__(
        self,
        x: Array,
        mask: Array | Mask | None,
        context: PositionContext,
        memory: Array | None,
        cross_mask: Array | Mask | None,
        caches: tuple = (),
        past: Array | None = None,
    ) -> tuple[Array, tuple[BlockOutput, ...]]:
        """Returns the hidden state after the last block, and each block's outputs."""
        outputs = []
        for index, block in enumerate(self.blocks):
            x, output = block(
                x,
                mask,
                context,
                memory,
                cross_mask,
                caches[index] if caches else None,
                *(() if past is None else (past[index],)),
                deterministic=self.deterministic,
                attentions=self.attentions,
            )
            outputs.append(dataclasses.replace(output, hidden=x) if self.hidden_states else output)
        return x, tuple(outputs)


class Run(nn.Module):
    """Several repetitions of the pattern with the same parameters: the body of the scan where layers share them."""

    body: Any
    length: int
    blocks: tuple[Block, ...]
    deterministic: bool
    hidden_states: bool
    attentions: bool

    @nn.compact
    def __call__(self, x: Array, *shared: Any) -> tuple[Array, tuple[BlockOutput, ...]]:
        """Returns the hidden state after the last repetition, and each block's outputs with a leading axis."""
        scanned = nn.scan(
            self.body,
            variable_broadcast="params",
            split_rngs={"params": False, "dropout": True},
            in_axes=nn.broadcast,
            length=self.length,
        )
        flags = {name: getattr(self, name) for name in ("deterministic", "hidden_states", "attentions")}
        return scanned(blocks=self.blocks, **flags)(x, *shared)


class Stack(nn.Module):
    """Runs the blocks in depth order.

    The pattern is scanned: its parameters have a leading axis named `layers`, and the program contains it once. With
    `unrolled` every layer stands alone under `layers_j_i`, which a loop over single tokens runs faster (and which keeps
    a cache per layer).
    """

    config: StackConfig
    dtype: Any = jnp.float32
    param_dtype: Any = jnp.float32
    unrolled: bool = False

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "B T D"],
        mask: Bool[Array, "#B T S"] | Mask | None,
        context: PositionContext,
        *,
        memory: Float[Array, "B M D"] | None = None,
        cross_mask: Bool[Array, "#B T M"] | Mask | None = None,
        caches: tuple = (),
        past: Float[Array, "L B P D"] | None = None,
        deterministic: bool = True,
        hidden_states: bool = False,
        attentions: bool = False,
    ) -> StackOutput:
        """Returns the last hidden state, and what else was asked for. Caches (one per block) need `unrolled`.

        `past` are the inputs of every block at earlier positions, which its attention reads before those of `x`.
        """
        if caches and not self.unrolled:
            raise ValueError("Stack: caches need unrolled=True, with the parameters that unstack() gives.")
        config = self.config
        if self.unrolled and config.sharing is not None:
            raise ValueError(f"Stack: unrolled=True cannot run layers that share parameters ({config.sharing}).")
        self._check_past(past)
        if config.position is not None:
            heads = config.blocks[0].attention
            scheme = config.position.make(heads.num_heads, head_dim=heads.head_dim, name="position", **self._dtypes())
            context = scheme(context)
        if not kernels.may_differ(config.blocks):  # the booleans are made once, not in every layer
            mask = masks.dense(mask, length=context.length, key_length=context.key_length)
            if isinstance(cross_mask, Mask):
                cross_mask = cross_mask.dense(length=x.shape[1], key_length=memory.shape[1])
        shared = (mask, context, memory, cross_mask)
        flags = {"deterministic": deterministic, "hidden_states": hidden_states, "attentions": attentions}

        first = x
        outputs: list[BlockOutput] = []
        for names, blocks, repeats in self._segments():
            read = None if past is None else past[len(outputs) : len(outputs) + len(blocks) * (repeats or 1)]
            modules = tuple(
                block.make(config.d_model, name=name, **self._dtypes())
                for name, block in zip(names, blocks, strict=True)
            )
            if repeats is None:
                used = caches[len(outputs) : len(outputs) + len(blocks)]
                x, collected = self._group(modules, flags, prevent_cse=True)(x, *shared, used, read)
                outputs.extend(collected)
            else:
                if read is not None:
                    read = read.reshape(repeats, len(blocks), *read.shape[1:])
                scanned = self._scanned(modules, flags, repeats, reads_past=read is not None)
                x, stacked = scanned(x, *shared, *(() if read is None else ((), read)))
                if config.sharing is not None:  # [groups, repetitions of each, ...]
                    stacked = jax.tree.map(lambda y: y.reshape(-1, *y.shape[2:]), stacked)
                outputs.extend(_unstack_outputs(stacked, repeats))
        if config.final_norm is not None:
            x = config.final_norm.make(name="final_norm", **self._dtypes())(x)
        x = Dropout(config.dropout)(x, deterministic=deterministic)
        return _collect(first, x, outputs, caches=bool(caches), **flags)

    def _dtypes(self) -> dict[str, Any]:
        return {"dtype": self.dtype, "param_dtype": self.param_dtype}

    def _check_past(self, past: Array | None) -> None:
        if past is None:
            return
        if self.config.sharing is not None:
            raise ValueError(f"Stack: past cannot be read by layers that share parameters ({self.config.sharing}).")
        if any(block.norm_position != "post" for block in self.config.blocks):
            raise ValueError("Stack: past is read by blocks with norm_position='post' alone.")
        if len(past) != self.config.num_layers:
            raise ValueError(f"Stack: past holds {len(past)} layers, the stack has {self.config.num_layers}.")

    def _segments(self) -> list[tuple[tuple[str, ...], tuple[BlockConfig, ...], int | None]]:
        """Names and configs of the blocks in depth order, with the repetitions of what is scanned."""
        config = self.config
        names = tuple(f"layers_{j}" for j in range(len(config.pattern)))
        if self.unrolled:
            middle = [
                ((f"{names[j]}_{i}",), (config.pattern[j],), None)
                for i in range(config.repeats)
                for j in range(len(names))
            ]
        else:
            middle = [(names, config.pattern, config.repeats)]
        return [
            *(((f"prefix_{i}",), (block,), None) for i, block in enumerate(config.prefix)),
            *middle,
            *(((f"suffix_{i}",), (block,), None) for i, block in enumerate(config.suffix)),
        ]

    def _group(self, modules: tuple[Block, ...], flags: dict[str, bool], *, prevent_cse: bool) -> Any:
        group = Group
        if self.config.remat != "none":
            group = nn.remat(Group, prevent_cse=prevent_cse, policy=REMAT_POLICIES[self.config.remat])
        return group(blocks=modules, **flags)

    def _scanned(
        self, modules: tuple[Block, ...], flags: dict[str, bool], repeats: int, *, reads_past: bool = False
    ) -> Any:
        # scan(remat(group)): the scan already keeps XLA from merging the recomputation with the forward pass.
        group = Group
        if self.config.remat != "none":
            group = nn.remat(Group, prevent_cse=False, policy=REMAT_POLICIES[self.config.remat])
        if self.config.sharing is not None:
            length = self.config.sharing.groups
            body, more = Run, {"body": group, "length": repeats // length}
        else:
            body, length, more = group, repeats, {}
        scanned = nn.scan(
            body,
            variable_axes={"params": 0},
            split_rngs={"params": True, "dropout": True},
            in_axes=(nn.broadcast,) * 5 + (0,) if reads_past else nn.broadcast,
            length=length,
            metadata_params={nn.PARTITION_NAME: "layers"},
        )
        return scanned(blocks=modules, **flags, **more)


def _unstack_outputs(stacked: tuple[BlockOutput, ...], repeats: int) -> list[BlockOutput]:
    """Each block's outputs in depth order, from arrays with a leading axis over the repetitions."""
    return [jax.tree.map(operator.itemgetter(i), output) for i in range(repeats) for output in stacked]


def _collect(
    first: Array,
    last: Array,
    outputs: list[BlockOutput],
    *,
    caches: bool,
    deterministic: bool,
    hidden_states: bool,
    attentions: bool,
) -> StackOutput:
    del deterministic
    has_cross = attentions and outputs[-1].cross_attention is not None
    states = (first, *(output.hidden for output in outputs[:-1]), last)
    return StackOutput(
        last_hidden=last,
        hidden_states=states if hidden_states else None,
        attentions=tuple(output.attention for output in outputs) if attentions else None,
        cross_attentions=tuple(output.cross_attention for output in outputs) if has_cross else None,
        caches=tuple(output.cache for output in outputs) if caches else None,
    )


def unstack(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a stack with every `layers_j` taken apart into a tuple of trees, one per layer."""
    return {name: _take_apart(tree) if name.startswith("layers_") else tree for name, tree in params.items()}


def _take_apart(tree: Any) -> tuple[Any, ...]:
    repeats = jax.tree.leaves(tree)[0].shape[0]
    return tuple(jax.tree.map(operator.itemgetter(i), tree) for i in range(repeats))


def unrolled_scopes(params: dict[str, Any]) -> dict[str, Any]:
    """What the unrolled module reads: the trees of `unstack` under the names `layers_j_i`."""
    scopes: dict[str, Any] = {}
    for name, tree in params.items():
        if name.startswith("layers_"):
            scopes |= {f"{name}_{i}": layer for i, layer in enumerate(tree)}
        else:
            scopes[name] = tree
    return scopes
