"""Heads that score the vocabulary: for causal and encoder-decoder language models, and for masked words.

Those that score labels are in `nn/classification.py`.
"""

import dataclasses
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from t2t.functional import parallel, precision
from t2t.nn import checks, projection
from t2t.nn.adaptive import AdaptiveSoftmaxHead
from t2t.nn.classification import ClassificationHead
from t2t.nn.dropout import Dropout
from t2t.nn.feed_forward import ACTIVATIONS, Activation
from t2t.nn.mask_decoder import MaskDecoderConfig
from t2t.nn.norm import Norm


@dataclasses.dataclass(frozen=True, kw_only=True)
class LanguageModelHead:
    """Logits straight from the last hidden state: `hidden @ table.T`, with the token table or an own kernel."""

    tied: bool = True
    """Use the token embedding; False: an own kernel [D, V]."""
    scale_by_width: bool = False
    """Multiply the logits by d_model**-0.5 (T5 1.0, whose embeddings start with deviation 1)."""
    use_bias: bool = False
    initializer_std: float | None = None
    """Of an own kernel. None = d_model**-0.5, with which the first loss is near ln V."""

    def __post_init__(self):
        """Refuses values without meaning."""
        checks.check_deviation(self, "initializer_std")

    def make(
        self,
        *,
        vocab_size: int,
        d_model: int,
        dtype: Any = jnp.float32,
        param_dtype: Any = jnp.float32,
        name: str | None = None,
    ) -> "LanguageModelHeadModule":
        """The linen module for a vocabulary and a width."""
        return LanguageModelHeadModule(self, vocab_size, d_model, dtype=dtype, param_dtype=param_dtype, name=name)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskedLanguageModelHead:
    """BERT's head: a dense layer with activation and norm, then the token table and a bias.

    With `next_sentence`, a linear classifier of the pooled first token besides (0 = the second sentence follows, or in
    ALBERT the two stand in their order).
    """

    activation: Activation
    norm: Norm
    dim: int | None = None
    """Width of the dense layer's output and of the token table; None = d_model (ALBERT, ELECTRA: the tables' width)."""
    tied: bool = True
    """Use the token embedding; False: an own kernel [D, V]."""
    transform_bias: bool = True
    """Of the dense layer (ModernBERT: False)."""
    next_sentence: bool = False
    mask_decoder: MaskDecoderConfig | None = None
    """Makes the states that words are predicted from, in place of the last block (DeBERTa)."""
    dropout: float = 0.0
    """Fraction in [0, 1) of the next-sentence classifier's input dropped (ALBERT)."""
    initializer_std: float = 0.02
    """BERT's, arXiv:1810.04805, released code."""
    initializer: projection.Initializer = "normal"

    def __post_init__(self):
        """Refuses values without meaning."""
        checks.check_choice(self, "activation", tuple(ACTIVATIONS))
        checks.check_fraction(self, "dropout")
        checks.check_deviation(self, "initializer_std")
        checks.check_choice(self, "initializer", projection.INITIALIZERS)

    def make(
        self,
        *,
        vocab_size: int,
        d_model: int,
        dtype: Any = jnp.float32,
        param_dtype: Any = jnp.float32,
        name: str | None = None,
    ) -> "MaskedLanguageModelHeadModule":
        """The linen module for a vocabulary and a width."""
        return MaskedLanguageModelHeadModule(self, vocab_size, d_model, dtype=dtype, param_dtype=param_dtype, name=name)


class LanguageModelHeadModule(nn.Module):
    """Owns the kernel (untied) and the bias (where asked for)."""

    config: LanguageModelHead
    vocab_size: int
    d_model: int
    dtype: Any = jnp.float32
    param_dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, hidden: Float[Array, "*axes D"], table: Float[Array, "V D"]) -> Float[Array, "*axes V"]:
        """Returns logits in float32."""
        if self.config.scale_by_width:
            # On the hidden state, not the logits: the same product, without another pass over [B, T, V].
            hidden = hidden * self.d_model**-0.5
        kernel = None if self.config.tied else _kernel(self, self.config.initializer_std, "normal")
        bias = _vocabulary_bias(self) if self.config.use_bias else None
        return _vocabulary_scores(hidden, table=table, kernel=kernel, bias=bias)


