"""Input embeddings and output scores that spend less on rare words: clusters of the vocabulary, each of its own width.

Ids are sorted by frequency, so a cluster is a range of them. Every cluster is computed at every position, because
shapes do not depend on data; what is saved is parameters, not time.
"""

import dataclasses
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from t2t.functional import precision
from t2t.nn import checks, projection
from t2t.nn.dropout import Dropout
from t2t.nn.embed import EmbedConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class Clusters:
    """Where the ids of a vocabulary are divided, and how much narrower each part is than the one before."""

    cutoffs: tuple[int, ...] = ()
    """First ids of the second, third, ... cluster; () = one cluster."""
    divisor: int = 1
    """Of the width, from each cluster to the next; 1 = one table of one width serves all."""

    def __post_init__(self):
        """Refuses values without meaning."""
        checks.check_positive(self, "divisor")
        is_rising = list(self.cutoffs) == sorted({*self.cutoffs}) and all(cutoff > 0 for cutoff in self.cutoffs)
        repair = "Give ids that divide the vocabulary, such as (20000, 40000, 200000)."
        checks.check(is_rising, self, "cutoffs", allowed="positive and rising", repair=repair)

    def ranges(self, vocab_size: int) -> list[tuple[int, int]]:
        """First id of each cluster, and the one after its last.

        >>> Clusters(cutoffs=(2, 5)).ranges(9)
        [(0, 2), (2, 5), (5, 9)]
        """
        ends = (*self.cutoffs, vocab_size)
        return list(zip((0, *self.cutoffs), ends, strict=True))

    def tables(self, vocab_size: int, dim: int) -> list[tuple[int, int]]:
        """Rows and width of each table.

        >>> Clusters(cutoffs=(2, 5), divisor=4).tables(9, 32)
        [(2, 32), (3, 8), (4, 2)]
        """
        if self.divisor == 1:
            return [(vocab_size, dim)]
        ranges = self.ranges(vocab_size)
        return [(end - start, dim // self.divisor**i) for i, (start, end) in enumerate(ranges)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class AdaptiveEmbedConfig(EmbedConfig):
    """Tables of words whose width falls from cluster to cluster, each with a projection to the width of the model.

    Reference: Baevski and Auli, Adaptive Input Representations, arXiv:1809.10853, section 3.
    """

    clusters: Clusters
    projection_std: float = 0.01
    """Deviation of the initial projections."""

    def __post_init__(self):
        """Refuses values without meaning."""
        super().__post_init__()
        allowed = f"below vocab_size = {self.vocab_size}"
        is_inside = all(cutoff < self.vocab_size for cutoff in self.clusters.cutoffs)
        checks.check(is_inside, self, "clusters", allowed=f"with cutoffs {allowed}", repair="Give fewer cutoffs.")
        has_more = self.num_types or self.num_languages or self.position is not None or self.norm is not None
        repair = "Use EmbedConfig for a model with positions, types, languages or a norm."
        checks.check(not has_more, self, "clusters", allowed="all that is embedded, besides words", repair=repair)

    @property
    def is_projected(self) -> bool:
        """Whether tables have projections to the width of the model."""
        return self.clusters.divisor > 1 or self.dim != self.width

    def make(
        self,
        *,
        dtype: Any = jnp.float32,
        param_dtype: Any = jnp.float32,
        borrows_table: bool = False,
        name: str | None = None,
    ) -> "AdaptiveEmbed":
        """The linen module; its tables cannot be borrowed."""
        checks.check(not borrows_table, self, "clusters", allowed="of one side", repair="Use EmbedConfig for two.")
        return AdaptiveEmbed(self, dtype=dtype, param_dtype=param_dtype, name=name)


class ClusterTable(nn.Module):
    """Owns the table of a cluster and its projection to the width of the model, where it has one."""

    num_rows: int
    dim: int
    width: int | None
    std: float
    projection_std: float
    dtype: Any = jnp.float32
    param_dtype: Any = jnp.float32

    @nn.compact
    def __call__(self) -> tuple[Float[Array, "V E"], Float[Array, "E D"] | None]:
        """Returns the table and the projection."""
        table = self._parameter("embedding", self.std, ("vocab", "embed"), (self.num_rows, self.dim))
        if self.width is None:
            return table, None
        return table, self._parameter("kernel", self.projection_std, ("mlp", "embed"), (self.dim, self.width))

    def _parameter(self, name: str, std: float, axes: tuple[str, str], shape: tuple[int, int]) -> Array:
        initializer = nn.with_logical_partitioning(projection.make_initializer("normal", std), axes)
        return self.param(name, initializer, shape, self.param_dtype).astype(self.dtype)


class AdaptiveEmbed(nn.Module):
    """Owns the tables `cluster_0`, `cluster_1`, ...; `table()` gives all of them to a tied head."""

    config: AdaptiveEmbedConfig
    dtype: Any = jnp.float32
    param_dtype: Any = jnp.float32

    def setup(self):
        """Creates the tables."""
        config = self.config
        self.cluster = [
            ClusterTable(
                num_rows,
                dim,
                config.width if config.is_projected else None,
                std=config.initializer_std,
                projection_std=config.projection_std,
                dtype=self.dtype,
                param_dtype=self.param_dtype,
            )
            for num_rows, dim in config.clusters.tables(config.vocab_size, config.dim)
        ]
        self.dropout = Dropout(config.dropout)

    def table(self) -> tuple[tuple[Array, Array | None], ...]:
        """Table and projection of each cluster, in the compute dtype."""
        return tuple(cluster() for cluster in self.cluster)

    def __call__(
        self, tokens: Int[Array, "B T"], *, deterministic: bool = True, **unread: Any
    ) -> Float[Array, "B T D"]:
        """Returns the embedded tokens; token ids outside the tables give NaN."""
        del unread  # positions and types, of which there are no tables
        x_BTD, start = None, 0
        for table, kernel in self.table():
            # Clipped, not filled: a projection would get NaN as the gradient of what another cluster replaces.
            own_BTE = jnp.take(table, tokens - start, axis=0, mode="clip")
            own_BTD = own_BTE if kernel is None else jnp.einsum("BTE,ED->BTD", own_BTE, kernel)
            x_BTD = own_BTD if x_BTD is None else jnp.where((tokens >= start)[..., None], own_BTD, x_BTD)
            start += table.shape[0]
        is_known = (tokens >= 0) & (tokens < start)
        x_BTD = jnp.where(is_known[..., None], x_BTD, jnp.nan)
        x_BTD = x_BTD if self.config.scale == 1.0 else x_BTD * self.config.scale
        return self.dropout(x_BTD, deterministic=deterministic)


@dataclasses.dataclass(frozen=True, kw_only=True)
class AdaptiveSoftmaxHead:
    """Log probabilities of all words: of the frequent ones and of each further cluster, and of words within a cluster.

        log p(word) = log p(cluster | state) + log p(word | cluster, state)

    Tables are those of an `AdaptiveEmbed`, and so are projections but the first cluster's. A log softmax of the result
    changes nothing, so losses take it for logits.

    Reference: Grave et al., Efficient softmax approximation for GPUs, arXiv:1609.04309, section 4; Dai et al.,
        Transformer-XL, arXiv:1901.02860, and its released code, for what is tied.
    """  # fmt: skip

    clusters: Clusters
    dim: int
    """Width of the first cluster's table."""
    is_projected: bool
    """Whether states are projected to the width of each table."""
    initializer_std: float = 0.02
    projection_std: float = 0.01

    def make(
        self,
        *,
        vocab_size: int,
        d_model: int,
        dtype: Any = jnp.float32,
        param_dtype: Any = jnp.float32,
        name: str | None = None,
    ) -> "AdaptiveSoftmaxHeadModule":
        """The linen module for a vocabulary and a width."""
        return AdaptiveSoftmaxHeadModule(self, vocab_size, d_model, dtype=dtype, param_dtype=param_dtype, name=name)


class ClusterBias(nn.Module):
    """Owns the biases of a table's words."""

    num_rows: int
    param_dtype: Any = jnp.float32

    @nn.compact
    def __call__(self) -> Float[Array, " V"]:
        """Returns them."""
        zeros = nn.with_logical_partitioning(jax.nn.initializers.zeros, ("vocab",))
        return self.param("bias", zeros, (self.num_rows,), self.param_dtype)


class AdaptiveSoftmaxHeadModule(nn.Module):
    """Owns the biases, the scores of the clusters, and the first cluster's projection."""

    config: AdaptiveSoftmaxHead
    vocab_size: int
    d_model: int
    dtype: Any = jnp.float32
    param_dtype: Any = jnp.float32

    def setup(self):
        """Creates the parameters."""
        config = self.config
        tables = config.clusters.tables(self.vocab_size, config.dim)
        self.cluster = [ClusterBias(num_rows, param_dtype=self.param_dtype) for num_rows, _ in tables]
        options = {"axes": ("embed", "types"), "dtype": self.dtype, "param_dtype": self.param_dtype}
        if config.is_projected:
            shape = (self.d_model, config.dim)
            self.projection = projection.Projection(shape=shape, std=config.projection_std, **options)
        if config.clusters.cutoffs:
            shape = (config.dim, len(config.clusters.cutoffs))
            self.clusters = projection.Projection(shape=shape, use_bias=True, std=config.initializer_std, **options)

    def __call__(
        self, hidden: Float[Array, "*axes D"], table: tuple[tuple[Array, Array | None], ...]
    ) -> Float[Array, "*axes V"]:
        """Returns log probabilities in float32."""
        own = self.projection()[0] if self.config.is_projected else None
        states = hidden if own is None else jnp.einsum("...D,DE->...E", hidden, own)
        ranges = self.config.clusters.ranges(self.vocab_size)
        scores = [_scores(states, *self._rows(table, 0, ranges[0]))]
        if self.config.clusters.cutoffs:
            kernel, bias = self.clusters()
            scores.append(_scores(states, kernel.T, bias))
        first = jax.nn.log_softmax(jnp.concatenate(scores, axis=-1), axis=-1)
        size = ranges[0][1]
        found = [first[..., :size]]
        for i, ids in enumerate(ranges[1:], start=1):
            own = table[min(i, len(table) - 1)][1]
            states = hidden if own is None else jnp.einsum("...D,ED->...E", hidden, own)
            within = jax.nn.log_softmax(_scores(states, *self._rows(table, i, ids)), axis=-1)
            found.append(first[..., size + i - 1 : size + i] + within)
        return jnp.concatenate(found, axis=-1)

    def _rows(self, table: tuple[tuple[Array, Array | None], ...], cluster: int, ids: tuple[int, int]) -> Any:
        """The output embeddings of a cluster and their biases."""
        if len(table) > 1:
            return table[cluster][0], self.cluster[cluster]()
        return table[0][0][ids[0] : ids[1]], self.cluster[0]()[ids[0] : ids[1]]


def _scores(states: Array, rows: Array, bias: Array) -> Array:
    wide = precision.at_least_float32(states.dtype)
    scores = jnp.einsum("...E,VE->...V", states, rows, preferred_element_type=wide)
    return projection.add_bias(scores, bias.astype(scores.dtype))
