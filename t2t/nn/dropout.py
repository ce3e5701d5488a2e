"""Dropout inside linen modules."""

import flax.linen as nn
from jax import Array
from jaxtyping import Float

from t2t.functional import dropout


class Dropout(nn.Module):
    """Applies dropout with the module's own "dropout" key; does nothing at rate 0 or when deterministic."""

    rate: float

    @nn.compact
    def __call__(self, x: Float[Array, "*axes"], *, deterministic: bool) -> Float[Array, "*axes"]:
        """Returns `x` with values dropped, or `x` itself."""
        if deterministic or self.rate == 0.0:
            return x
        return dropout.dropout(x, rate=self.rate, key=self.make_rng("dropout"))
