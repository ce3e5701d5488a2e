"""Attention whose scores read distances, and whether two positions are of the same sentence, by their content.

Its own layer, because it adds products of the queries with embedded distances, which no bias of a pair of positions can
express, and because readers may stand elsewhere than what is read: earlier states come before them, and a second stream
of queries reads the first.
"""

import dataclasses
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from t2t.functional import attention, distances, masks, precision
from t2t.functional.masks import Mask
from t2t.nn import projection
from t2t.nn.attention import Attention, AttentionConfig
from t2t.nn.cache import KeysValues
from t2t.nn.dropout import Dropout


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Distances:
    """What `RelativeAttention` reads of positions; made once per pass by `distances_of`.

    Attributes:
        embeddings: Float [W, D], sinusoids of the distances from T readers to all that is read, the farthest first.
        rows: int [B, K], positions of K further readers behind the T, which are not read themselves; None = no such.
        is_other: Boolean [B, T + K, S], whether the sentence types of reader and read differ; None = no types.
        may_read: Boolean [B, K], whether a further reader has anything to read; None = no such readers.
        is_reversed: Boolean [B], rows whose distances have the other sign; None = no such rows.

    Leaves carry no checked annotations, because JAX rebuilds this class around tracers, shapes and axis names.
    """

    embeddings: Any
    rows: Any = None
    is_other: Any = None
    may_read: Any = None
    is_reversed: Any = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class RelativeAttentionConfig(AttentionConfig):
    """Attention to content and distance.

    With R(t - s) the embedded distance, the scores are

        ((query(x_t) + content_bias) key(x_s) + (query(x_t) + position_bias) position(R(t - s))) * scale

    and with `reads_types`, `(query(x_t) + type_bias) types[0 or 1] * scale` besides: 1 where the types differ.

    Reference: Dai et al., Transformer-XL, arXiv:1901.02860, section 3.3; Yang et al., XLNet, arXiv:1906.08237, section
        2.5, for the last term.
    """

    reads_types: bool = False
    """Whether scores depend on whether two positions have the same sentence type."""

    def make(
        self, d_model: int, *, dtype: Any = jnp.float32, param_dtype: Any = jnp.float32, name: str | None = None
    ) -> "RelativeAttention":
        """The linen module in a model of width `d_model`."""
        return RelativeAttention(self, d_model, dtype=dtype, param_dtype=param_dtype, name=name)


