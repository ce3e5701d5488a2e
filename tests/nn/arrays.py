"""Arrays for tests of layers."""

import jax
import jax.numpy as jnp
from flax import linen as nn


def variables(params):
    """What a linen module applies, from parameters as NumPy arrays."""
    return {"params": jax.tree.map(jnp.asarray, params)}


def shapes(module, *args, **options):
    """Shapes of a module's parameters for a call, without compiling its initializers."""
    init = jax.eval_shape(lambda: nn.unbox(module.init(jax.random.key(0), *args, **options)))
    return init.get("params", {})
