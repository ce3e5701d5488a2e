"""XLM: encoders of many languages, pretrained on masked words of texts and of pairs of translations.

    xlm-mlm-tlm-xnli15-1024    15 languages, each with an embedding that is added to its tokens; texts and translations
    xlm-mlm-100-1280           100 languages, without such embeddings; texts alone

The ids of languages are the batch's `encoder_language_ids`; without them no embedding is added. The second text of a
pair of translations counts its positions from 0 again: give `encoder_positions`.

Reference: Lample and Conneau, Cross-lingual Language Model Pretraining, arXiv:1901.07291, and facebookresearch/XLM.

Differs: positions that begin as sines and cosines (`sinusoidal_embeddings`) are trained then, as in transformers 5; the
authors' code keeps them. Kernels begin as in transformers, with a deviation of 0.02; the authors' keep torch's uniform
distribution. Scores of padding are those of states that transformers sets to zero. A text among several is projected to
two values and these to its score, as in transformers, which drops the text's state alone and not these as well. The
head of answers that looks for the end given the start (XLMForQuestionAnswering) is not here.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from t2t import heads
from t2t.families import labels
from t2t.hf import config_map
from t2t.hf.table import LINEAR, MATRIX, VECTOR, Entry, Ignored, Table, linear_entries, norm_entries
from t2t.models.encoder import EncoderConfig
from t2t.nn.attention import AttentionConfig
from t2t.nn.block import BlockConfig
from t2t.nn.classification import ClassificationHead
from t2t.nn.embed import EmbedConfig
from t2t.nn.feed_forward import Activation, FeedForwardConfig
from t2t.nn.heads import LanguageModelHead
from t2t.nn.norm import LayerNorm
from t2t.nn.positions.absolute import LearnedPositions, PositionInitializer
from t2t.nn.stack import StackConfig

INITIALIZER_STD = 0.02
"""Of kernels; tables begin with d_model**-0.5."""


def xlm(
    *,
    num_layers: int,
    d_model: int,
    num_heads: int,
    vocab_size: int,
    num_languages: int = 0,
    max_positions: int = 512,
    positions: PositionInitializer = "random",
    activation: Activation = "gelu",
    dropout: float = 0.1,
    attention_dropout: float = 0.1,
    eps: float = 1e-12,
) -> EncoderConfig:
    """An XLM of any size, without a head; its feed-forward is four times as wide as the model."""
    norm = LayerNorm(eps=eps)
    block = BlockConfig(
        norm=norm,
        norm_position="post",
        attention=AttentionConfig(
            num_heads=num_heads,
            head_dim=d_model // num_heads,
            use_bias=True,
            dropout=attention_dropout,
            initializer_std=INITIALIZER_STD,
        ),
        feed_forward=FeedForwardConfig(
            d_ff=4 * d_model, activation=activation, use_bias=True, initializer_std=INITIALIZER_STD
        ),
        dropout=dropout,
    )
    return EncoderConfig(
        embed=EmbedConfig(
            vocab_size=vocab_size,
            dim=d_model,
            num_languages=num_languages,
            position=LearnedPositions(max_positions=max_positions, initializer=positions),
            norm=norm,
            dropout=dropout,
            initializer_std=d_model**-0.5,
        ),
        stack=StackConfig(num_layers=num_layers, d_model=d_model, pattern=(block,)),
        family="xlm",
    )


def with_head(config: EncoderConfig, head: heads.Head | None) -> EncoderConfig:
    """The model with the head asked for; that of masked words is the token table with a bias."""
    if head is None:
        return dataclasses.replace(config, head=None)
    if isinstance(head, heads.Pretraining | heads.MaskedLM):
        return dataclasses.replace(config, head=LanguageModelHead(use_bias=True, initializer_std=INITIALIZER_STD))
    scores = labels.make(
        head,
        family="XLM",
        sequence={"pooling": "first", "dropout": 0.1},
        choice={"pooling": "first", "activation": "identity", "dense_dim": 2, "drops_input": True, "dropout": 0.1},
        tokens={"dropout": config.embed.dropout},
        span={"dropout": 0.0},
    )
    return dataclasses.replace(config, head=scores)


def _preset(*, head: heads.Head | None = None, **sizes: Any) -> EncoderConfig:
    return with_head(xlm(**sizes), head)


PRESETS = {
    "xlm-mlm-tlm-xnli15-1024": functools.partial(
        _preset, num_layers=12, d_model=1024, num_heads=8, vocab_size=95000, num_languages=15
    ),
    "xlm-mlm-100-1280": functools.partial(_preset, num_layers=16, d_model=1280, num_heads=16, vocab_size=200000),
}

TABLE = Table(
    base="transformer.",
    entries=(
        Entry("embed/embedding", "{base}embeddings.weight", MATRIX, copies=("pred_layer.proj.weight",)),
        Entry("embed/positions", "{base}position_embeddings.weight", MATRIX),
        Entry("embed/languages", "{base}lang_embeddings.weight", MATRIX),
        *norm_entries("embed/norm", "{base}layer_norm_emb"),
        *linear_entries("encoder/{i}/attention/query", "{base}attentions.{i}.q_lin"),
        *linear_entries("encoder/{i}/attention/key", "{base}attentions.{i}.k_lin"),
        *linear_entries("encoder/{i}/attention/value", "{base}attentions.{i}.v_lin"),
        *linear_entries("encoder/{i}/attention/out", "{base}attentions.{i}.out_lin", inputs=2),
        *norm_entries("encoder/{i}/attention_norm", "{base}layer_norm1.{i}"),
        *linear_entries("encoder/{i}/feed_forward/up", "{base}ffns.{i}.lin1"),
        *linear_entries("encoder/{i}/feed_forward/down", "{base}ffns.{i}.lin2"),
        *norm_entries("encoder/{i}/feed_forward_norm", "{base}layer_norm2.{i}"),
        Entry("head/kernel", "pred_layer.proj.weight", LINEAR),
        Entry("head/bias", "pred_layer.proj.bias", VECTOR),
        *linear_entries("head/classifier", "sequence_summary.summary", task="sequence"),
        *linear_entries("head/dense", "sequence_summary.summary", task="choice"),
        *linear_entries("head/classifier", "logits_proj", task="choice"),
        *linear_entries("head/classifier", "classifier", task="tokens"),
        *linear_entries("head/span", "qa_outputs"),
        *labels.unread(*(f"qa_outputs.{layer}" for layer in labels.BEAM_PARTS)),
    ),
    ignored=(Ignored("*position_ids", "a buffer holding 0, 1, 2, ... that old files contain"),),
)

ATTRIBUTES = config_map.Attributes(
    read={
        **labels.READ,
        "vocab_size": None,
        "n_words": None,
        "emb_dim": 2048,
        "n_layers": 12,
        "n_heads": 16,
        "dropout": 0.1,
        "attention_dropout": 0.1,
        "gelu_activation": True,
        "sinusoidal_embeddings": False,
        "n_langs": 1,
        "use_lang_emb": True,
        "max_position_embeddings": 512,
        "layer_norm_eps": 1e-12,
        "summary_first_dropout": 0.1,
        "tie_word_embeddings": True,
    },
    fixed={
        "causal": (False,),
        "asm": (False,),
        "is_encoder": (True,),
        "summary_type": ("first",),
        "summary_use_proj": (True,),
        "summary_proj_to_labels": (True,),
        "summary_activation": (None,),
    },
    # Special tokens, names of languages, how parameters begin, the authors' own notes, and settings of generation and
    # of the search for answers: with the ids given, no number depends on them.
    ignored=frozenset({
        "pad_index", "bos_index", "eos_index", "unk_index", "mask_index", "mask_token_id", "lang_id", "lang2id",
        "id2lang", "embed_init_std", "init_std", "max_vocab", "min_count", "same_enc_dec", "share_inout_emb",
        "start_n_top", "end_n_top",
    }),
)  # fmt: skip


_SUMMARY = labels.HeadFields({task: {"summary_first_dropout": "dropout"} for task in ("sequence", "choice")})
"""Of the heads that begin with what transformers calls a summary of the text."""


def _from_hf(values: Mapping[str, Any], names: frozenset[str]) -> EncoderConfig:
    """The config of an XLM's config.json; old ones call the size of the vocabulary `n_words`."""
    has_languages = values["use_lang_emb"] and values["n_langs"] > 1
    config = xlm(
        num_layers=values["n_layers"],
        d_model=values["emb_dim"],
        num_heads=values["n_heads"],
        vocab_size=values["vocab_size"] or values["n_words"] or 30145,
        num_languages=values["n_langs"] if has_languages else 0,
        max_positions=values["max_position_embeddings"],
        positions="sinusoidal" if values["sinusoidal_embeddings"] else "random",
        activation="gelu" if values["gelu_activation"] else "relu",
        dropout=float(values["dropout"]),
        attention_dropout=float(values["attention_dropout"]),
        eps=values["layer_norm_eps"],
    )
    if "pred_layer.proj.bias" in names:
        config = with_head(config, heads.MaskedLM())
        head = dataclasses.replace(config.head, tied=values["tie_word_embeddings"])
        return dataclasses.replace(config, head=head)
    request = labels.request(values)
    return config if request is None else _head_from_hf(with_head(config, request), values)


