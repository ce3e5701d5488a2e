"""BART: encoder-decoders with learned positions and the norm after each residual, pretrained to restore noised text.

    bart-base, bart-large

The head of a text's labels reads the decoder's last state; the decoder is given the text of the encoder shifted right
by one, so that this is the state of transformers at the last end token.

Reference: Lewis et al., BART: Denoising Sequence-to-Sequence Pre-training for Natural Language Generation, Translation,
and Comprehension, arXiv:1910.13461; the sizes and rates of dropout are those of the published config.json.

Differs: whole blocks are never dropped (`encoder_layerdrop`; published models have 0). The bias of the output that
transformers keeps as a buffer, `final_logits_bias`, is a parameter where it is not zero, and else no part of the model.
A file of the bare BartModel, as the published ones are, is read with its output, which is the embedding.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

from t2t import heads
from t2t.families import labels
from t2t.hf import config_map
from t2t.hf.table import LINEAR, MATRIX, Entry, Ignored, Shape, Table, linear_entries, norm_entries
from t2t.models.encoder_decoder import EncoderDecoderConfig
from t2t.nn.attention import AttentionConfig
from t2t.nn.block import BlockConfig
from t2t.nn.embed import EmbedConfig
from t2t.nn.feed_forward import Activation, FeedForwardConfig
from t2t.nn.heads import LanguageModelHead
from t2t.nn.norm import LayerNorm
from t2t.nn.positions.absolute import LearnedPositions
from t2t.nn.stack import StackConfig

_STD = 0.02  # of every kernel and table: init_std of the published config.json
_OFFSET = 2  # row of position 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Side:
    """Sizes of an encoder or a decoder."""

    num_layers: int
    num_heads: int
    d_ff: int


def bart(
    *,
    encoder: Side,
    decoder: Side,
    d_model: int,
    vocab_size: int,
    max_positions: int = 1024,
    activation: Activation = "gelu",
    is_pre_norm: bool = False,
    scale: float = 1.0,
    dropout: float = 0.1,
    attention_dropout: float = 0.0,
    activation_dropout: float = 0.0,
) -> EncoderDecoderConfig:
    """A BART of any size, whose output is its embedding; mBART's norms come before each sublayer and at the end."""
    norm = LayerNorm(eps=1e-5)
    plain = {"use_bias": True, "initializer_std": _STD}

    def stack(side: Side, *, is_decoder: bool) -> StackConfig:
        heads_of = {"num_heads": side.num_heads, "head_dim": d_model // side.num_heads}
        attention = AttentionConfig(dropout=attention_dropout, **heads_of, **plain)
        block = BlockConfig(
            norm=norm,
            norm_position="pre" if is_pre_norm else "post",
            attention=attention,
            cross_attention=attention if is_decoder else None,
            feed_forward=FeedForwardConfig(d_ff=side.d_ff, activation=activation, dropout=activation_dropout, **plain),
            dropout=dropout,
        )
        final = norm if is_pre_norm else None
        return StackConfig(num_layers=side.num_layers, d_model=d_model, pattern=(block,), final_norm=final)

    embed = EmbedConfig(
        vocab_size=vocab_size,
        dim=d_model,
        position=LearnedPositions(max_positions=max_positions, offset=_OFFSET),
        scale=scale,
        norm=norm,
        dropout=dropout,
        initializer_std=_STD,
    )
    return EncoderDecoderConfig(
        embed=embed,
        decoder_embed=embed,
        encoder=stack(encoder, is_decoder=False),
        decoder=stack(decoder, is_decoder=True),
        head=LanguageModelHead(),
    )


def with_head(config: EncoderDecoderConfig, head: heads.Head | None, *, name: str = "BART") -> EncoderDecoderConfig:
    """The model with the head asked for; none, and that of pretraining, is the language model head.

    Raises:
        ValueError: a head that the family does not have.
    """
    if head in (None, heads.PRETRAINING):
        if isinstance(config.head, LanguageModelHead):
            return config
        return dataclasses.replace(config, head=LanguageModelHead(tied=config.shared_tokens))
    plain = {"initializer_std": _STD}
    pooled = {"pooling": "last", "activation": "tanh", "drops_input": True, **plain}
    if not isinstance(head, heads.Labels):
        raise ValueError(
            f"{name} has no head {head}; possible are None and PRETRAINING, both its language model head, and heads of "
            "labels for texts and answers"
        )
    scores = labels.make(head, family=name, sequence=pooled, span=plain)
    return dataclasses.replace(config, head=scores)


def preset(*, num_layers: int, num_heads: int, **sizes: Any) -> Callable[..., EncoderDecoderConfig]:
    """A function of `head` that returns the config of a published model, whose sides have equal sizes."""
    side = Side(num_layers=num_layers, num_heads=num_heads, d_ff=4 * sizes["d_model"])

    def config(*, head: heads.Head | None = None) -> EncoderDecoderConfig:
        return with_head(bart(encoder=side, decoder=side, **sizes), head)

    return config


_PUBLISHED = {"vocab_size": 50265, "attention_dropout": 0.1, "activation_dropout": 0.1}

PRESETS = {
    "bart-base": preset(num_layers=6, num_heads=12, d_model=768, **_PUBLISHED),
    "bart-large": preset(num_layers=12, num_heads=16, d_model=1024, **_PUBLISHED),
}


def _attention(ours: str, theirs: str) -> tuple[Entry, ...]:
    return (
        *linear_entries(f"{ours}/query", f"{theirs}.q_proj"),
        *linear_entries(f"{ours}/key", f"{theirs}.k_proj"),
        *linear_entries(f"{ours}/value", f"{theirs}.v_proj"),
        *linear_entries(f"{ours}/out", f"{theirs}.out_proj", inputs=2),
        *norm_entries(f"{ours}_norm", f"{theirs}_layer_norm"),
    )


def _side(side: str, *, embed: str) -> tuple[Entry, ...]:
    ours, theirs = f"{side}/{{i}}", f"{{base}}{side}.layers.{{i}}"
    return (
        Entry(f"{embed}/positions", f"{{base}}{side}.embed_positions.weight", MATRIX),
        *norm_entries(f"{embed}/norm", f"{{base}}{side}.layernorm_embedding"),
        *_attention(f"{ours}/attention", f"{theirs}.self_attn"),
        *_attention(f"{ours}/cross_attention", f"{theirs}.encoder_attn"),
        *linear_entries(f"{ours}/feed_forward/up", f"{theirs}.fc1"),
        *linear_entries(f"{ours}/feed_forward/down", f"{theirs}.fc2"),
        *norm_entries(f"{ours}/feed_forward_norm", f"{theirs}.final_layer_norm"),
        *norm_entries(f"{side}/final_norm", f"{{base}}{side}.layer_norm"),
    )


_BIAS = "final_logits_bias"
_ENCODER_TABLE, _DECODER_TABLE = "{base}encoder.embed_tokens.weight", "{base}decoder.embed_tokens.weight"

TABLE = Table(
    base="model.",
    entries=(
        Entry(
            "embed/embedding",
            "{base}shared.weight",
            MATRIX,
            copies=(_ENCODER_TABLE, _DECODER_TABLE, "lm_head.weight"),
            unless="decoder_embed/embedding",
        ),
        # Where the decoder has a table of its own, nothing reads the shared one, which transformers keeps all the same.
        Entry(
            "embed/embedding",
            _ENCODER_TABLE,
            MATRIX,
            copies=("{base}shared.weight",),
            copies_with="decoder_embed/embedding",
            copies_may_differ=True,
            needs="decoder_embed/embedding",
        ),
        Entry("decoder_embed/embedding", _DECODER_TABLE, MATRIX),
        *_side("encoder", embed="embed"),
        *_side("decoder", embed="decoder_embed"),
        Entry("head/kernel", "lm_head.weight", LINEAR),
        Entry("head/bias", _BIAS, LINEAR),  # [1, vocabulary]
        *linear_entries("head/dense", "classification_head.dense"),
        *linear_entries("head/classifier", "classification_head.out_proj"),
        *linear_entries("head/span", "qa_outputs"),
    ),
    ignored=(
        Ignored("*coder.version", "a number that files of fairseq hold"),
        Ignored(_BIAS, "zeros, which say nothing", where_zero=True),
    ),
)


def zeros(config: EncoderDecoderConfig) -> dict[str, Shape]:
    """The buffer of zeros that transformers' class has where ours has no bias of the output."""
    if not isinstance(config.head, LanguageModelHead) or config.head.use_bias:
        return {}
    return {_BIAS: (1, config.vocab_size)}


ATTRIBUTES = config_map.Attributes(
    read={
        **labels.READ,
        "vocab_size": 50265,
        "d_model": 1024,
        "encoder_layers": 12,
        "encoder_ffn_dim": 4096,
        "encoder_attention_heads": 16,
        "decoder_layers": 12,
        "decoder_ffn_dim": 4096,
        "decoder_attention_heads": 16,
        "max_position_embeddings": 1024,
        "activation_function": "gelu",
        "scale_embedding": False,
        "dropout": 0.1,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "classifier_dropout": 0.0,
        "tie_word_embeddings": True,
    },
    # Of files of transformers 2 and 3, but for the first.
    fixed={
        "is_decoder": (False,),
        "normalize_before": (False,),
        "add_final_layer_norm": (False,),
        "normalize_embedding": (True,),
        "static_position_embeddings": (False,),
        "add_bias_logits": (False,),
        "extra_pos_embeddings": (_OFFSET,),
    },
    # num_hidden_layers is another name of encoder_layers.
    ignored=frozenset({
        "init_std", "encoder_layerdrop", "decoder_layerdrop", "num_hidden_layers", "classif_dropout",
        "force_bos_token_to_be_generated",
    }),
)  # fmt: skip


HEAD_FIELDS = labels.HeadFields({"sequence": {"classifier_dropout": "dropout"}})


def read(
    values: Mapping[str, Any], names: frozenset[str], *, num_labels: int, name: str, **form: Any
) -> EncoderDecoderConfig:
    """The config of a config.json of BART's form.

    Args:
        values: of its attributes.
        names: of the tensors.
        num_labels: where the file says none.
        name: of the family, for messages.
        form: further arguments of `bart`.
    """
    sides = {
        side: Side(
            num_layers=values[f"{side}_layers"],
            num_heads=values[f"{side}_attention_heads"],
            d_ff=values[f"{side}_ffn_dim"],
        )
        for side in ("encoder", "decoder")
    }
    config = bart(
        **sides,
        d_model=values["d_model"],
        vocab_size=values["vocab_size"],
        max_positions=values["max_position_embeddings"],
        activation=config_map.activation(values["activation_function"]),
        scale=values["d_model"] ** 0.5 if values["scale_embedding"] else 1.0,
        dropout=float(values["dropout"]),
        attention_dropout=float(values["attention_dropout"]),
        activation_dropout=float(values["activation_dropout"]),
        **form,
    )
    tied = values["tie_word_embeddings"]
    # transformers 4 leaves both tables of an untied model out of its files, since there they are the shared one.
    shared = tied or "encoder.embed_tokens.weight" not in names
    head = LanguageModelHead(tied=tied, use_bias=_BIAS in names, initializer_std=None if tied else _STD)
    config = dataclasses.replace(config, shared_tokens=shared, head=head)
    request = labels.request(values, num_labels=num_labels)
    if request is None:
        return config
    return HEAD_FIELDS.read(with_head(config, request, name=name), values)


def attributes(config: Any) -> dict[str, Any]:
    """The attributes of a config.json of BART's form.

    Raises:
        InexpressibleError: no BART is so.
    """
    if not isinstance(config, EncoderDecoderConfig):
        raise config_map.InexpressibleError("it is no encoder-decoder")
    embed, head = config.embed, config.head
    if embed.position is None or config.decoder_embed is None:
        raise config_map.InexpressibleError("its two sides have no tables of absolute positions of their own")
    if isinstance(head, LanguageModelHead) and head.tied != config.shared_tokens:
        raise config_map.InexpressibleError(
            "of the encoder's table, the decoder's and the output some are one, which transformers has only of all"
        )
    found = {
        "vocab_size": config.vocab_size,
        "d_model": config.d_model,
        "max_position_embeddings": embed.position.max_positions,
        "scale_embedding": embed.scale != 1.0,
        "init_std": _STD,
        "is_encoder_decoder": True,
        "tie_word_embeddings": config.shared_tokens,
        "use_cache": True,
        **labels.attributes(config),
    }
    for side, stack in (("encoder", config.encoder), ("decoder", config.decoder)):
        block = stack.blocks[0]
        found |= {
            f"{side}_layers": stack.num_layers,
            f"{side}_attention_heads": block.attention.num_heads,
            f"{side}_ffn_dim": block.feed_forward.d_ff,
            f"{side}_layerdrop": 0.0,
            "activation_function": config_map.ACTIVATIONS[block.feed_forward.activation],
            "dropout": float(block.dropout),
            "attention_dropout": float(block.attention.dropout),
            "activation_dropout": float(block.feed_forward.dropout),
        }
    return {**found, **HEAD_FIELDS.written(config)}


def architecture(config: EncoderDecoderConfig, *, prefix: str) -> str:
    """The name of transformers' class; `prefix` begins the names of the family's classes.

    Raises:
        InexpressibleError: there is none.
    """
    if isinstance(config.head, LanguageModelHead):
        return f"{prefix}ForConditionalGeneration"
    if config.head is None:
        raise config_map.InexpressibleError("it has no head, and BART's output is its embedding")
    return labels.architecture(config.head, prefix=prefix, endings={"tokens": "", "choice": ""})


DECODER_ALONE = (
    "it is a decoder without its encoder, whose states no such model here does without; open the whole model, "
    "{}ForConditionalGeneration"
)
"""Why the classes that hold a decoder alone are not read."""

FAMILY = config_map.Family(
    model_type="bart",
    refused={"BartForCausalLM": DECODER_ALONE.format("Bart")},
    presets=PRESETS,
    table=TABLE,
    attributes=ATTRIBUTES,
    from_hf=functools.partial(read, num_labels=3, name="BART"),
    to_hf=attributes,
    architecture=functools.partial(architecture, prefix="Bart"),
    with_head=with_head,
    head_from_hf=HEAD_FIELDS.read,
    kept=HEAD_FIELDS.unused,
    zeros=zeros,
    published_ids={
        "pad_token_id": 1,
        "bos_token_id": 0,
        "eos_token_id": 2,
        "decoder_start_token_id": 2,
        "forced_eos_token_id": 2,
    },
    starts=("bos",),
    ends=("eos",),
    between=("eos",),
)
