"""What the three topologies share: reading a batch and refusing parts that do not fit together."""

import dataclasses
from typing import Any

import jax.numpy as jnp
from jax import Array

from t2t.functional import positions
from t2t.models.base import Output
from t2t.nn.classification import ClassificationHeadModule
from t2t.nn.embed import EmbedConfig
from t2t.nn.mask_decoder import MaskDecoderConfig
from t2t.nn.stack import StackConfig, StackOutput


@dataclasses.dataclass(frozen=True)
class Side:
    """One side of a batch: tokens [B, T] and what belongs to them, None where absent."""

    tokens: Array
    segment_ids: Array | None
    positions: Array | None
    types: Array | None
    languages: Array | None = None

    @property
    def length(self) -> int:
        """T."""
        return self.tokens.shape[1]


def read_side(batch: dict[str, Array], side: str, *, only_side: bool) -> Side:
    """The arrays of "encoder" or "decoder"; `token_types` without a side is read where there is only one."""
    key = f"{side}_input_tokens"
    if key not in batch:
        raise ValueError(f"batch has no {key!r}: this model reads it; the keys given are {sorted(batch)}.")
    types = batch.get(f"{side}_token_types")
    if types is None and only_side:
        types = batch.get("token_types")
    return Side(
        tokens=batch[key],
        segment_ids=batch.get(f"{side}_segment_ids"),
        positions=batch.get(f"{side}_positions"),
        types=types,
        languages=batch.get(f"{side}_language_ids"),
    )


def absolute_positions(side: Side, embed: EmbedConfig | MaskDecoderConfig) -> Array | None:
    """Positions for a table of them, where there is one: given, or counted from 0 within each segment."""
    if embed.position is None:
        return None
    if side.positions is not None:
        return side.positions
    if side.segment_ids is not None:
        return positions.segment_positions(side.segment_ids)
    check_length(side.length, embed)
    return jnp.arange(side.length, dtype=jnp.int32)[None]


def check_length(length: int, embed: EmbedConfig | MaskDecoderConfig) -> None:
    """Refuses more positions than the table of positions has."""
    if embed.position is not None and length > embed.position.max_positions:
        raise ValueError(
            f"length {length} is more than LearnedPositions.max_positions = {embed.position.max_positions}:"
            " shorten the input, or build the model with more positions."
        )


def check_widths(config: Any, **stacks: StackConfig) -> None:
    """Refuses a model whose embedding and stacks differ in width."""
    for name, stack in stacks.items():
        if stack.d_model != config.embed.width:
            given = "dim" if config.embed.d_model is None else "d_model"
            raise ValueError(
                f"{type(config).__name__}.{name}.d_model = {stack.d_model}: must equal embed.{given} ="
                f" {config.embed.width}. Set both to the same width."
            )


def check_cross_attention(config: Any, name: str, stack: StackConfig, *, expected: bool) -> None:
    """Refuses blocks that read an encoder where there is none, or do not where there is one."""
    for block in stack.blocks:
        if (block.cross_attention is not None) != expected:
            verb = "must have" if expected else "cannot have"
            raise ValueError(
                f"{type(config).__name__}.{name}: its blocks {verb} cross_attention, got {block.cross_attention!r}."
                f" Set BlockConfig.cross_attention={'AttentionConfig(...)' if expected else 'None'}."
            )


def stack_options(config: StackConfig, remat: str | None) -> StackConfig:
    """The stack with another rematerialisation, where one is given."""
    return config if remat is None else dataclasses.replace(config, remat=remat)


def with_label_scores(
    output: Output, head: Any, segment_ids: Array | None, *, choices: int | None, deterministic: bool
) -> Output:
    """The output with the scores of a head of labels; other heads, and none, leave it as it is."""
    if not isinstance(head, ClassificationHeadModule):
        return output
    if (choices is None) == (head.config.task == "choice"):
        given = "no axis of choices" if choices is None else f"{choices} choices for each text"
        raise ValueError(
            f"the batch has {given}, but the head's task is {head.config.task!r}: arrays of a multiple choice head are"
            " [batch, choices, length], of all others [batch, length]."
        )
    scores = head(output.last_hidden, pooled=output.pooled, segment_ids=segment_ids, deterministic=deterministic)
    if choices is not None:
        scores = {"logits": scores["logits"].reshape(-1, choices)}
    return dataclasses.replace(output, **scores)


def stack_results(output: StackOutput) -> dict[str, Any]:
    """A stack's results by the names of `Output`."""
    return {
        "last_hidden": output.last_hidden,
        "hidden_states": output.hidden_states,
        "attentions": output.attentions,
    }
