"""A generator and a discriminator of two layers, and batches of both forms that they read."""

from typing import Any

import jax
import numpy as np

from t2t import heads
from t2t.families import electra
from t2t.models.electra import ElectraConfig, Sharing

VOCAB_SIZE, MASK = 50, 4
ROWS, LENGTH, PREDICTIONS = 8, 12, 3


def pair(
    sharing: Sharing = "embeddings", *, dropout: float = 0.0, vocab_size: int = VOCAB_SIZE, max_positions: int = 16
) -> ElectraConfig:
    """The discriminator is 32 wide, the generator 16 (with sharing="all" 32 too), the tables 8."""
    sizes: dict[str, Any] = {"num_layers": 2, "num_heads": 4, "d_ff": 64, "embed_dim": 8}
    sizes |= {"vocab_size": vocab_size, "max_positions": max_positions}
    sizes |= {"dropout": dropout, "attention_dropout": dropout}
    discriminator = electra.electra(d_model=32, **sizes)
    generator = electra.electra(d_model=32 if sharing == "all" else 16, **sizes)
    return ElectraConfig(
        generator=electra.with_head(generator, heads.MaskedLM()),
        discriminator=electra.with_head(discriminator, heads.PRETRAINING),
        sharing=sharing,
    )


def params(config: ElectraConfig, seed: int = 0) -> dict[str, Any]:
    """Parameters of both roles, larger than fresh ones, so that what differs shows."""
    networks = config.networks()
    drawn = {role: networks[role].init(jax.random.key(seed + i)) for i, role in enumerate(sorted(networks))}
    draw = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: leaf + 0.2 * draw.standard_normal(leaf.shape).astype(np.float32), drawn)


def batches(seed: int = 0) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], np.ndarray]:
    """The same masked rows with predictions at positions and everywhere, and the text before.

    The last two tokens of a row are padding; the last prediction of row 0 only fills the row.
    """
    draw = np.random.default_rng(seed)
    original = draw.integers(5, VOCAB_SIZE, (ROWS, LENGTH)).astype(np.int32)
    places = [draw.choice(LENGTH - 2, PREDICTIONS, replace=False) for _ in range(ROWS)]
    positions = np.stack(places).astype(np.int32)
    weights = np.ones((ROWS, PREDICTIONS), np.float32)
    weights[0, -1] = 0
    everywhere = np.zeros((ROWS, LENGTH), np.float32)
    np.put_along_axis(everywhere, positions, weights, axis=1)
    inputs = np.where(everywhere > 0, MASK, original)
    inputs[1, positions[1, 0]] = original[1, positions[1, 0]]  # kept as it was
    segment_ids = np.ones((ROWS, LENGTH), np.int32)
    segment_ids[:, -2:] = 0
    common = {"encoder_input_tokens": inputs, "encoder_segment_ids": segment_ids}
    at_positions = {
        "encoder_predict_positions": positions,
        "encoder_predict_targets": np.take_along_axis(original, positions, axis=1),
        "encoder_predict_weights": weights,
    }
    dense = {"encoder_target_tokens": original, "encoder_loss_weights": everywhere}
    return common | at_positions, common | dense, original
