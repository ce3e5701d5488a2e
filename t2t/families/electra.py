"""ELECTRA: a generator of words in place of masked ones, and a discriminator that finds the words it replaced.

    electra-small, electra-base, electra-large      discriminators: the encoder that is fine-tuned
    electra-small-generator                         as released: as large as the discriminator
    electra-small-generator-quarter                 as in the paper: a quarter of its width
    electra-base-generator, electra-large-generator

Both are BERTs without a pooler, whose tables may be narrower than the model. The head of pretraining tells them apart:
the generator's predicts masked words, the discriminator's says of each word whether it was replaced.

Reference: Clark et al., ELECTRA: Pre-training Text Encoders as Discriminators Rather Than Generators, arXiv:2003.10555,
and the released code and checkpoints of google-research/electra.

Differs: the activation is the exact GELU, as in transformers; Google's TensorFlow code has its tanh approximation.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from t2t import heads
from t2t.families import bert, labels
from t2t.hf import config_map
from t2t.hf.table import LINEAR, VECTOR, Entry, Table, linear_entries, norm_entries
from t2t.models.electra import ElectraConfig, Sharing
from t2t.models.encoder import EncoderConfig
from t2t.nn.classification import ClassificationHead
from t2t.nn.heads import MaskedLanguageModelHead

_NAME = "electra"
_SUMMARY_DROPOUT = 0.1
"""Before the classifier of choices: `summary_last_dropout` of transformers."""


def electra(*, d_model: int, embed_dim: int | None = None, **sizes: Any) -> EncoderConfig:
    """An encoder of any size, without a head: the sizes of `bert.bert`. Tables of full width have no layer behind."""
    embed_dim = None if embed_dim == d_model else embed_dim
    config = bert.bert(d_model=d_model, embed_dim=embed_dim, **sizes)
    return dataclasses.replace(config, pooler=False, family=_NAME)


def with_head(config: EncoderConfig, head: heads.Head | None) -> EncoderConfig:
    """The model with the head asked for. That of PRETRAINING is a generator's where the model has a generator's."""
    if head is None:
        return dataclasses.replace(config, head=None)
    block = config.stack.blocks[0]
    is_generator = isinstance(config.head, MaskedLanguageModelHead)
    if isinstance(head, heads.MaskedLM) or (head == heads.PRETRAINING and is_generator):
        dim = None if config.embed.d_model is None else config.embed.dim
        # The exact GELU, whatever the layers have.
        masked = MaskedLanguageModelHead(activation="gelu", norm=block.norm, dim=dim, **bert.INITIALIZER)
        return dataclasses.replace(config, head=masked)
    if head == heads.PRETRAINING:
        activation = block.feed_forward.activation
        replaced = ClassificationHead(task="replaced", num_labels=1, activation=activation, **bert.INITIALIZER)
        return dataclasses.replace(config, head=replaced)
    plain = {"dropout": block.dropout, **bert.INITIALIZER}
    scores = labels.make(
        head,
        family="ELECTRA",
        sequence={"pooling": "first", "activation": "gelu", "drops_input": True, **plain},
        choice={"pooling": "first", "activation": "gelu", **plain, "dropout": _SUMMARY_DROPOUT},
        tokens=plain,
        span={**plain, "dropout": 0.0},
    )
    return dataclasses.replace(config, head=scores)


def _discriminator(*, head: heads.Head | None = None, **sizes: Any) -> EncoderConfig:
    return with_head(electra(vocab_size=30522, **sizes), head)


def _generator(*, head: heads.Head | None = None, **sizes: Any) -> EncoderConfig:
    return with_head(_discriminator(head=heads.MaskedLM(), **sizes), head)


_SMALL = {"num_layers": 12, "d_model": 256, "num_heads": 4, "d_ff": 1024, "embed_dim": 128}
_BASE = {"num_layers": 12, "d_model": 768, "num_heads": 12, "d_ff": 3072}
_LARGE = {"num_layers": 24, "d_model": 1024, "num_heads": 16, "d_ff": 4096}


def pair(
    discriminator: EncoderConfig,
    *,
    generator_size: float = 0.25,
    generator_layers: float = 1.0,
    sharing: Sharing = "embeddings",
) -> ElectraConfig:
    """A discriminator with its head of pretraining, and a generator of its kind and of a part of its width.

    Args:
        discriminator: such as `PRESETS["electra-base"]()`.
        generator_size: width of the generator; its feed-forward layers are four times as wide, its heads 64 wide.
        generator_layers: its depth.
        sharing: see `ElectraConfig`.

    Reference: google-research/electra, get_generator_config; 1/4, 1/3 and 1/4 for small, base and large in table 6 of
        the paper (arXiv:2003.10555).
    """
    embed, stack = discriminator.embed, discriminator.stack
    width = round(generator_size * stack.d_model)
    block = stack.pattern[0]
    num_heads = max(1, width // 64)
    smaller = dataclasses.replace(
        block,
        attention=dataclasses.replace(block.attention, num_heads=num_heads, head_dim=width // num_heads),
        feed_forward=dataclasses.replace(block.feed_forward, d_ff=4 * width),
    )
    generator = dataclasses.replace(
        discriminator,
        embed=dataclasses.replace(embed, d_model=None if width == embed.dim else width),
        stack=dataclasses.replace(
            stack, d_model=width, num_layers=round(generator_layers * stack.num_layers), pattern=(smaller,)
        ),
    )
    if sharing == "all" or generator_size == generator_layers == 1.0:
        generator = discriminator
    return ElectraConfig(
        generator=with_head(dataclasses.replace(generator, head=None), heads.MaskedLM()),
        discriminator=with_head(discriminator, heads.PRETRAINING),
        sharing=sharing,
    )


PRESETS = {
    "electra-small": functools.partial(_discriminator, **_SMALL),
    "electra-base": functools.partial(_discriminator, **_BASE),
    "electra-large": functools.partial(_discriminator, **_LARGE),
    "electra-small-generator": functools.partial(_generator, **_SMALL),
    "electra-small-generator-quarter": functools.partial(
        _generator, **{**_SMALL, "d_model": 64, "num_heads": 1, "d_ff": 256}
    ),
    "electra-base-generator": functools.partial(
        _generator, num_layers=12, d_model=256, num_heads=4, d_ff=1024, embed_dim=768
    ),
    "electra-large-generator": functools.partial(
        _generator, num_layers=24, d_model=256, num_heads=4, d_ff=1024, embed_dim=1024
    ),
}

TABLE = Table(
    base="electra.",
    entries=(
        *bert.embed_entries("generator_lm_head"),
        *linear_entries("embed/projection", "{base}embeddings_project"),
        *bert.LAYERS,
        *linear_entries("head/transform", "generator_predictions.dense"),
        *norm_entries("head/norm", "generator_predictions.LayerNorm"),
        Entry("head/kernel", "generator_lm_head.weight", LINEAR),
        Entry("head/bias", "generator_lm_head.bias", VECTOR),
        *linear_entries("head/dense", "discriminator_predictions.dense", task="replaced"),
        *linear_entries("head/classifier", "discriminator_predictions.dense_prediction", task="replaced"),
        *linear_entries("head/dense", "classifier.dense", task="sequence"),
        *linear_entries("head/classifier", "classifier.out_proj", task="sequence"),
        *linear_entries("head/dense", "sequence_summary.summary", task="choice"),
        *linear_entries("head/classifier", "classifier", task="choice"),
        *linear_entries("head/classifier", "classifier", task="tokens"),
        *linear_entries("head/span", "qa_outputs"),
    ),
    ignored=bert.BUFFERS,
)

_CLASSIFIER = {"classifier_dropout": "dropout"}
HEAD_FIELDS = labels.HeadFields(
    {"sequence": _CLASSIFIER, "tokens": _CLASSIFIER, "choice": {"summary_last_dropout": "dropout"}}
)

ATTRIBUTES = dataclasses.replace(
    bert.ATTRIBUTES,
    read={
        **bert.ATTRIBUTES.read,
        "embedding_size": 128,
        "hidden_size": 256,
        "num_attention_heads": 4,
        "intermediate_size": 1024,
        "summary_last_dropout": _SUMMARY_DROPOUT,
    },
    fixed={
        **bert.ATTRIBUTES.fixed,
        "summary_type": ("first",),
        "summary_use_proj": (True,),
        "summary_activation": ("gelu",),
        "summary_first_dropout": (0, None),
        "summary_proj_to_labels": (False, None),
    },
    ignored=frozenset({"initializer_range"}),
)


def _from_hf(values: Mapping[str, Any], names: frozenset[str]) -> EncoderConfig:
    """The config of an ELECTRA's config.json; which of the two it is, the names of its tensors say."""
    config = bert.encoder_from_hf(
        values, embed_dim=None if values["embedding_size"] == values["hidden_size"] else values["embedding_size"]
    )
    config = dataclasses.replace(config, pooler=False, family=_NAME)
    if "generator_predictions.dense.weight" in names:
        config = with_head(config, heads.MaskedLM())
        head = dataclasses.replace(config.head, tied=values["tie_word_embeddings"])
        return dataclasses.replace(config, head=head)
    if "discriminator_predictions.dense.weight" in names:
        return with_head(config, heads.PRETRAINING)
    if (request := labels.request(values)) is None:
        return config
    return HEAD_FIELDS.read(with_head(config, request), values)


