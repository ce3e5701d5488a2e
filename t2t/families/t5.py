"""T5 and what has its shape: encoder-decoders with relative positions, pretrained to restore spans of text.

    t5-small ... t5-11b          T5 1.0: ReLU, output tied to the embedding and scaled by d_model**-0.5, dropout 0.1
    t5-v1_1-small ... -xxl       T5 1.1: gated GELU, an output of its own, pretrained without dropout
    flan-t5-small ... -xxl       T5 1.1 fine-tuned on instructions, with dropout 0.05
    byt5-small ... -xxl          T5 1.1 on bytes, its encoder three times as deep as its decoder
    ul2-20b, flan-ul2            gated SiLU, pretrained with a mixture of denoisers

Those of T5, FLAN and UL2 have 32,128 embedding rows: 32,000 pieces, 100 sentinels, the rest unused; ByT5 has 384.

Heads of labels: of a text, from the decoder's state at the end of the text, which it reads shifted right by one; of an
answer's ends, from the decoder; of tokens, from the encoder, without a decoder.

Reference: Raffel et al., Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer,
arXiv:1910.10683; released_checkpoints.md of google-research/text-to-text-transfer-transformer for 1.1; Chung et al.,
Scaling Instruction-Finetuned Language Models, arXiv:2210.11416 (FLAN); Xue et al., ByT5, arXiv:2105.13626; Tay et al.,
UL2: Unifying Language Learning Paradigms, arXiv:2205.05131.

Differs: presets of 1.1 have dropout 0, the value of pretraining; the authors recommend 0.1 for fine-tuning, which is
also what the published config.json says (`families.with_dropout(config, 0.1)`). Every value is dropped by itself, as in
transformers; the authors' code drops one choice for all positions of a row. A file of the bare T5Model of 1.0 is read
with its output, which is the embedding.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

from t2t.families import labels
from t2t.families.t5_shape import SIZES, V1_1, Config, preset, t5, with_head
from t2t.hf import config_map
from t2t.hf.table import LINEAR, LINEAR_2, MATRIX, VECTOR, Entry, Ignored, Table, linear_entries
from t2t.models.encoder import EncoderConfig
from t2t.models.encoder_decoder import EncoderDecoderConfig
from t2t.nn.classification import ClassificationHead
from t2t.nn.feed_forward import Activation
from t2t.nn.heads import LanguageModelHead
from t2t.nn.positions.t5_bias import T5Bias
from t2t.nn.stack import StackConfig

_BYT5 = {
    "small": {"num_layers": 12, "num_decoder_layers": 4, "d_model": 1472, "num_heads": 6, "d_ff": 3584},
    "base": {"num_layers": 18, "num_decoder_layers": 6, "d_model": 1536, "num_heads": 12, "d_ff": 3968},
    "large": {"num_layers": 36, "num_decoder_layers": 12, "d_model": 1536, "num_heads": 16, "d_ff": 3840},
    "xl": {"num_layers": 36, "num_decoder_layers": 12, "d_model": 2560, "num_heads": 32, "d_ff": 6720},
    "xxl": {"num_layers": 36, "num_decoder_layers": 12, "d_model": 4672, "num_heads": 64, "d_ff": 12352},
}
_UL2 = preset(t5, num_layers=32, d_model=4096, num_heads=16, head_dim=256, d_ff=16384, **{**V1_1, "activation": "silu"})

PRESETS = {
    "t5-small": preset(t5, num_layers=6, d_model=512, num_heads=8, d_ff=2048),
    "t5-base": preset(t5, num_layers=12, d_model=768, num_heads=12, d_ff=3072),
    "t5-large": preset(t5, num_layers=24, d_model=1024, num_heads=16, d_ff=4096),
    "t5-3b": preset(t5, num_layers=24, d_model=1024, num_heads=32, head_dim=128, d_ff=16384),
    "t5-11b": preset(t5, num_layers=24, d_model=1024, num_heads=128, head_dim=128, d_ff=65536),
    **{f"t5-v1_1-{size}": preset(t5, **V1_1, **numbers) for size, numbers in SIZES.items()},
    **{f"flan-t5-{size}": preset(t5, **{**V1_1, "dropout": 0.05}, **numbers) for size, numbers in SIZES.items()},
    **{f"byt5-{size}": preset(t5, **V1_1, vocab_size=384, **numbers) for size, numbers in _BYT5.items()},
    "ul2-20b": _UL2,
    "flan-ul2": _UL2,
}


def _attention(ours: str, theirs: str) -> tuple[Entry, ...]:
    return (
        *(Entry(f"{ours}/{name}/kernel", f"{theirs}.{name[0]}.weight", LINEAR) for name in ("query", "key", "value")),
        Entry(f"{ours}/out/kernel", f"{theirs}.o.weight", LINEAR_2),
    )


def _feed_forward(side: str, theirs: str) -> tuple[Entry, ...]:
    ours, dense = f"{side}/{{i}}/feed_forward", f"{theirs}.DenseReluDense"
    gate = f"{ours}/gate/kernel"
    return (
        Entry(f"{side}/{{i}}/feed_forward_norm/scale", f"{theirs}.layer_norm.weight", VECTOR),
        Entry(f"{ours}/up/kernel", f"{dense}.wi.weight", LINEAR, unless=gate),
        Entry(gate, f"{dense}.wi_0.weight", LINEAR),
        Entry(f"{ours}/up/kernel", f"{dense}.wi_1.weight", LINEAR, needs=gate),
        Entry(f"{ours}/down/kernel", f"{dense}.wo.weight", LINEAR),
    )


def _side(side: str, *, feed_forward: int) -> tuple[Entry, ...]:
    ours, theirs = f"{side}/{{i}}", f"{{base}}{side}.block.{{i}}.layer"
    bias = "0.SelfAttention.relative_attention_bias.weight"
    return (
        # Of a table that all blocks share (T5), which stands in the first, or that each has for itself (UMT5).
        Entry(f"{side}/position/embedding", f"{{base}}{side}.block.0.layer.{bias}", MATRIX),
        Entry(f"{ours}/position/embedding", f"{theirs}.{bias}", MATRIX),
        Entry(f"{ours}/attention_norm/scale", f"{theirs}.0.layer_norm.weight", VECTOR),
        *_attention(f"{ours}/attention", f"{theirs}.0.SelfAttention"),
        Entry(f"{ours}/cross_attention_norm/scale", f"{theirs}.1.layer_norm.weight", VECTOR),
        *_attention(f"{ours}/cross_attention", f"{theirs}.1.EncDecAttention"),
        *_feed_forward(side, f"{theirs}.{feed_forward}"),
        Entry(f"{side}/final_norm/scale", f"{{base}}{side}.final_layer_norm.weight", VECTOR),
    )


TABLE = Table(
    base="transformer.",
    entries=(
        Entry(
            "embed/embedding",
            "{base}shared.weight",
            MATRIX,
            copies=("{base}encoder.embed_tokens.weight", "{base}decoder.embed_tokens.weight", "lm_head.weight"),
        ),
        *_side("encoder", feed_forward=1),
        *_side("decoder", feed_forward=2),
        Entry("head/kernel", "lm_head.weight", LINEAR),
        *linear_entries("head/dense", "classification_head.dense"),
        *linear_entries("head/classifier", "classification_head.out_proj", needs="head/dense/kernel"),
        *linear_entries("head/classifier", "classifier", unless="head/dense/kernel"),
        *linear_entries("head/span", "qa_outputs"),
    ),
    ignored=(
        Ignored(
            "*decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",
            "files of transformers 2 hold a bias for cross-attention; T5 has none and never reads it",
        ),
    ),
)


def has_base(config: Config) -> bool:
    """Whether names begin with `transformer.`: those of T5's two classes that hold another class whole."""
    return isinstance(config.head, ClassificationHead) and config.head.task in ("sequence", "tokens")


