"""The kinds of models that read a task, told by its features, for looking at examples without a config.

A config decides more than its examples do: T5 and a prefix language model read the same pairs. So a reader is what most
models of a task are, and anybody who looks may choose another.
"""

from collections.abc import Collection, Mapping
from typing import Literal, get_args

from t2t.data.features import Converter, DecoderFeatures, EncoderDecoderFeatures, EncoderFeatures, PrefixLMFeatures
from t2t.data.layout import Example
from t2t.data.permutation_features import PermutationFeatures
from t2t.errors import UsageError
from t2t.vocabulary import Vocabulary

Reader = Literal["encoder", "decoder", "prefix-lm", "encoder-decoder", "permutation"]
"""A kind of model: what it reads at once, and what it predicts."""

MANY = 2**30
"""More sentence types and languages than any task has."""


def usual_reader(features: Collection[str]) -> Reader:
    """The kind of model that most often reads examples with these features.

    >>> usual_reader(["targets"]), usual_reader(["inputs", "targets"]), usual_reader(["inputs", "targets", "weights"])
    ('decoder', 'encoder-decoder', 'encoder')
    """
    if "order" in features:
        return "permutation"
    if "weights" in features or "next_sentence_labels" in features:
        return "encoder"
    return "encoder-decoder" if "inputs" in features else "decoder"


def make_converter(
    reader: Reader, *, example: Example, lengths: Mapping[str, int], vocabulary: Vocabulary
) -> Converter:
    """From examples to the batches of a reader.

    Args:
        reader: the kind of model.
        example: one of those that are to be read.
        lengths: tokens of each feature in a row.
        vocabulary: of the tokens.

    Raises:
        UsageError: lengths that the reader cannot have, or a vocabulary without what it needs.
    """
    common = {"pad_id": vocabulary.pad_id or 0, "eos_id": vocabulary.eos_id}
    try:
        match reader:
            case "permutation":
                reuse = int(example["reuse"][0]) if "reuse" in example else None
                turned = "reversed" in example
                return PermutationFeatures(
                    lengths=lengths,
                    predictions=lengths.get("inputs"),
                    reuse=reuse,
                    bidirectional=turned,
                    one_a_row=turned or reuse is not None,
                    **common,
                )
            case "encoder":
                return EncoderFeatures(
                    lengths=lengths,
                    num_types=MANY if "token_types" in example else 0,
                    num_languages=MANY if "language_ids" in example else 0,
                    next_sentence="next_sentence_labels" in example,
                    **common,
                )
            case "decoder":
                if "inputs" not in example:
                    lengths = {name: length for name, length in lengths.items() if name != "inputs"}
                return DecoderFeatures(lengths=lengths, start_id=_start_id(vocabulary), **common)
            case "prefix-lm":
                return PrefixLMFeatures(lengths=lengths, start_id=_start_id(vocabulary), **common)
            case "encoder-decoder":
                return EncoderDecoderFeatures(lengths=lengths, start_id=_start_id(vocabulary), **common)
    except ValueError as error:
        raise UsageError(f"a model of the kind {reader} cannot read this: {error}") from error
    raise ValueError(f"reader={reader!r} must be one of {', '.join(get_args(Reader))}")


def _start_id(vocabulary: Vocabulary) -> int:
    if vocabulary.start_id is None:
        raise ValueError(f"{vocabulary!r} has no bos, pad or eos token for a decoder to start with")
    return vocabulary.start_id
