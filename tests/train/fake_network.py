"""A network small enough to differentiate in one's head: bags of embeddings, a stacked layer, a projection.

It has the surface the training step uses (`init`, `logical_axes`, `hidden`, `logits`) and every kind of leaf the
optimizers tell apart: a stacked kernel of three axes, its bias, a norm's scale, a position bias, a table.
"""

import dataclasses

import jax
import jax.numpy as jnp

AXES = {
    "embed": {"embedding": ("vocab", "embed")},
    "decoder": {
        "layers_0": {
            "attention": {
                "query": {"kernel": ("layers", "embed", "heads", "head"), "bias": ("layers", "heads", "head")},
                "out": {"kernel": ("layers", "heads", "head", "embed")},
            }
        },
        "position": {"embedding": ("positions", "heads")},
        "final_norm": {"scale": ("embed",)},
    },
    "head": {"kernel": ("embed", "vocab")},
}


@dataclasses.dataclass(frozen=True)
class FakeNetwork:
    vocab_size: int = 16
    d_model: int = 8
    num_heads: int = 4
    head_dim: int = 6
    num_layers: int = 2
    dropout: float = 0.0
    dtype: object = jnp.float32

    def logical_axes(self):
        return AXES

    def sizes(self):
        return {
            "vocab": self.vocab_size,
            "embed": self.d_model,
            "heads": self.num_heads,
            "head": self.head_dim,
            "layers": self.num_layers,
            "positions": 5,
        }

    def init(self, key):
        sizes = self.sizes()
        shapes = jax.tree.map(lambda axes: tuple(sizes[a] for a in axes), AXES, is_leaf=lambda x: isinstance(x, tuple))
        leaves, structure = jax.tree.flatten(shapes, is_leaf=lambda x: isinstance(x, tuple))
        keys = jax.random.split(key, len(leaves))
        std = 1.4 * self.d_model**-0.5
        values = [std * jax.random.normal(k, shape, jnp.float32) for k, shape in zip(keys, leaves, strict=True)]
        return jax.tree.unflatten(structure, values)

    def hidden(self, params, batch, *, key=None):
        side = "encoder" if "encoder_input_tokens" in batch else "decoder"
        x_BTD = params["embed"]["embedding"][jnp.asarray(batch[f"{side}_input_tokens"])]
        attention = params["decoder"]["layers_0"]["attention"]
        bias = jnp.mean(params["decoder"]["position"]["embedding"], axis=0)[:, None]

        def layer(x_BTD, weights):
            y = jnp.einsum("BTD,DNH->BTNH", x_BTD, weights["query"]["kernel"])
            y = jnp.tanh(y + weights["query"]["bias"] + bias)
            return x_BTD + jnp.einsum("BTNH,NHD->BTD", y, weights["out"]["kernel"]), None

        x_BTD, _ = jax.lax.scan(layer, x_BTD, attention)
        if key is not None and self.dropout:
            kept = jax.random.bernoulli(key, 1 - self.dropout, x_BTD.shape)
            x_BTD = jnp.where(kept, x_BTD / (1 - self.dropout), 0)
        return Hidden(x_BTD * params["decoder"]["final_norm"]["scale"])

    def logits(self, params, hidden):
        return jnp.einsum("...D,DV->...V", hidden, params["head"]["kernel"])


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Hidden:
    last_hidden: object