READ: Mapping[str, Any] = {
    **labels.READ,
    "vocab_size": 32128,
    "d_model": 512,
    "d_kv": 64,
    "d_ff": 2048,
    "num_layers": 6,
    "num_decoder_layers": None,
    "num_heads": 8,
    "relative_attention_num_buckets": 32,
    "relative_attention_max_distance": 128,
    "dropout_rate": 0.1,
    "classifier_dropout": 0.0,
    "layer_norm_epsilon": 1e-6,
    "feed_forward_proj": "relu",
    "dense_act_fn": None,
    "is_gated_act": None,
    "tie_word_embeddings": True,
    "scale_decoder_outputs": None,
}

ATTRIBUTES = config_map.Attributes(
    read=READ,
    fixed={"is_decoder": (False,)},
    # No code reads the last two, which released files have.
    ignored=frozenset({"initializer_factor", "n_positions", "scalable_attention"}),
)

HEAD_FIELDS = labels.HeadFields({task: {"classifier_dropout": "dropout"} for task in ("sequence", "tokens")})

_PROJECTIONS: Mapping[str, tuple[Activation, bool]] = {
    "relu": ("relu", False),
    "gelu": ("gelu", False),
    "gelu_new": ("gelu_tanh", False),
    "silu": ("silu", False),
    "gated-relu": ("relu", True),
    "gated-gelu": ("gelu_tanh", True),  # sic: transformers reads gelu as gelu_new where it is gated
    "gated-silu": ("silu", True),
}
"""feed_forward_proj of config.json -> activation, gated."""