def _to_hf(config: Any) -> dict[str, Any]:
    attributes = bert.to_hf(config)
    return {
        **attributes,
        "embedding_size": config.embed.dim,
        "summary_type": "first",
        "summary_use_proj": True,
        "summary_activation": "gelu",
        "summary_last_dropout": _SUMMARY_DROPOUT,
        **HEAD_FIELDS.written(config),
    }


def _architecture(config: EncoderConfig) -> str:
    if config.pooler:
        raise config_map.InexpressibleError("it has a pooler")
    if config.head is None:
        return "ElectraModel"
    if isinstance(config.head, ClassificationHead):
        return labels.architecture(config.head, prefix="Electra", endings={"replaced": "ForPreTraining"})
    if config.head.next_sentence:
        raise config_map.InexpressibleError("it has a next-sentence classifier")
    return "ElectraForMaskedLM"


FAMILY = config_map.Family(
    model_type=_NAME,
    refused={"ElectraForCausalLM": labels.CAUSAL},
    presets=PRESETS,
    table=TABLE,
    attributes=ATTRIBUTES,
    from_hf=_from_hf,
    to_hf=_to_hf,
    architecture=_architecture,
    with_head=with_head,
    head_from_hf=HEAD_FIELDS.read,
    kept=HEAD_FIELDS.unused,
    starts=("bos",),
    ends=("eos",),
    input_names=("input_ids", "token_type_ids", "attention_mask"),
)
