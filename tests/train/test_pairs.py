"""Runs that train a generator and a discriminator: learned, resumed, spread over devices, exported, gone on from."""

import dataclasses

import jax
import numpy as np
import optax
import pytest

import t2t
from t2t import sharding
from t2t.config import Mesh
from t2t.data import masked_objectives, registry
from t2t.errors import UsageError
from t2t.models.electra import DISCRIMINATOR, GENERATOR
from t2t.objectives.masked import MaskedLanguageModeling
from t2t.objectives.replaced_tokens import ReplacedTokenDetection
from t2t.train import build, checkpoint, flops, initialize, loop, record, sources, writer
from t2t.train.state import init_params, init_state, state_shardings
from t2t.train.step import make_train_step
from t2t.vocabulary import ByteVocabulary
from tests.models import electra_tiny
from tests.train import tiny_run

SOURCE = registry.TextSource(tiny_run.sentences, splits=tuple(tiny_run.SPLITS))
masked_objectives.add_masked_objectives("pairs", SOURCE)


def experiment(sharing="embeddings", **changes):
    return tiny_run.experiment(
        **{
            "model": electra_tiny.pair(sharing, dropout=0.1, vocab_size=384, max_positions=24),
            "data": {
                "modules": ("tests.train.test_pairs",),
                "train": "pairs_rtd",
                "lengths": {"inputs": 24, "targets": 24, "predictions": 5},
            },
            "objective": ReplacedTokenDetection(),
            "evaluate": {"tasks": ("pairs_rtd",), "every": 6},
            **changes,
        }
    )


def state_of(run):
    """The last state of a run."""
    store = checkpoint.CheckpointStore(run / "checkpoints")
    shapes = store.shapes(store.latest())
    like = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), shapes)
    return jax.device_get(store.restore(like=like).state)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "finished"
    loop.train(experiment(train={"log_every": 1}), path)
    return path


@pytest.mark.slow
def test_both_learn_and_their_metrics_are_written(finished):
    records = [record for record in writer.read(finished / "metrics.jsonl") if record["split"] == "train"]
    names = {"cross_entropy", "detection", "generator_accuracy", "sampled_accuracy", "replaced", "detection_auc"}
    assert names | {"detection_accuracy", "detection_recall"} <= set(records[-1])
    assert records[-1]["loss"] == pytest.approx(records[-1]["cross_entropy"] + 50 * records[-1]["detection"], rel=1e-5)
    assert records[-1]["detection"] < records[0]["detection"]
    assert records[-1]["cross_entropy"] < records[0]["cross_entropy"]
    held_out = [record for record in writer.read(finished / "metrics.jsonl") if record["split"] == "validation"]
    assert names <= set(held_out[-1])


@pytest.mark.slow
def test_a_resumed_pair_is_the_pair_never_stopped(finished, tmp_path):
    loop.train(experiment(train={"steps": 5}), tmp_path / "run")
    loop.train(experiment(), tmp_path / "run")
    jax.tree.map(np.testing.assert_array_equal, state_of(finished), state_of(tmp_path / "run"))


@pytest.mark.slow
@pytest.mark.hf
@pytest.mark.parametrize(("role", "name"), [(None, "ElectraForPreTraining"), (GENERATOR, "ElectraForMaskedLM")])
def test_both_are_exported_as_the_classes_of_transformers(finished, tmp_path, role, name):
    import torch
    import transformers

    model = t2t.load(finished, role=role)
    model.export(tmp_path / "out")
    theirs = getattr(transformers, name).from_pretrained(tmp_path / "out").eval()
    tokens = np.random.default_rng(0).integers(0, 384, (2, 24))
    with torch.no_grad():
        want = theirs(torch.tensor(tokens)).logits.numpy()
    got = np.asarray(model.apply({"encoder_input_tokens": tokens.astype(np.int32)}).logits)
    np.testing.assert_allclose(got, want.reshape(got.shape), atol=1e-4)


@pytest.mark.slow
def test_a_model_of_a_pair_is_loaded_by_its_role(finished, tmp_path):
    kept = state_of(finished)["params"]
    generator = t2t.load(finished, role=GENERATOR)
    np.testing.assert_array_equal(generator.params["embed"]["embedding"], kept[DISCRIMINATOR]["embed"]["embedding"])
    np.testing.assert_array_equal(
        generator.params["head"]["transform"]["kernel"], kept[GENERATOR]["head"]["transform"]["kernel"]
    )
    assert generator.config.head is not None
    with pytest.raises(UsageError, match="no teacher"):
        t2t.load(finished, role="teacher")
    loop.train(tiny_run.experiment(train={"steps": 1}), tmp_path / "single")
    with pytest.raises(UsageError, match="no pair"):
        t2t.load(tmp_path / "single", role=GENERATOR)