def read_sizes(values: Mapping[str, Any]) -> EncoderDecoderConfig:
    """A model of the sizes of a config.json, with any output.

    Raises:
        ValueError: a feed-forward that is none of T5, or attributes that contradict each other.
    """
    projection = values["feed_forward_proj"]
    if projection not in _PROJECTIONS:
        raise ValueError(f"feed_forward_proj is {projection!r}; possible are {', '.join(_PROJECTIONS)}")
    activation, gated = _PROJECTIONS[projection]
    said = values["dense_act_fn"], values["is_gated_act"]
    if said[0] not in (None, config_map.ACTIVATIONS[activation]) or said[1] not in (None, gated):
        raise ValueError(f"feed_forward_proj is {projection!r}, but dense_act_fn and is_gated_act are {said}")
    return t5(
        num_layers=values["num_layers"],
        num_decoder_layers=values["num_decoder_layers"],
        d_model=values["d_model"],
        num_heads=values["num_heads"],
        head_dim=values["d_kv"],
        d_ff=values["d_ff"],
        activation=activation,
        gated=gated,
        dropout=float(values["dropout_rate"]),
        vocab_size=values["vocab_size"],
        num_buckets=values["relative_attention_num_buckets"],
        max_distance=values["relative_attention_max_distance"],
        eps=values["layer_norm_epsilon"],
    )


def class_name(values: Mapping[str, Any]) -> str:
    """The class of transformers that wrote a config.json; "" where it does not say."""
    return (values["architectures"] or ("",))[0]


def read_output(values: Mapping[str, Any], names: frozenset[str]) -> LanguageModelHead | None:
    """The output of a T5; None where the files hold a bare model whose output is not its embedding.

    Which output a T5 has is said by three things, because transformers 5 sets `tie_word_embeddings` to true whatever
    was asked for, and instead adds `scale_decoder_outputs`: an output of its own is one that is not scaled and whose
    tensor is there.

    Raises:
        ValueError: attributes that versions of transformers read differently.
    """
    tied, scaled = values["tie_word_embeddings"], values["scale_decoder_outputs"]
    if not tied and scaled:
        raise ValueError(
            "tie_word_embeddings is false and scale_decoder_outputs true, which transformers 4 and 5 read differently"
        )
    has_own = "lm_head.weight" in names
    if class_name(values).endswith("T5Model") and not has_own and (not tied or scaled is False):
        return None
    has_own = not tied or (scaled is False and has_own)
    return LanguageModelHead(tied=not has_own, scale_by_width=not has_own and scaled is not False)


def read_head(
    config: EncoderDecoderConfig,
    values: Mapping[str, Any],
    output: Callable[[], LanguageModelHead | None],
    *,
    name: str = "T5",
) -> Config:
    """The model with the head that the class of a config.json has; `output` tells which language model head it is."""
    request = labels.request(values)
    if request is not None:
        return HEAD_FIELDS.read(with_head(config, request, name=name), values)
    if class_name(values).endswith("EncoderModel"):
        return EncoderConfig(embed=config.embed, stack=config.encoder, family=config.family)
    return dataclasses.replace(config, head=output())


