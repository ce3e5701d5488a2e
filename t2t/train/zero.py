"""The optimizer's state and work divided over the copies of the parameters: stage 1 of ZeRO.

Along the data axis every device holds all parameters and, without this, all of the optimizer's state, and makes the
same update as its neighbours. Divided, each device keeps and updates its part; the new parameters are put together from
the parts. That moves as many bytes as adding up the gradients does already, where the sum is left in parts.

Reference: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
    arXiv:1910.02054, section 5.1 (P_os); Xu et al., "Automatic Cross-Replica Sharding of Weight Update in
    Data-Parallel Training", arXiv:2004.13336, for the same by annotations of a compiled program.
"""

from typing import Any

import jax
import optax
from jax.sharding import Mesh

from t2t import sharding


def shardings(shapes: Any, axes: Any, mesh: Mesh) -> Any:
    """Where the parts of each parameter's update are, from trees of shapes and of logical axes."""
    return jax.tree.map(lambda leaf, names: sharding.divided_sharding(leaf.shape, names, mesh), shapes, axes)


def divide(optimizer: optax.GradientTransformation, parts: Any) -> optax.GradientTransformation:
    """The same optimizer, of which each device computes its parts (a tree like the parameters, by `shardings`).

    Its state has to be divided alike: `t2t.train.state.state_shardings` with `zero`.
    """

    def update(gradients: Any, state: optax.OptState, params: Any = None) -> tuple[Any, optax.OptState]:
        gradients = jax.lax.with_sharding_constraint(gradients, parts)
        if params is not None:
            params = jax.lax.with_sharding_constraint(params, parts)
        updates, state = optimizer.update(gradients, state, params)
        return jax.lax.with_sharding_constraint(updates, parts), state

    return optax.GradientTransformation(optimizer.init, update)
