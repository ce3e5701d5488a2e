"""The pieces of a run, from its config: models, optimizer, mesh, shapes of the state, converter. Allocates nothing."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh

from t2t import sharding
from t2t.config import Experiment
from t2t.data import features, permutation_features
from t2t.errors import UsageError
from t2t.functional.kernels import choice
from t2t.hf import frames
from t2t.models.base import Network
from t2t.models.decoder import DecoderConfig
from t2t.models.electra import ElectraConfig, check_discriminates
from t2t.models.encoder import EncoderConfig
from t2t.models.encoder_decoder import EncoderDecoderConfig
from t2t.models.two_stream import TwoStreamEncoderConfig
from t2t.objectives import base
from t2t.objectives.permutation import PermutationLanguageModeling
from t2t.objectives.replaced_tokens import ReplacedTokenDetection
from t2t.objectives.sentence_pairs import SentencePairModeling
from t2t.train import state as state_lib
from t2t.train import zero
from t2t.vocabulary import Vocabulary


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pieces:
    """What a run is made of."""

    experiment: Experiment
    vocabulary: Vocabulary
    mesh: Mesh
    models: Mapping[str, Network]
    """Networks by role."""
    optimizer: optax.GradientTransformation
    converter: features.Converter
    state: state_lib.TrainState
    """Shape, dtype and sharding of every array of the state, as `jax.ShapeDtypeStruct`s."""
    attention: str = ""
    """What computes the attention of the training step, by layer; empty where only the reference may."""

    @property
    def shardings(self) -> state_lib.TrainState:
        """The sharding of every array of the state."""
        return jax.tree.map(lambda leaf: leaf.sharding, self.state)


def build(experiment: Experiment, vocabulary: Vocabulary, *, devices: Sequence[Any] | None = None) -> Pieces:
    """The pieces of a run.

    Args:
        experiment: what to train.
        vocabulary: what its tokens are.
        devices: on which; None = all there are. They need not exist: a topology's do for compiling.

    Raises:
        UsageError: sizes that do not go together: batch and devices, vocabulary and embedding.
    """
    check_kinds(experiment)
    check_vocabulary(experiment, vocabulary)
    if isinstance(experiment.objective, base.KnowsVocabulary):
        experiment = dataclasses.replace(experiment, objective=experiment.objective.for_vocabulary(vocabulary))
    try:
        models = make_networks(experiment, devices)
        mesh = sharding.make_mesh(experiment.mesh, devices=devices)
        sharding.check_batch_size(experiment.data.batch_size, mesh, micro_batches=experiment.train.micro_batches)
        shapes = {role: network.shapes() for role, network in models.items()}
        axes = {role: network.logical_axes() for role, network in models.items()}
        optimizer = experiment.optimizer.make(shapes, axes, steps=experiment.train.steps)
        if experiment.mesh.zero:
            optimizer = zero.divide(optimizer, zero.shardings(shapes, axes, mesh))
        carry = jax.eval_shape(lambda: initial_carry(experiment, models))
        abstract = jax.eval_shape(lambda p, c: state_lib.init_state(p, optimizer, carry=c), shapes, carry)
        shardings = state_lib.state_shardings(
            abstract, axes, mesh, carry_axes=_carry_axes(experiment, carry), zero=experiment.mesh.zero
        )
        converter = make_converter(experiment, vocabulary)
        check_positions(experiment, converter)
        sharding.check_lengths(converter.convert([[]]), mesh)
        check_objective(experiment, converter)
        pieces = Pieces(
            experiment=experiment,
            vocabulary=vocabulary,
            mesh=mesh,
            models=models,
            optimizer=optimizer,
            converter=converter,
            state=jax.tree.map(_with_sharding, abstract, shardings),
        )
        return dataclasses.replace(pieces, attention=attention(pieces))
    except ValueError as error:
        raise UsageError(str(error)) from error


def make_networks(experiment: Experiment, devices: Sequence[Any] | None = None) -> dict[str, Network]:
    """The networks by role: `model`, or those of a pair.

    Raises:
        ValueError: a pair without the objective of pairs, or the other way round.
    """
    options = {
        "dtype": compute_dtype(experiment.train.dtype, devices),
        "remat": experiment.train.remat,
        "kernels": choice.of_setting(experiment.train.attention, platform=platform_of(devices)),
    }
    learns_pair = isinstance(experiment.objective, ReplacedTokenDetection)
    if isinstance(experiment.model, ElectraConfig) != learns_pair:
        raise ValueError(
            f"model is a {type(experiment.model).__name__} and objective a {type(experiment.objective).__name__}: an "
            "ElectraConfig and ReplacedTokenDetection go together"
        )
    if not learns_pair:
        return {"model": Network(experiment.model, **options)}
    check_discriminates(experiment.model.discriminator)
    if (experiment.model.generator is None) == (experiment.objective.replacements == "generator"):
        raise ValueError(
            f"objective.replacements is {experiment.objective.replacements!r} and model.generator "
            f"{'None' if experiment.model.generator is None else 'a model'}: give the model a generator exactly where "
            "the replacements are its samples"
        )
    return dict(experiment.model.networks(**options))


def reader(model: Any) -> Any:
    """The model that reads the batches of the data: of a pair, the generator."""
    return model.reader if isinstance(model, ElectraConfig) else model


def initial_carry(experiment: Experiment, models: Mapping[str, Network]) -> base.Carry:
    """What the objective takes from one batch to the next, before the first."""
    if not isinstance(experiment.objective, base.Recurrent) or _reads_pairs(experiment):
        return ()
    rows, micro_batches = experiment.data.batch_size, experiment.train.micro_batches
    return experiment.objective.initial_carry(models, rows=rows, micro_batches=micro_batches)


def _carry_axes(experiment: Experiment, carry: base.Carry) -> Any:
    return experiment.objective.carry_axes(carry) if isinstance(experiment.objective, base.Recurrent) else None


def reads_on(experiment: Experiment) -> bool:
    """Whether each row goes on in the text where it ended in the batch before, because the model remembers that."""
    remembers = getattr(experiment.model, "memory_length", 0) > 0 and not _reads_pairs(experiment)
    return remembers and isinstance(experiment.objective, base.Recurrent)


def _reads_pairs(experiment: Experiment) -> bool:
    """Whether a decoder learns to answer inputs with targets: examples of which none goes on with another."""
    return isinstance(experiment.model, DecoderConfig) and "inputs" in experiment.data.lengths


def summary(pieces: Pieces) -> str:
    """One line about a run: what is trained on what."""
    experiment = pieces.experiment
    parameters = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(pieces.state.params))
    devices = " x ".join(f"{axis}={size}" for axis, size in pieces.mesh.shape.items() if size > 1) or "1 device"
    dtype = jnp.dtype(next(iter(pieces.models.values())).dtype).name
    kind = pieces.mesh.devices.flat[0].device_kind
    return (
        f"{experiment.name}: {parameters:,} parameters, {dtype}, {kind} ({devices}), "
        f"{experiment.train.steps:,} steps of {experiment.data.batch_size} rows, "
        f"vocabulary of {pieces.vocabulary.size:,}" + (f"; attention by {pieces.attention}" if pieces.attention else "")
    )


def compute_dtype(name: str, devices: Sequence[Any] | None = None) -> Any:
    """The dtype of activations on these devices (None: those there are); auto is float32 on CPUs, else bfloat16."""
    if name == "auto":
        return jnp.float32 if platform_of(devices) == "cpu" else jnp.bfloat16
    return jnp.dtype(name).type


def platform_of(devices: Sequence[Any] | None) -> str:
    """cpu, gpu or tpu: of these devices (None: those there are)."""
    name = devices[0].platform if devices else jax.default_backend()
    return "gpu" if name in ("cuda", "rocm") else name


def attention(pieces: Pieces) -> str:
    """What computes the attention of the training step, by layer; empty where only the reference may.

    Raises:
        ValueError: the kernel asked for cannot.
    """
    if all(network.kernels == choice.REFERENCE for network in pieces.models.values()):
        return ""
    experiment, state = pieces.experiment, pieces.state
    rows = experiment.data.batch_size // experiment.train.micro_batches
    empty = pieces.converter.convert([[]])
    batch = {
        name: jax.ShapeDtypeStruct((rows, *value.shape[1:]), value.dtype)
        for name, value in empty.items()
        if name not in sharding.HOST_KEYS
    }

    def loss(params: Any, batch: Any, carry: Any) -> Any:
        return experiment.objective.loss(pieces.models, params, batch, key=jax.random.key(0), carry=carry)

    with sharding.use_mesh(pieces.mesh), choice.recording() as choices:
        jax.eval_shape(loss, state.frozen | state.params, batch, state.carry)
    return choice.described(choices)


def make_converter(experiment: Experiment, vocabulary: Vocabulary) -> features.Converter:
    """From examples to the batches of the model's architecture.

    `data.lengths` may hold `predictions`, the most positions of a row at which an encoder predicts.

    Raises:
        UsageError: a model of no known architecture, or lengths that it does not read.
    """
    lengths = dict(experiment.data.lengths)
    _check_lengths(lengths, encoder=isinstance(reader(experiment.model), EncoderConfig))
    predictions = lengths.pop("predictions", None)
    common = {
        "lengths": lengths,
        "pad_id": 0 if vocabulary.pad_id is None else vocabulary.pad_id,
        "eos_id": vocabulary.eos_id,
    }
    start = start_id(vocabulary)
    match reader(experiment.model):
        case TwoStreamEncoderConfig() if isinstance(experiment.objective, PermutationLanguageModeling):
            return permutation_features.PermutationFeatures(
                predictions=predictions, **_permutation_options(experiment.model), **common
            )
        case EncoderConfig():
            return features.EncoderFeatures(predictions=predictions, **_pair_options(experiment), **common)
        case EncoderDecoderConfig():
            frame = frames.of(experiment.model, vocabulary)
            return features.EncoderDecoderFeatures(start_id=start, frame=frame, **common)
        case DecoderConfig(prefix_attention=True):
            return features.PrefixLMFeatures(start_id=start, **common)
        case DecoderConfig():
            return features.DecoderFeatures(start_id=start, **common)
    raise UsageError(
        f"model is a {type(experiment.model).__name__}; it must be an EncoderConfig, a DecoderConfig or an "
        "EncoderDecoderConfig"
    )


def _permutation_options(model: TwoStreamEncoderConfig) -> dict[str, Any]:
    return {
        "one_a_row": model.bidirectional or model.memory_length > 0,
        "reuse": model.memory_reuse if model.memory_length else None,
        "bidirectional": model.bidirectional,
    }


def _pair_options(experiment: Experiment) -> dict[str, Any]:
    """What an encoder reads of the tokens besides themselves, and whether it learns from labels of pairs.

    Raises:
        UsageError: the objective learns from labels and the model has no classifier of pairs.
    """
    model, next_sentence = reader(experiment.model), isinstance(experiment.objective, SentencePairModeling)
    if next_sentence and not model.has_next_sentence:
        raise UsageError(
            "objective is a SentencePairModeling, but the model has no next-sentence classifier: give its preset "
            "head=heads.PRETRAINING, or take MaskedLanguageModeling as the objective"
        )
    return {
        "num_types": model.embed.num_types,
        "num_languages": model.embed.num_languages,
        "next_sentence": next_sentence,
    }


def _check_lengths(lengths: Mapping[str, int], *, encoder: bool) -> None:
    known = ("inputs", "targets", *(("predictions",) if encoder else ()))
    unknown = sorted(set(lengths) - set(known))
    if unknown:
        raise UsageError(f"data.lengths has {', '.join(unknown)}; possible are {', '.join(known)}")


def check_positions(experiment: Experiment, converter: features.Converter) -> None:
    """Refuses rows longer than the tables of positions: what lies beyond the last would be taken for the last.

    Raises:
        UsageError: with the lengths that fit.
    """
    model, lengths = reader(experiment.model), converter.lengths
    match model:
        case EncoderDecoderConfig():
            sides = [("inputs", lengths["inputs"], model.embed)]
            sides += [("targets", lengths["targets"], model.decoder_embed or model.embed)]
        case DecoderConfig():
            (width,) = converter.capacity
            sides = [(" and ".join(name for name in ("inputs", "targets") if name in lengths), width, model.embed)]
        case _:
            sides = [("inputs", lengths["inputs"], model.embed)]
    for name, length, embed in sides:
        if embed.position is not None and length > embed.position.max_positions:
            raise UsageError(
                f"data.lengths gives rows of {length} tokens ({name}), but the model has "
                f"{embed.position.max_positions} positions: shorten them, or give the model more (max_positions)"
            )


def check_objective(experiment: Experiment, converter: features.Converter) -> None:
    """Refuses an objective that finds nothing to learn in the batches of the model.

    Raises:
        UsageError: with what the batches hold.
    """
    batch = converter.convert([[]])
    try:
        jax.eval_shape(experiment.objective.weights, batch)
    except KeyError as error:
        if not str(error.args[0]).startswith(("encoder_", "decoder_")):
            return  # a task may add it, such as labels
        raise UsageError(
            f"{type(experiment.objective).__name__} reads {error}, which no batch of a "
            f"{type(experiment.model).__name__} holds (there is {', '.join(sorted(batch))}): choose the objective of "
            "the model's kind, LanguageModeling for decoders and encoder-decoders, MaskedLanguageModeling for encoders"
        ) from error


def start_id(vocabulary: Vocabulary) -> int:
    """The token a decoder starts with.

    Raises:
        UsageError: the vocabulary has none that could be it.
    """
    if vocabulary.start_id is None:
        raise UsageError(f"{vocabulary!r} has no bos, pad or eos token for a decoder to start with")
    return vocabulary.start_id


def check_kinds(experiment: Experiment) -> None:
    """Refuses a model, objective or optimizer that is something else: a config's fields take any class.

    Raises:
        UsageError: with what is possible.
    """
    for field, is_one, possible in (
        (
            "model",
            isinstance(experiment.model, EncoderConfig | DecoderConfig | EncoderDecoderConfig | ElectraConfig),
            "an EncoderConfig, a DecoderConfig or an EncoderDecoderConfig, such as those of t2t.families, or an "
            "ElectraConfig of two",
        ),
        ("objective", isinstance(experiment.objective, base.Objective), "an objective of t2t.objectives"),
        ("optimizer", hasattr(experiment.optimizer, "make"), "Adafactor, AdamW or LAMB of t2t.train.optimizer"),
    ):
        given = getattr(experiment, field)
        if not is_one or isinstance(given, type):
            raise UsageError(f"{field} is {given!r}; it must be {possible}")


def check_vocabulary(experiment: Experiment, vocabulary: Vocabulary) -> None:
    """Refuses a model with fewer embedding rows than the vocabulary has ids.

    Raises:
        UsageError: with both sizes.
    """
    rows = experiment.model.vocab_size
    if rows < vocabulary.size:
        raise UsageError(
            f"the model has {rows} embedding rows and the vocabulary {vocabulary.size} ids ({vocabulary!r}): set the "
            f"model's vocab_size to at least {vocabulary.size}, or choose another vocabulary"
        )


def _with_sharding(leaf: jax.ShapeDtypeStruct, where: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=where)
