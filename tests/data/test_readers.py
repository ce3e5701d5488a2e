"""Which model reads a task, and that its converter takes the examples."""

import numpy as np
import pytest

from t2t import vocabulary as vocabularies
from t2t.data import features, permutation_features, readers
from t2t.errors import UsageError

LENGTHS = {"inputs": 8, "targets": 8}
IDS = np.arange(3, dtype=np.int32)


def make(reader, names, *, lengths=LENGTHS, **more):
    example = {name: IDS for name in names} | more
    return readers.make_converter(reader, example=example, lengths=lengths, vocabulary=vocabularies.ByteVocabulary())


@pytest.mark.parametrize(
    ("names", "reader"),
    [
        (["targets"], "decoder"),
        (["inputs", "targets"], "encoder-decoder"),
        (["inputs", "targets", "weights"], "encoder"),
        (["inputs", "targets", "next_sentence_labels"], "encoder"),
        (["inputs", "targets", "weights", "order", "token_types"], "permutation"),
    ],
)
def test_usual_readers(names, reader):
    assert readers.usual_reader(names) == reader


def test_every_reader_has_its_converter():
    assert type(make("encoder-decoder", ["inputs", "targets"])) is features.EncoderDecoderFeatures
    assert type(make("prefix-lm", ["inputs", "targets"])) is features.PrefixLMFeatures
    assert make("decoder", ["inputs", "targets"]).reads == ("inputs", "targets")
    assert make("decoder", ["targets"]).reads == ("targets",)
    encoder = make("encoder", ["inputs", "targets", "weights", "token_types"], next_sentence_labels=np.int32(1))
    assert encoder.num_types == readers.MANY and encoder.num_languages == 0 and encoder.next_sentence
    made = make("permutation", ["inputs", "order"], reuse=np.array([4]), reversed=np.array([0]))
    assert type(made) is permutation_features.PermutationFeatures
    assert (made.predictions, made.reuse, made.bidirectional, made.one_a_row) == (8, 4, True, True)


def test_lengths_that_a_reader_cannot_have():
    with pytest.raises(
        UsageError,
        match="a model of the kind encoder cannot read this: inputs and targets of an encoder have one length",
    ):
        make("encoder", ["inputs", "targets"], lengths={"inputs": 8, "targets": 4})
    with pytest.raises(UsageError, match="lacks \\['targets'\\]"):
        make("prefix-lm", ["inputs", "targets"], lengths={"inputs": 8})