def _head_from_hf(config: EncoderConfig, values: Mapping[str, Any]) -> EncoderConfig:
    """The model whose head is as the attributes of config.json say."""
    config = _SUMMARY.read(config, values)
    if not _scores_choices(config):
        return config
    return dataclasses.replace(config, head=dataclasses.replace(config.head, dense_dim=labels.count(values)))


def _scores_choices(config: EncoderConfig) -> bool:
    return isinstance(config.head, ClassificationHead) and config.head.task == "choice"


def _kept(config: EncoderConfig) -> frozenset[str]:
    return _SUMMARY.unused(config) | {"lang2id", "id2lang", "lang_id"}


def _to_hf(config: Any) -> dict[str, Any]:
    if not isinstance(config, EncoderConfig):
        raise config_map.InexpressibleError("it is no encoder")
    block, embed, head = config.stack.blocks[0], config.embed, config.head
    if embed.position is None:
        raise config_map.InexpressibleError("it has no table of absolute positions")
    if block.feed_forward.activation not in ("gelu", "relu"):
        raise config_map.InexpressibleError("its activation is neither gelu nor relu")
    return {
        "vocab_size": config.vocab_size,
        "emb_dim": config.d_model,
        "n_layers": config.stack.num_layers,
        "n_heads": block.attention.num_heads,
        "dropout": float(block.dropout),
        "attention_dropout": float(block.attention.dropout),
        "gelu_activation": block.feed_forward.activation == "gelu",
        "sinusoidal_embeddings": embed.position.initializer == "sinusoidal",
        "n_langs": max(embed.num_languages, 1),
        "use_lang_emb": embed.num_languages > 1,
        "max_position_embeddings": embed.position.max_positions,
        "layer_norm_eps": float(block.norm.eps),
        "embed_init_std": float(embed.initializer_std),
        "init_std": INITIALIZER_STD,
        "causal": False,
        "asm": False,
        "is_encoder": True,
        "summary_type": "first",
        "summary_use_proj": True,
        "summary_proj_to_labels": True,
        "summary_activation": None,
        "summary_first_dropout": 0.1,
        **_SUMMARY.written(config),
        "tie_word_embeddings": getattr(head, "tied", True),
        **(labels.unnamed_attributes(head.dense_dim or config.d_model) if _scores_choices(config) else {}),
        **labels.attributes(config),
    }


def _architecture(config: EncoderConfig) -> str:
    if config.pooler:
        raise config_map.InexpressibleError("it has a pooler")
    if config.head is None:
        return "XLMModel"
    if isinstance(config.head, ClassificationHead):
        endings = {"span": "ForQuestionAnsweringSimple"}
        return labels.architecture(config.head, prefix="XLM", endings=endings)
    return "XLMWithLMHeadModel"


FAMILY = config_map.Family(
    model_type="xlm",
    refused={"XLMForQuestionAnswering": labels.BEAM},
    presets=PRESETS,
    table=TABLE,
    attributes=ATTRIBUTES,
    from_hf=_from_hf,
    to_hf=_to_hf,
    architecture=_architecture,
    with_head=with_head,
    head_from_hf=_head_from_hf,
    kept=_kept,
    published_ids={
        "pad_token_id": 2, "pad_index": 2, "bos_token_id": 0, "bos_index": 0, "eos_token_id": 1, "eos_index": 1,
        "unk_index": 3, "mask_index": 5,
    },
    starts=("bos",),
    ends=("eos",),
)  # fmt: skip
