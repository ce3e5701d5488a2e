"""Decoding masked words: the last block of an encoder run again, with queries that know their position (DeBERTa).

A file of its own, because one block serves twice: in the stack, and after it with queries that are not what is read.
"""

import dataclasses
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from t2t.functional.masks import Mask
from t2t.nn import checks, projection
from t2t.nn.block import Block, BlockConfig
from t2t.nn.positions.absolute import LearnedPositions
from t2t.nn.positions.context import PositionContext
from t2t.nn.positions.relative import RelativeEmbeddings, RelativeEmbeddingsModule
from t2t.nn.stack import REMAT_POLICIES, StackConfig

RUNS = 2
"""How often the block is run: the n of the paper."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskDecoderConfig:
    """Absolute positions that no layer reads but this decoder.

    With h the states before the last block, p the embedded positions, and block(q, h) the last block with queries and
    residual q, keys and values of h:

        q_0 = h + p        q_1 = block(q_0, h)        q_2 = block(q_1, h)

    Words are predicted from q_2; no parameter is new but the table of p.

    Reference: He et al., DeBERTa, arXiv:2006.03654, section 3.2 and figure 2; `EnhancedMaskDecoder` of
    github.com/microsoft/DeBERTa, both of whose runs read h.
    """

    position: LearnedPositions
    """Size of the table."""
    initializer_std: float = 0.02
    initializer: projection.Initializer = "normal"

    def __post_init__(self):
        """Refuses values without meaning."""
        checks.check_deviation(self, "initializer_std")
        checks.check_choice(self, "initializer", projection.INITIALIZERS)

    def make(
        self, d_model: int, *, dtype: Any = jnp.float32, param_dtype: Any = jnp.float32, name: str | None = None
    ) -> "MaskDecoder":
        """The linen module in a model of width `d_model`."""
        return MaskDecoder(self, d_model, dtype=dtype, param_dtype=param_dtype, name=name)


class MaskDecoder(nn.Module):
    """Owns the table of positions."""

    config: MaskDecoderConfig
    d_model: int
    dtype: Any = jnp.float32
    param_dtype: Any = jnp.float32

    @nn.compact
    def __call__(
        self,
        read: Float[Array, "B T D"],
        *,
        positions: Int[Array, "#B T"],
        mask: Bool[Array, "#B T T"] | Mask | None,
        stack: StackConfig,
        params: Any,
        deterministic: bool = True,
    ) -> Float[Array, "B T D"]:
        """Returns the states that masked words are predicted from.

        Args:
            read: the states before the last block.
            positions: of the tokens within their text.
            mask: what each of them may read.
            stack: the config of the encoder.
            params: its parameters.
            deterministic: without dropout.
        """
        config = self.config
        initializer = projection.make_initializer(config.initializer, config.initializer_std)
        table = self.param(
            "positions",
            nn.with_logical_partitioning(initializer, ("positions", "embed")),
            (config.position.num_rows, self.d_model),
            self.param_dtype,
        )
        rows = positions + config.position.offset
        # Clipped, not filled: positions at padding may lie beyond the table and must stay finite.
        queries = read + jnp.take(table, rows, axis=0, mode="clip").astype(read.dtype)
        dtypes = {"dtype": self.dtype, "param_dtype": self.param_dtype}
        keys = [None if deterministic else self.make_rng("dropout") for _ in range(RUNS)]
        return _run_again(queries, read, mask=mask, stack=stack, params=nn.unbox(params), keys=keys, dtypes=dtypes)


def check_stack(stack: StackConfig) -> None:
    """Refuses stacks whose last block cannot be run with other queries than what it reads.

    Raises:
        ValueError: says what stands against it.
    """
    last = stack.blocks[-1]
    reasons = {
        "its last block is of a kind of its own": type(last) is not BlockConfig,
        f"its last block has norm_position={last.norm_position!r}, not 'post'": last.norm_position != "post",
        "a final norm follows its last block": stack.final_norm is not None,
        f"its layers share {stack.position!r}": not isinstance(stack.position, RelativeEmbeddings | None),
    }
    if found := [reason for reason, holds in reasons.items() if holds]:
        raise ValueError(
            f"MaskedLanguageModelHead.mask_decoder runs the last block of the stack again, and {'; '.join(found)}. Set "
            "mask_decoder=None, or give the model the form of a DeBERTa."
        )


def _run_again(
    queries: Array,
    read: Array,
    *,
    mask: Array | Mask | None,
    stack: StackConfig,
    params: dict[str, Any],
    keys: list[Array | None],
    dtypes: dict[str, Any],
) -> Array:
    """The result of the last block, whose queries are first these and then its own result, once for each key."""
    context = PositionContext(length=read.shape[1], key_length=read.shape[1])
    if stack.position is not None:
        scheme = RelativeEmbeddingsModule(stack.position, parent=None, **dtypes)
        context = scheme.apply({"params": params["position"]}, context)
    context = dataclasses.replace(context, read_length=0)
    block = Block(stack.blocks[-1], stack.d_model, parent=None, **dtypes)
    own = last_block(params, stack)

    def run(own: Any, queries: Array, read: Array, context: PositionContext, key: Array | None) -> Array:
        options = {"deterministic": True} if key is None else {"deterministic": False, "rngs": {"dropout": key}}
        return block.apply({"params": own}, queries, mask, context, past=read, **options)[0]

    if stack.remat != "none":
        run = jax.checkpoint(run, policy=REMAT_POLICIES[stack.remat])
    for key in keys:
        queries = run(own, queries, read, context, key)
    return queries


def last_block(params: dict[str, Any], stack: StackConfig) -> Any:
    """The parameters of the last block of a stack, whether its layers are stacked or stand alone."""
    if stack.suffix:
        return params[f"suffix_{len(stack.suffix) - 1}"]
    name = f"layers_{len(stack.pattern) - 1}"
    if name in params:
        return jax.tree.map(lambda leaf: leaf[-1], params[name])
    return params[f"{name}_{stack.repeats - 1}"]