class RelativeAttention(Attention):
    """Owns query, key, value, out, the projection of distances, and one vector per head for each kind of score."""

    def setup(self):
        """Creates the projections and vectors."""
        super().setup()
        config = self.config
        self.position = projection.Projection(
            shape=(self.d_model, config.num_heads, config.head_dim),
            axes=("embed", "heads", "head"),
            std=config.initializer_std,
            initializer=config.initializer,
            dtype=self.dtype,
            param_dtype=self.param_dtype,
        )
        self.content_bias = self._vectors("content_bias")
        self.position_bias = self._vectors("position_bias")
        if config.reads_types:
            self.type_bias = self._vectors("type_bias")
            self.types = self._vectors("types", 2)

    def _vectors(self, name: str, *leading: int) -> Array:
        config = self.config
        shape = (*leading, config.num_heads, config.head_dim)
        std = self.d_model**-0.5 if config.initializer_std is None else config.initializer_std
        initializer = projection.make_initializer(config.initializer, std)
        axes = (*("types",) * len(leading), "heads", "head")
        partitioned = nn.with_logical_partitioning(initializer, axes)
        return self.param(name, partitioned, shape, self.param_dtype).astype(self.dtype)

    def __call__(
        self,
        x: Float[Array, "B T D"],
        read: KeysValues,
        *,
        mask: Bool[Array, "#B T S"] | Mask | None = None,
        bias: Float[Array, "#B N T S"] | None = None,
        rotary: Any = None,
        relative: Distances | None = None,
        deterministic: bool = True,
        attentions: bool = True,
    ) -> tuple[Float[Array, "B T D"], Float[Array, "B N T S"]]:
        """Returns what `x` reads, and the attention weights."""
        if relative is None or rotary is not None:
            raise ValueError(
                "RelativeAttention reads the distances of a TwoStreamEncoderConfig or a RecurrentDecoderConfig, and no"
                " rotary positions: build the model with one of these."
            )
        kernel_DNH, bias_NH = self.query()
        query_BTNH = projection.add_bias(jnp.einsum("BTD,DNH->BTNH", x, kernel_DNH), bias_NH)
        content_BNTH = self._heads(query_BTNH, self.content_bias)
        flags = {"deterministic": deterministic, "attentions": attentions}
        self._kernel(content_BNTH, read, mask, bias, own_scores=True, **flags)
        scores_BNTS = attention.attention_scores(content_BNTH, read.key, scale=self.config.score_scale)
        scores_BNTS = scores_BNTS + self._distance_scores(query_BTNH, relative)
        mask = masks.dense(mask, length=scores_BNTS.shape[2], key_length=scores_BNTS.shape[3])
        weights_BNTS = attention.attention_weights(scores_BNTS, mask=mask, bias=bias)
        if relative.may_read is not None:
            # Queries that may read nothing would average everything, their own token too.
            length = x.shape[1] - relative.may_read.shape[1]
            may_read = jnp.pad(relative.may_read, ((0, 0), (length, 0)), constant_values=True)
            weights_BNTS = jnp.where(may_read[:, None, :, None], weights_BNTS, 0.0)
        rate = 0.0 if deterministic else self.config.dropout
        mixed_BNTH = attention.weighted_values(
            weights_BNTS.astype(self.dtype),
            read.value,
            dropout_rate=rate,
            key=self.make_rng("dropout") if rate else None,
        )
        return self._out(mixed_BNTH), weights_BNTS

    def _heads(self, query_BTNH: Array, bias_NH: Array) -> Array:
        """The queries with a vector added, [batch, heads, length, head_dim]."""
        heads_BNTH = (query_BTNH + bias_NH[None, None]).transpose(0, 2, 1, 3)
        return nn.with_logical_constraint(heads_BNTH, ("batch", "heads", "length", "head"))

    def _distance_scores(self, query_BTNH: Array, relative: Distances) -> Array:
        """Scores [B, N, T, S] that do not depend on the content of what is read."""
        wide = precision.at_least_float32(query_BTNH.dtype)
        kernel_DNH = self.position()[0]
        position_NWH = jnp.einsum("WD,DNH->NWH", relative.embeddings, kernel_DNH)
        query_BNTH = self._heads(query_BTNH, self.position_bias)
        # Widened before and not by the product, which XLA's CPU backend refuses in bfloat16 for the layouts it chooses.
        query_BNTH, position_NWH = query_BNTH.astype(wide), position_NWH.astype(wide)
        if relative.is_reversed is None:
            products_BNTW = jnp.einsum("BNTH,NWH->BNTW", query_BNTH, position_NWH)
        else:
            mirrored_NWH = jnp.einsum("WD,DNH->NWH", distances.mirror(relative.embeddings), kernel_DNH).astype(wide)
            is_reversed = relative.is_reversed[:, None, None, None]
            position_BNWH = jnp.where(is_reversed, mirrored_NWH[None], position_NWH[None])
            products_BNTW = jnp.einsum("BNTH,BNWH->BNTW", query_BNTH, position_BNWH)
        scores_BNTS = _moved(products_BNTW, relative.rows)
        if self.config.reads_types and relative.is_other is not None:
            query_BNTH = self._heads(query_BTNH, self.type_bias)
            same, other = jnp.einsum("BNTH,CNH->CBNT", query_BNTH, self.types, preferred_element_type=wide)
            scores_BNTS = scores_BNTS + jnp.where(relative.is_other[:, None], other[..., None], same[..., None])
        return scores_BNTS * self.config.score_scale


def _moved(products_BNTW: Array, rows: Int[Array, "B K"] | None) -> Array:
    """Products with distances at the positions read, of the readers in order and of those that stand at `rows`."""
    if rows is None:
        return distances.shift_rows(products_BNTW)
    length = products_BNTW.shape[2] - rows.shape[1]
    further = distances.shift_rows_at(products_BNTW[:, :, length:], rows, length=length)
    return jnp.concatenate([distances.shift_rows(products_BNTW[:, :, :length]), further], axis=2)


class DistanceEmbeddings(nn.Module):
    """Sinusoids of all distances of a pass, some of their values dropped: the same for all rows and layers."""

    width: int
    max_distance: int | None
    dropout: float
    dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, *, length: int, past_length: int, deterministic: bool) -> Float[Array, "W D"]:
        """The embedded distances from `length` readers to as many positions and `past_length` before them."""
        table = distances.distance_sinusoids(
            length=length, past_length=past_length, width=self.width, max_distance=self.max_distance
        )
        return Dropout(self.dropout)(jnp.asarray(table, self.dtype), deterministic=deterministic)
