"""The pieces of a run: shapes with shardings that allocate nothing, converters by architecture, sizes that agree."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from t2t.data import features
from t2t.errors import UsageError
from t2t.families import xlm
from t2t.functional.kernels import choice
from t2t.models import base
from t2t.nn.positions.absolute import LearnedPositions
from t2t.objectives.language_modeling import LanguageModeling
from t2t.objectives.masked import MaskedLanguageModeling
from t2t.objectives.sentence_pairs import SentencePairModeling
from t2t.train import build
from t2t.train.schedules import Constant
from t2t.vocabulary import ByteVocabulary
from tests.models import tiny
from tests.train import tiny_run

BART = dataclasses.replace(
    tiny.t5(), embed=dataclasses.replace(tiny.t5().embed, position=LearnedPositions(max_positions=16))
)


def test_the_state_is_shapes_on_the_mesh():
    experiment = tiny_run.experiment(mesh={"data": 2, "fsdp": 2, "tensor": 2})
    pieces = build.build(experiment, ByteVocabulary())
    leaves = jax.tree.leaves(pieces.state)
    assert all(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in leaves)
    assert sum(leaf.size for leaf in jax.tree.leaves(pieces.state.params)) == base.count_parameters(experiment.model)
    table = pieces.state.params["model"]["embed"]["embedding"]
    assert tuple(table.sharding.spec) == ("tensor", "fsdp")
    assert jax.tree.structure(pieces.shardings) == jax.tree.structure(pieces.state)
    assert "15,584 parameters, float32" in build.summary(pieces)


@pytest.mark.parametrize(
    ("model", "converter"),
    [
        (tiny.t5(), features.EncoderDecoderFeatures),
        (tiny.prefix_lm(), features.PrefixLMFeatures),
        (tiny.gpt2(), features.DecoderFeatures),
        (tiny.bert(), features.EncoderFeatures),
    ],
)
def test_the_converter_follows_the_architecture(model, converter):
    lengths = {"inputs": 8, "targets": 8}
    extra = {"predictions": 3} if converter is features.EncoderFeatures else {}
    experiment = tiny_run.experiment(model=model, data={"lengths": lengths | extra})
    made = build.make_converter(experiment, ByteVocabulary())
    assert type(made) is converter
    assert made.lengths == lengths
    assert getattr(made, "predictions", 3) == 3


def test_an_encoder_reads_types_and_languages_if_it_has_them_and_labels_if_they_are_learned():
    def made(model, objective):
        experiment = tiny_run.experiment(model=model, objective=objective, data={"lengths": {"inputs": 8}})
        return build.make_converter(experiment, ByteVocabulary())

    plain = made(tiny.bert(), MaskedLanguageModeling())
    assert (plain.num_types, plain.num_languages, plain.next_sentence) == (2, 0, False)
    assert made(tiny.bert(), SentencePairModeling()).next_sentence
    with pytest.raises(UsageError, match=r"no next-sentence classifier.*head=heads.PRETRAINING"):
        made(tiny.bert(next_sentence=False), SentencePairModeling())
    speaker = xlm.xlm(num_layers=1, d_model=8, num_heads=2, vocab_size=300, num_languages=5)
    assert made(speaker, MaskedLanguageModeling()).num_languages == 5


@pytest.mark.parametrize(("model", "extra"), [(tiny_run.model(), "predictions"), (tiny.bert(), "input")])
def test_lengths_that_nothing_reads_are_refused(model, extra):
    experiment = tiny_run.experiment(model=model, data={"lengths": {"inputs": 8, "targets": 8, extra: 3}})
    with pytest.raises(UsageError, match=f"data.lengths has {extra}; possible are inputs, targets"):
        build.make_converter(experiment, ByteVocabulary())


def test_sizes_that_do_not_go_together_are_refused():
    small = tiny_run.experiment(model=tiny_run.model(vocab_size=100))
    with pytest.raises(UsageError, match="100 embedding rows and the vocabulary 360 ids"):
        build.build(small, ByteVocabulary())
    with pytest.raises(UsageError, match="batch_size=6"):
        build.build(tiny_run.experiment(data={"batch_size": 6}), ByteVocabulary())
    with pytest.raises(UsageError, match="mesh"):
        build.build(tiny_run.experiment(mesh={"data": 3}), ByteVocabulary())


@pytest.mark.parametrize(
    ("model", "objective", "lengths", "said"),
    [
        (tiny.bert(), MaskedLanguageModeling(), {"inputs": 17, "targets": 17}, r"17 tokens \(inputs\)"),
        (tiny.gpt2(), LanguageModeling(), {"targets": 17}, r"17 tokens \(targets\)"),
        (tiny.gpt2(), LanguageModeling(), {"inputs": 9, "targets": 8}, r"17 tokens \(inputs and targets\)"),
        (BART, LanguageModeling(), {"inputs": 17, "targets": 4}, r"17 tokens \(inputs\)"),
        (BART, LanguageModeling(), {"inputs": 4, "targets": 17}, r"17 tokens \(targets\)"),
    ],
)
def test_rows_longer_than_the_positions_of_the_model_are_refused(model, objective, lengths, said):
    def experiment(lengths):
        return tiny_run.experiment(model=at_size(model), objective=objective, data={"lengths": lengths})

    with pytest.raises(UsageError, match=f"{said}, but the model has 16 positions"):
        build.build(experiment(lengths), ByteVocabulary())
    build.build(experiment({name: min(length, 8) for name, length in lengths.items()}), ByteVocabulary())


def at_size(model):
    """The model with an embedding for bytes."""
    return dataclasses.replace(model, embed=dataclasses.replace(model.embed, vocab_size=384))


def test_an_objective_that_the_batches_do_not_serve_is_refused():
    masked = tiny_run.experiment(objective=MaskedLanguageModeling())
    with pytest.raises(UsageError, match="'encoder_loss_weights', which no batch of a EncoderDecoderConfig holds"):
        build.build(masked, ByteVocabulary())
    causal = tiny_run.experiment(model=at_size(tiny.bert()), data={"lengths": {"inputs": 8, "targets": 8}})
    with pytest.raises(UsageError, match="'decoder_loss_weights', which no batch of a EncoderConfig holds"):
        build.build(causal, ByteVocabulary())


@pytest.mark.parametrize(
    ("field", "value", "possible"),
    [
        ("model", None, "an EncoderConfig"),
        ("objective", None, "an objective of t2t.objectives"),
        ("objective", LanguageModeling, "an objective of t2t.objectives"),
        ("optimizer", Constant(peak=1e-2), "Adafactor, AdamW or LAMB"),
    ],
)
def test_parts_of_another_kind_are_refused(field, value, possible):
    experiment = dataclasses.replace(tiny_run.experiment(), **{field: value})
    with pytest.raises(UsageError, match=f"{field} is .*; it must be {possible}"):
        build.build(experiment, ByteVocabulary())


def test_activations_are_float32_on_a_cpu_unless_asked_for():
    assert build.compute_dtype("auto") is jnp.float32
    assert build.compute_dtype("bfloat16") is jnp.bfloat16.dtype.type
    assert jnp.dtype(build.compute_dtype("float32")) == jnp.float32


def test_decoders_start_with_bos_else_padding():
    def with_ids(bos_id, pad_id, eos_id):
        vocabulary = ByteVocabulary()
        vocabulary.bos_id, vocabulary.pad_id, vocabulary.eos_id = bos_id, pad_id, eos_id
        return vocabulary

    assert build.start_id(with_ids(5, 0, 1)) == 5
    assert build.start_id(with_ids(None, 0, 1)) == 0
    assert build.start_id(with_ids(None, None, 9)) == 9
    with pytest.raises(UsageError, match="no bos, pad or eos"):
        build.start_id(with_ids(None, None, None))


def test_kernels_of_devices_that_are_not_there_are_refused():
    experiment = tiny_run.experiment(train={"attention": "splash"})
    with pytest.raises(UsageError, match="'splash', which runs on a TPU, and this is a CPU: possible are reference"):
        build.build(experiment, ByteVocabulary())


def test_a_run_says_what_computes_its_attention(monkeypatch):
    """On a machine that says it is a TPU; nothing is compiled."""
    monkeypatch.setattr(build, "platform_of", lambda devices: "tpu")
    monkeypatch.setattr(choice, "SHORT", 0)
    model = tiny.t5(dropout=0.0)
    wide = dataclasses.replace(model, embed=dataclasses.replace(model.embed, vocab_size=360))
    experiment = dataclasses.replace(tiny_run.experiment(), model=wide)
    pieces = build.build(experiment, ByteVocabulary())
    assert "; attention by flash in encoder/layers_0/attention" in build.summary(pieces)
    assert "splash in decoder/layers_0/cross_attention" in pieces.attention
    asked = dataclasses.replace(experiment, train=dataclasses.replace(experiment.train, attention="splash"))
    with pytest.raises(UsageError, match="encoder/layers_0/attention cannot be computed .*splash cannot add a bias"):
        build.build(asked, ByteVocabulary())


def test_a_run_on_a_cpu_says_nothing_of_attention():
    assert "attention" not in build.summary(build.build(tiny_run.experiment(), ByteVocabulary()))