def _from_hf(values: Mapping[str, Any], names: frozenset[str]) -> Config:
    """The config of a T5's config.json."""
    return read_head(read_sizes(values), values, lambda: read_output(values, names))


def encoder_of(config: Any) -> StackConfig:
    """The encoder's stack of a model that may be T5's.

    Raises:
        InexpressibleError: it has none.
    """
    if not isinstance(config, EncoderDecoderConfig | EncoderConfig):
        raise config_map.InexpressibleError("it has no encoder")
    return config.stack if isinstance(config, EncoderConfig) else config.encoder


def shared_attributes(config: Config, position: Any) -> dict[str, Any]:
    """The attributes that the families of T5's shape give the same names.

    Args:
        config: of the model.
        position: that of the encoder.

    Raises:
        InexpressibleError: no class of this shape is so.
    """
    encoder, head = encoder_of(config), config.head
    block = encoder.blocks[0]
    if not isinstance(position, T5Bias):
        raise config_map.InexpressibleError("its encoder has no T5 bias where the family has it")
    form = (block.feed_forward.activation, block.feed_forward.gated)
    projection = next((name for name, known in _PROJECTIONS.items() if known == form), None)
    if projection is None:
        raise config_map.InexpressibleError(f"no feed_forward_proj means activation and gated = {form}")
    has_decoder = isinstance(config, EncoderDecoderConfig)
    attributes = {
        "vocab_size": config.vocab_size,
        "d_model": config.d_model,
        "d_kv": block.attention.head_dim,
        "d_ff": block.feed_forward.d_ff,
        "num_layers": encoder.num_layers,
        "num_decoder_layers": config.decoder.num_layers if has_decoder else encoder.num_layers,
        "num_heads": block.attention.num_heads,
        "relative_attention_num_buckets": position.num_buckets,
        "relative_attention_max_distance": position.max_distance,
        "dropout_rate": float(block.dropout),
        "layer_norm_epsilon": float(block.norm.eps),
        "feed_forward_proj": projection,
        "dense_act_fn": config_map.ACTIVATIONS[form[0]],
        "is_gated_act": form[1],
        "is_encoder_decoder": has_decoder,
        "tie_word_embeddings": True,
        "initializer_factor": 1.0,
        "use_cache": has_decoder,
        **labels.attributes(config),
    }
    if isinstance(head, ClassificationHead):
        return {**attributes, **HEAD_FIELDS.written(config)}
    if not isinstance(head, LanguageModelHead):
        return {**attributes, "scale_decoder_outputs": False}
    if head.tied != head.scale_by_width:
        raise config_map.InexpressibleError(
            "its output is tied but not scaled, or scaled but not tied, which transformers 4 and 5 read differently"
        )
    return {**attributes, "tie_word_embeddings": head.tied, "scale_decoder_outputs": head.scale_by_width}


def architecture(config: Config, *, prefix: str) -> str:
    """The name of transformers' class; `prefix` begins the names of the family's classes.

    Raises:
        InexpressibleError: there is none.
    """
    if isinstance(config.head, ClassificationHead):
        return labels.architecture(config.head, prefix=prefix, endings={"choice": ""})
    if isinstance(config.head, LanguageModelHead):
        return f"{prefix}ForConditionalGeneration"
    if config.head is not None:
        raise config_map.InexpressibleError("it has a head of masked words, which no class of its family has")
    return f"{prefix}EncoderModel" if isinstance(config, EncoderConfig) else f"{prefix}Model"


FAMILY = config_map.Family(
    model_type="t5",
    presets=PRESETS,
    table=TABLE,
    attributes=ATTRIBUTES,
    from_hf=_from_hf,
    to_hf=lambda config: shared_attributes(config, encoder_of(config).position),
    architecture=functools.partial(architecture, prefix="T5"),
    with_head=with_head,
    head_from_hf=HEAD_FIELDS.read,
    kept=HEAD_FIELDS.unused,
    has_base=has_base,
    ends=("eos",),
)
