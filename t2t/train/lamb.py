"""The trust ratio of LAMB, layer by layer: updates as long as the parameters they change, times the learning rate.

The ratio is optax's; around it stands `jax.vmap` over the layers of a stacked leaf, because a ratio belongs to one
layer's matrix.

Reference: You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes", arXiv:1904.00962,
algorithm 2; lamb_optimizer.py of google-research/albert.
"""

from typing import Any

import jax
import optax


def scale_by_trust_ratio(axes: Any, *, adapted: Any) -> optax.GradientTransformation:
    """Scales the update u of each layer's parameter p by |p| / |u|; by 1 where either is 0.

    Args:
        axes: tree of the logical axes of each parameter; "layers" in front are layers one by one.
        adapted: tree of booleans; updates of the other parameters stay as they are, as LAMB's authors leave norms and
            biases.
    """
    ratio = optax.scale_by_trust_ratio()

    def scale(update: jax.Array, params: jax.Array) -> jax.Array:
        return ratio.update(update, optax.EmptyState(), params)[0]

    def scale_leaf(is_adapted: bool, update: jax.Array, params: jax.Array, names: tuple[str, ...]) -> jax.Array:
        if not is_adapted:
            return update
        return jax.vmap(scale)(update, params) if names[:1] == ("layers",) else scale(update, params)

    def update(updates: Any, state: optax.EmptyState, params: Any) -> tuple[Any, optax.EmptyState]:
        return jax.tree.map(scale_leaf, adapted, updates, params, axes), state

    return optax.GradientTransformation(optax.init_empty_state, update)