class MaskedLanguageModelHeadModule(nn.Module):
    """Owns the transform, its norm, the output bias, the next-sentence classifier, and the mask decoder."""

    config: MaskedLanguageModelHead
    vocab_size: int
    d_model: int
    dtype: Any = jnp.float32
    param_dtype: Any = jnp.float32

    def setup(self):
        """Creates the layers that the config asks for."""
        config = self.config
        width = self.d_model if config.dim is None else config.dim
        self.transform = self._dense((self.d_model, width), ("embed", "mlp"), use_bias=config.transform_bias)
        self.norm = config.norm.make(dtype=self.dtype, param_dtype=self.param_dtype)
        self.bias = _vocabulary_bias(self)
        if not config.tied:
            self.kernel = _kernel(self, config.initializer_std, config.initializer, width=width)
        if config.next_sentence:
            self.next_sentence = self._dense((self.d_model, 2), ("embed", "types"), use_bias=True)
            self.dropout = Dropout(config.dropout)
        if config.mask_decoder is not None:
            self.mask_decoder = config.mask_decoder.make(self.d_model, dtype=self.dtype, param_dtype=self.param_dtype)

    def _dense(self, shape: tuple[int, int], axes: tuple[str, str], *, use_bias: bool) -> projection.Projection:
        return projection.Projection(
            shape=shape,
            axes=axes,
            use_bias=use_bias,
            std=self.config.initializer_std,
            initializer=self.config.initializer,
            dtype=self.dtype,
            param_dtype=self.param_dtype,
        )

    def __call__(self, hidden: Float[Array, "*axes D"], table: Float[Array, "V E"]) -> Float[Array, "*axes V"]:
        """Returns logits in float32."""
        kernel, bias = self.transform()
        transformed = jnp.einsum("...D,DE->...E", hidden, kernel)
        transformed = ACTIVATIONS[self.config.activation](projection.add_bias(transformed, bias))
        own = None if self.config.tied else self.kernel.astype(self.dtype)
        return _vocabulary_scores(self.norm(transformed), table=table, kernel=own, bias=self.bias)

    def next_sentence_logits(self, pooled: Float[Array, "B D"], *, deterministic: bool = True) -> Float[Array, "B 2"]:
        """Scores in float32 of "follows" and "does not follow"."""
        pooled = self.dropout(pooled, deterministic=deterministic)
        kernel, bias = self.next_sentence()
        wide = precision.at_least_float32(pooled.dtype)
        logits = jnp.einsum("BD,DC->BC", pooled, kernel, preferred_element_type=wide)
        return projection.add_bias(logits, bias.astype(logits.dtype))


VocabularyHead = LanguageModelHead | MaskedLanguageModelHead | AdaptiveSoftmaxHead
"""A head that scores the vocabulary, called by `logits` on whichever states are wanted."""

Head = VocabularyHead | ClassificationHead
"""Any head config."""


def _kernel(module: Any, std: float | None, initializer: projection.Initializer, *, width: int | None = None) -> Array:
    width = module.d_model if width is None else width
    distribution = projection.make_initializer(initializer, width**-0.5 if std is None else std)
    partitioned = nn.with_logical_partitioning(distribution, ("embed", "vocab"))
    return module.param("kernel", partitioned, (width, module.vocab_size), module.param_dtype)


def _vocabulary_bias(module: Any) -> Array:
    zeros = nn.with_logical_partitioning(jax.nn.initializers.zeros, ("vocab",))
    return module.param("bias", zeros, (module.vocab_size,), module.param_dtype)


def _vocabulary_scores(hidden: Array, *, table: Array, kernel: Array | None, bias: Array | None) -> Array:
    wide = precision.at_least_float32(hidden.dtype)
    axes = ("batch", *("length",) * (hidden.ndim - 2)) if hidden.ndim > 1 else ()
    # A loss in chunks calls this on each device for its own rows, which are then nothing to split.
    rules = parallel.free_rules(nn.get_logical_axis_rules())
    # Without this, a width that the layer before divided over `tensor` meets the vocabulary, divided over it too, and
    # on a mesh of three axes XLA makes a wrong gradient of that, without a word.
    hidden = nn.with_logical_constraint(hidden, (*axes, None), rules=rules)
    if kernel is None:
        logits = jnp.einsum("...D,VD->...V", hidden, table, preferred_element_type=wide)
    else:
        logits = jnp.einsum("...D,DV->...V", hidden, kernel.astype(hidden.dtype), preferred_element_type=wide)
    if bias is not None:
        logits = projection.add_bias(logits, bias.astype(logits.dtype))
    return nn.with_logical_constraint(logits, (*axes, "vocab"), rules=rules)