@pytest.mark.slow
def test_a_pair_begins_with_another_pair_or_with_a_discriminator(finished, tmp_path):
    pieces = build.build(experiment(), ByteVocabulary(mask=True, sentinels=100))
    kept = state_of(finished)["params"]
    both = initialize.load_params(sources.open_source(finished), pieces)
    jax.tree.map(np.testing.assert_array_equal, jax.device_get(both), kept)
    t2t.load(finished).export(tmp_path / "discriminator")
    one = initialize.load_params(sources.open_source(tmp_path / "discriminator"), pieces)
    jax.tree.map(np.testing.assert_array_equal, jax.device_get(one[DISCRIMINATOR]), kept[DISCRIMINATOR])
    fresh = initialize.fresh_params(pieces)[GENERATOR]
    jax.tree.map(np.testing.assert_array_equal, jax.device_get(one[GENERATOR]), jax.device_get(fresh))


def test_pairs_and_their_objective_go_together():
    vocabulary = ByteVocabulary(mask=True)
    with pytest.raises(UsageError, match="ElectraConfig and ReplacedTokenDetection go together"):
        build.build(experiment(objective=MaskedLanguageModeling()), vocabulary)
    with pytest.raises(UsageError, match="go together"):
        build.build(experiment(model=experiment().model.discriminator), vocabulary)
    with pytest.raises(UsageError, match=r"replacements is 'uniform' and model.generator a model"):
        build.build(experiment(objective=ReplacedTokenDetection(replacements="uniform")), vocabulary)
    alone = dataclasses.replace(experiment().model, generator=None)
    with pytest.raises(UsageError, match="replacements is 'generator' and model.generator None"):
        build.build(experiment(model=alone), vocabulary)
    pieces = build.build(experiment(model=alone, objective=ReplacedTokenDetection(replacements="uniform")), vocabulary)
    assert set(pieces.state.params) == {DISCRIMINATOR}
    assert pieces.experiment.objective.mask_id == vocabulary.mask_id


def test_operations_are_those_of_both_models():
    pieces = build.build(experiment(), ByteVocabulary(mask=True))
    config = pieces.experiment.model
    rows, length, places = 8, 24, 5
    batch = {"encoder_input_tokens": np.zeros((rows, length))}
    at_places = batch | {"encoder_predict_positions": np.zeros((rows, places))}
    shapes = {role: t2t.models.base.Network(one).shapes() for role, one in config.configs().items()}
    want = flops.step_flops(shapes[GENERATOR], at_places) + flops.step_flops(shapes[DISCRIMINATOR], batch)
    assert record.step_flops(pieces) == want


def one_step(sharing, sizes, num_devices):
    """Metrics and parameters after one step of gradient descent of rate 1."""
    networks = electra_tiny.pair(sharing).networks()
    optimizer = optax.sgd(1.0)
    axes = {role: network.logical_axes() for role, network in networks.items()}
    mesh = sharding.make_mesh(Mesh(**sizes), devices=jax.devices()[:num_devices])

    def start(key):
        return init_state(init_params(networks, key), optimizer)

    with sharding.use_mesh(mesh):
        shardings = state_shardings(jax.eval_shape(start, jax.random.key(0)), axes, mesh)
        state = jax.jit(start, out_shardings=shardings)(jax.random.key(0))
        objective = ReplacedTokenDetection(mask_id=electra_tiny.MASK)
        step = make_train_step(objective, networks, optimizer, seed=0, micro_batches=1, state_shardings=shardings)
        state, metrics = step(state, sharding.shard_batch(electra_tiny.batches()[0], mesh))
    return jax.tree.map(np.asarray, (metrics, state.params))


@pytest.mark.slow
@pytest.mark.multi_device
@pytest.mark.parametrize("sharing", ["embeddings", "disentangled"])
def test_the_same_numbers_on_any_mesh(sharing):
    """Samples included: they are drawn by place in the global batch."""
    want = one_step(sharing, {}, 1)
    for sizes in ({"data": 8}, {"data": 2, "fsdp": 2, "tensor": 2}):
        got = one_step(sharing, sizes, 8)
        for (path, a), b in zip(jax.tree_util.tree_flatten_with_path(got)[0], jax.tree.leaves(want), strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=5e-6, err_msg=f"{sizes}{jax.tree_util.keystr(path)}")
