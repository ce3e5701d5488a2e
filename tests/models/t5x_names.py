"""Maps the parameters recorded from T5X (`t5x_golden`) to our tree."""

from collections.abc import Mapping

import numpy as np

NUM_LAYERS = 2
HEADS = 4

ATTENTION = ("query", "key", "value", "out")


def _attention(read, prefix):
    def kernel(name):
        array = read(f"{prefix}/{name}/kernel")
        if name == "out":
            return array.reshape(array.shape[0], HEADS, -1, array.shape[-1])
        return array.reshape(*array.shape[:2], HEADS, -1)

    return {name: {"kernel": kernel(name)} for name in ATTENTION}


def _stack(arrays: Mapping[str, np.ndarray], side: str, *, is_encoder: bool, cross: bool, gated: bool) -> dict:
    def read(name):
        return np.stack([arrays[f"{side}/layers_{i}/{name}"] for i in range(NUM_LAYERS)])

    own = "attention" if is_encoder else "self_attention"
    feed_forward = {"down": {"kernel": read("mlp/wo/kernel")}}
    if gated:
        feed_forward |= {"gate": {"kernel": read("mlp/wi_0/kernel")}, "up": {"kernel": read("mlp/wi_1/kernel")}}
    else:
        feed_forward |= {"up": {"kernel": read("mlp/wi/kernel")}}
    layers = {
        "attention_norm": {"scale": read(f"pre_{own}_layer_norm/scale")},
        "attention": _attention(read, own),
        "feed_forward_norm": {"scale": read("pre_mlp_layer_norm/scale")},
        "feed_forward": feed_forward,
    }
    if cross:
        layers["cross_attention_norm"] = {"scale": read("pre_cross_attention_layer_norm/scale")}
        layers["cross_attention"] = _attention(read, "encoder_decoder_attention")
    return {
        "layers_0": layers,
        "position": {"embedding": arrays[f"{side}/relpos_bias/rel_embedding"].T},
        "final_norm": {"scale": arrays[f"{side}/{side}_norm/scale"]},
    }


def encoder_decoder_params(arrays: Mapping[str, np.ndarray]) -> dict:
    """Our tree of the tiny T5 1.0, from arrays by T5X path (parameters, gradients or updated parameters)."""
    return {
        "embed": {"embedding": arrays["token_embedder/embedding"]},
        "encoder": _stack(arrays, "encoder", is_encoder=True, cross=False, gated=False),
        "decoder": _stack(arrays, "decoder", is_encoder=False, cross=True, gated=False),
    }


def decoder_params(arrays: Mapping[str, np.ndarray]) -> dict:
    """Our tree of the tiny decoder, from arrays by T5X path."""
    return {
        "embed": {"embedding": arrays["decoder/token_embedder/embedding"]},
        "decoder": _stack(arrays, "decoder", is_encoder=False, cross=False, gated=True),
    }


def arrays_under(recorded: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """The recorded arrays below `prefix/`, without it."""
    return {name[len(prefix) + 1 :]: recorded[name] for name in recorded if name.startswith(f"{prefix}/")}
