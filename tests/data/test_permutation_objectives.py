"""Registering permutation language modelling: `t2t.data.permutation_objectives`."""

import numpy as np
import seqio

from t2t.data import pipeline, registry
from t2t.data.permutation_features import PermutationFeatures
from t2t.data.permutation_objectives import add_permutation_lm
from tests.data import toy

VOCABULARY = toy.word_vocabulary("[PAD]", "[UNK]", "[CLS]", "[SEP]", *toy.words(200))


def source() -> registry.TextSource:
    documents = [{"text": " ".join(toy.words(200)[start : start + 20])} for start in range(0, 200, 20)]
    return registry.TextSource(lambda split: documents, splits=("train",))


def test_the_tasks_and_what_a_memory_reads():
    names = add_permutation_lm("books", source())
    assert names == tuple(f"books_permutation_lm{end}" for end in ("", "_forward", "_backward", "_bidirectional"))
    converter = PermutationFeatures(
        lengths={"inputs": 16, "targets": 16}, predictions=2, reuse=8, bidirectional=True, one_a_row=True
    )
    stream = pipeline.load_stream(names[-1], vocabulary=VOCABULARY, converter=converter, seed=0, contiguous=4)
    lanes = pipeline.TrainPipeline(stream, rows=4)
    batches = [next(lanes) for _ in range(3)]
    assert [batch["encoder_reversed"].tolist() for batch in batches] == [batches[0]["encoder_reversed"].tolist()] * 3
    assert sorted(batches[0]["encoder_reversed"].tolist()) == [0, 0, 1, 1]
    for batch in batches:
        assert (batch["encoder_predict_weights"].sum(-1) == 2).all()
    for row in range(4):
        texts = [batch["encoder_input_tokens"][row, :14] for batch in batches]
        step = -1 if batches[0]["encoder_reversed"][row] else 1
        for text, later in zip(texts, texts[1:], strict=False):
            np.testing.assert_array_equal(np.diff(text), step)
            assert later[0] - text[7] == step  # the next window begins behind the 8 tokens that are remembered
    for name in names[:3]:
        seqio.TaskRegistry.remove(name)
    seqio.MixtureRegistry.remove(names[-1])


def test_plain_examples_for_a_model_without_a_memory():
    name = add_permutation_lm("letters", source())[0]
    converter = PermutationFeatures(lengths={"inputs": 16, "targets": 16}, predictions=2)
    stream = pipeline.load_stream(name, vocabulary=VOCABULARY, converter=converter, seed=0)
    batch = next(pipeline.TrainPipeline(stream, rows=5))
    assert batch["permutation_mask"].shape == (5, 16, 16)
    assert batch["encoder_loss_weights"].sum() == batch["encoder_predict_weights"].sum() > 0
    assert "encoder_reversed" not in batch
