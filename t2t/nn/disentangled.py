"""Disentangled attention: scores of contents with contents, and of contents with distances, from separate vectors."""

import dataclasses
from typing import Any, Literal

import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from t2t.functional import attention, disentangled, dropout
from t2t.functional.masks import Mask
from t2t.functional.positions import RotaryAngles
from t2t.nn import checks
from t2t.nn.attention import Attention, AttentionConfig
from t2t.nn.cache import KeysValues
from t2t.nn.positions.context import RelativeTable

Term = Literal["c2p", "p2c"]
TERMS: tuple[Term, ...] = ("c2p", "p2c")


@dataclasses.dataclass(frozen=True, kw_only=True)
class DisentangledAttentionConfig(AttentionConfig):
    """Attention with further scores that read the distances of `RelativeEmbeddings`, the `position` of the stack.

    With d(t, s) the embedded distance `t - s` from the one read to the reader, the scores are

        (query(x_t) key(x_s) + query(x_t) position_key(d(t, s)) + position_query(d(t, s)) key(x_s)) * scale

    Reference: He et al., DeBERTa, arXiv:2006.03654, equation 4 and algorithm 1.
    Differs: in the paper the last term reads d(s, t); the released code, all published models with it, and transformers
    read d(t, s).
    """

    terms: tuple[Term, ...] = TERMS
    """Scores besides those of contents with contents: of contents with positions, of positions with contents."""
    shares_projections: bool = False
    """Whether `query` and `key` read distances as well, biases included; False: projections of their own do."""

    def __post_init__(self):
        """Refuses values without meaning."""
        super().__post_init__()
        is_valid = len(set(self.terms)) == len(self.terms) and set(self.terms) <= set(TERMS)
        allowed = f"some of {', '.join(TERMS)}, each once"
        checks.check(is_valid, self, "terms", allowed=allowed, repair=f"Set terms={TERMS!r}.")
        is_alone = self.num_kv_heads in (None, self.num_heads)
        allowed = "None: distances are compared head by head"
        checks.check(is_alone, self, "num_kv_heads", allowed=allowed, repair="Set num_kv_heads=None.")

    @property
    def score_scale(self) -> float:
        """Factor of the scores; None = (head_dim times the number of kinds of scores)**-0.5."""
        return (self.head_dim * (1 + len(self.terms))) ** -0.5 if self.scale is None else self.scale

    def make(
        self, d_model: int, *, dtype: Any = jnp.float32, param_dtype: Any = jnp.float32, name: str | None = None
    ) -> "DisentangledAttention":
        """The linen module in a model of width `d_model`."""
        return DisentangledAttention(self, d_model, dtype=dtype, param_dtype=param_dtype, name=name)


class DisentangledAttention(Attention):
    """Owns query, key, value and out, and projections of the distances where it does not share those."""

    def setup(self):
        """Creates the projections."""
        super().setup()
        config = self.config
        if config.shares_projections:
            return
        if "c2p" in config.terms:
            key_bias = config.use_bias if config.key_bias is None else config.key_bias
            self.position_key = self._projection(
                config.num_heads, "heads", std=config.initializer_std, use_bias=key_bias
            )
        if "p2c" in config.terms:
            self.position_query = self._projection(config.num_heads, "heads", std=config.initializer_std)

    def __call__(
        self,
        x: Float[Array, "B T D"],
        read: KeysValues,
        *,
        mask: Bool[Array, "#B T S"] | Mask | None = None,
        bias: Float[Array, "#B N T S"] | None = None,
        rotary: RotaryAngles | None = None,
        relative: RelativeTable | None = None,
        deterministic: bool = True,
        attentions: bool = True,
    ) -> tuple[Float[Array, "B T D"], Float[Array, "B N T S"]]:
        """Returns what `x` reads, and the attention weights."""
        config = self.config
        if relative is None and config.terms:
            raise ValueError(
                f"DisentangledAttention: terms={config.terms!r} read distances, and the stack has no table of them."
                " Set StackConfig.position=RelativeEmbeddings(...), or terms=()."
            )
        # Scaled before the products, which in half precision would grow too large.
        query_BNTH = self.queries(x, rotary=rotary) * config.score_scale
        flags = {"deterministic": deterministic, "attentions": attentions}
        self._kernel(query_BNTH, read, mask, bias, own_scores=True, **flags)
        scores_BNTS = attention.attention_scores(query_BNTH, read.key)
        if config.terms:
            table_UD = relative.embeddings
            if not deterministic and relative.dropout:
                table_UD = dropout.dropout(table_UD, rate=relative.dropout, key=self.make_rng("dropout"))
            if "c2p" in config.terms:
                kernel, key_bias = self.key() if config.shares_projections else self.position_key()
                position_key = _positions(table_UD, kernel, key_bias, relative.rows)
                scores_BNTS = scores_BNTS + disentangled.content_to_position(query_BNTH, position_key)
            if "p2c" in config.terms:
                kernel, query_bias = self.query() if config.shares_projections else self.position_query()
                position_query = _positions(table_UD, kernel, query_bias, relative.rows) * config.score_scale
                scores_BNTS = scores_BNTS + disentangled.position_to_content(read.key, position_query)
        return self._read(scores_BNTS, read, mask=mask, bias=bias, deterministic=deterministic)


def _positions(table: Array, kernel: Array, bias: Array | None, rows: Array | None) -> Float[Array, "N W H"]:
    """The projected distances, one after the other from the shortest (most negative) on."""
    projected_NUH = jnp.einsum("UD,DNH->NUH", table, kernel)
    if bias is not None:
        projected_NUH = projected_NUH + bias[:, None, :]
    return projected_NUH if rows is None else jnp.take(projected_NUH, rows, axis=1)
