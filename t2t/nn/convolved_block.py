"""A block with a convolution beside it, which reads the block's input: the first block of DeBERTa's second version.

A file of its own, because a convolution reads neighbours and so must know which of them are of the same example.
"""

import dataclasses
from typing import Any

import flax.linen as nn
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from t2t.functional import convolution, masks
from t2t.functional.masks import Mask
from t2t.nn import checks, projection
from t2t.nn.block import Block, BlockConfig, BlockOutput
from t2t.nn.cache import LayerCache
from t2t.nn.classification import HEAD_ACTIVATIONS, HeadActivation
from t2t.nn.dropout import Dropout
from t2t.nn.positions.context import PositionContext


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConvolvedBlockConfig(BlockConfig):
    """`norm(block(x) + activation(dropout(convolution(x))))`, over neighbours of the same example alone.

    Reference: `ConvLayer` of the released code, github.com/microsoft/DeBERTa.
    """

    kernel_size: int = 3
    """Positions that are read: as many before as after, and the own."""
    activation: HeadActivation = "tanh"
    """Of the convolution."""
    initializer_std: float = 0.02
    """Of the convolution's kernel."""

    def __post_init__(self):
        """Refuses values without meaning."""
        super().__post_init__()
        is_odd = self.kernel_size > 0 and self.kernel_size % 2 == 1
        checks.check(is_odd, self, "kernel_size", allowed="an odd number", repair="The published value is 3.")
        checks.check_choice(self, "activation", tuple(HEAD_ACTIVATIONS))
        checks.check_deviation(self, "initializer_std")

    def make(
        self, d_model: int, *, dtype: Any = jnp.float32, param_dtype: Any = jnp.float32, name: str | None = None
    ) -> "ConvolvedBlock":
        """The linen module in a model of width `d_model`."""
        return ConvolvedBlock(self, d_model, dtype=dtype, param_dtype=param_dtype, name=name)


class ConvolvedBlock(Block):
    """Owns the convolution and its norm besides the block's sublayers."""

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "B T D"],
        mask: Bool[Array, "#B T S"] | Mask | None,
        context: PositionContext,
        memory: Float[Array, "B M D"] | None = None,
        cross_mask: Bool[Array, "#B T M"] | Mask | None = None,
        cache: LayerCache | None = None,
        *,
        deterministic: bool = True,
        attentions: bool = False,
    ) -> tuple[Float[Array, "B T D"], BlockOutput]:
        """Returns the new hidden state, and what else was asked for. There is no cache of neighbours."""
        if cache is not None:
            raise ValueError("ConvolvedBlock: it cannot decode token by token, its convolution reads what comes later.")
        flags = {"deterministic": deterministic, "attentions": attentions}
        y, output = super().__call__(x, mask, context, memory, cross_mask, **flags)
        config = self.config
        kernel_KDE, bias_E = projection.Projection(
            shape=(config.kernel_size, self.d_model, self.d_model),
            axes=("positions", "embed", "mlp"),
            num_inputs=2,
            use_bias=True,
            std=config.initializer_std,
            name="convolution",
            **self._dtypes(),
        )()
        mask = masks.dense(mask, length=context.length, key_length=context.key_length)
        read = convolution.convolve(x, kernel_KDE, mask=mask) + bias_E[None, None, :]
        read = HEAD_ACTIVATIONS[config.activation](Dropout(config.dropout)(read, deterministic=deterministic))
        norm = config.norm.make(name="convolution_norm", **self._dtypes())
        return nn.with_logical_constraint(norm(y + read), ("batch", "length", None)), output
