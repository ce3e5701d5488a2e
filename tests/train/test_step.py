"""The step: one denominator per term however the batch is cut, honest metrics, donated state, reproducible dropout."""

import contextlib
import dataclasses
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from t2t.config import Faults
from t2t.models.base import Network
from t2t.objectives.base import Term
from t2t.objectives.language_modeling import LanguageModeling
from t2t.train import step as steps
from t2t.train.optimizer import AdamW, Constant
from t2t.train.state import init_params, init_state
from tests.models import tiny
from tests.train import tiny_run
from tests.train.fake_network import AXES, FakeNetwork

ROWS, LENGTH, V = 8, 5, 16
NETWORK = FakeNetwork()
OBJECTIVE = LanguageModeling(z_loss=0.01, label_smoothing=0.1)


def make_batch(seed=0):
    """Rows with very different weights: whole rows without any, one with a hundred times the others'."""
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0, 1, (ROWS, LENGTH)) * np.array([0, 1, 1, 100, 0, 1, 3, 0.01])[:, None]
    return {
        "decoder_input_tokens": jnp.asarray(rng.integers(0, V, (ROWS, LENGTH)), jnp.int32),
        "decoder_target_tokens": jnp.asarray(rng.integers(0, V, (ROWS, LENGTH)), jnp.int32),
        "decoder_loss_weights": jnp.asarray(weights, jnp.float32),
    }


def gradients(batch, *, micro_batches, objective=OBJECTIVE, network=NETWORK, key=None, dtype=jnp.float32):
    params = jax.tree.map(lambda x: x.astype(dtype), network.init(jax.random.key(0)))
    run = jax.jit(
        lambda params, batch: steps.accumulate_gradients(
            objective, {"model": network}, {"model": params}, batch, frozen={}, key=key, carry=(),
            micro_batches=micro_batches,
        )
    )  # fmt: skip
    return run(params, batch)


def greatest_difference(got, want):
    """Of two trees, relative to the greatest number of the second."""
    pairs = list(zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True))
    return max(float(jnp.max(jnp.abs(a - b))) for a, b in pairs) / max(float(jnp.max(jnp.abs(b))) for _, b in pairs)


@pytest.mark.parametrize("micro_batches", [2, 4, 8])
def test_accumulation_equals_one_big_batch(micro_batches):
    """Not the mean of the micro-batches' means."""
    batch = make_batch()
    got, want = gradients(batch, micro_batches=micro_batches), gradients(batch, micro_batches=1)
    assert greatest_difference(got[0], want[0]) < 1e-6
    np.testing.assert_allclose(got[1], want[1], rtol=1e-6)
    for name, (total, weight) in want[2].items():
        np.testing.assert_allclose(got[2][name], (total, weight), rtol=1e-5, err_msg=name)


def test_accumulation_equals_one_big_batch_in_double_precision(x64):
    batch = make_batch() | {"decoder_loss_weights": make_batch()["decoder_loss_weights"].astype(jnp.float64)}
    got = gradients(batch, micro_batches=4, dtype=jnp.float64)
    want = gradients(batch, micro_batches=1, dtype=jnp.float64)
    assert greatest_difference(got[0], want[0]) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("name", ["t5_1_0", "t5_1_1", "gpt2"])
def test_accumulation_of_real_models_in_double_precision(x64, name):
    network = Network(tiny.CONFIGS[name], dtype=jnp.float64, param_dtype=jnp.float64)
    batch = make_batch() | {"decoder_loss_weights": make_batch()["decoder_loss_weights"].astype(jnp.float64)}
    batch["encoder_input_tokens"] = batch["decoder_target_tokens"][:, ::-1]
    got, want = (
        gradients(batch, micro_batches=n, network=network, objective=LanguageModeling(), dtype=jnp.float64)
        for n in (4, 1)
    )
    assert greatest_difference(got[0], want[0]) < 1e-12


def test_the_gradient_is_that_of_the_mean_written_out():
    """Against jax.grad of the loss as one would write it without micro-batches or terms."""
    network, batch = FakeNetwork(), make_batch()
    params = network.init(jax.random.key(0))
    weights = batch["decoder_loss_weights"]

    def loss(params):
        logits = network.logits(params, network.hidden(params, batch).last_hidden)
        log_probabilities = jax.nn.log_softmax(logits)
        targets = jax.nn.one_hot(batch["decoder_target_tokens"], V)
        return -jnp.sum(jnp.sum(targets * log_probabilities, -1) * weights) / jnp.sum(weights)

    value, want = jax.value_and_grad(loss)(params)
    got = gradients(batch, micro_batches=2, objective=LanguageModeling())
    np.testing.assert_allclose(got[1], value, rtol=1e-6)
    assert greatest_difference(got[0]["model"], want) < 1e-6


@dataclasses.dataclass(frozen=True)
class TwoTerms:
    """Two terms over different tokens, as ELECTRA's, and a carry that counts micro-batches."""

    additive = True

    def weights(self, batch):
        return {"a": jnp.sum(batch["w"]), "b": jnp.float32(batch["w"].shape[0])}

    def loss(self, models, params, batch, *, key, carry):
        theta = params["model"] + params.get("teacher", 0.0)
        a = Term(sum=jnp.sum(theta * batch["w"] * batch["x"]), weight=jnp.sum(batch["w"]), coefficient=50.0)
        b = Term(sum=jnp.sum(theta * batch["x"]), weight=jnp.float32(batch["w"].shape[0]))
        return {"a": a, "b": b}, {}, carry + 1


def test_each_term_has_its_own_denominator():
    """By hand: 50 * (1*2 + 0*3 + 0*5 + 3*7) / 4 + (2 + 3 + 5 + 7) / 4."""
    batch = {"w": jnp.array([1.0, 0.0, 0.0, 3.0]), "x": jnp.array([2.0, 3.0, 5.0, 7.0])}
    for micro_batches in (1, 2, 4):
        gradient, loss, metrics, carry = steps.accumulate_gradients(
            TwoTerms(),
            {},
            {"model": jnp.float32(1.0)},
            batch,
            frozen={},
            key=None,
            carry=0,
            micro_batches=micro_batches,
        )
        expected = 50 * 23 / 4 + 17 / 4
        np.testing.assert_allclose([gradient["model"], loss], [expected, expected], rtol=1e-6)
        np.testing.assert_allclose(metrics["a"], (23, 4))
        assert carry == micro_batches


def make_run(network=NETWORK, objective=OBJECTIVE, **options):
    models = {"model": network}
    config = AdamW(learning_rate=Constant(peak=0.01, warmup_steps=2), clip_norm=1.0)
    params = init_params(models, jax.random.key(0))
    optimizer = config.make(params, {"model": AXES})
    step = steps.make_train_step(objective, models, optimizer, seed=3, rate=config.learning_rate.rate(), **options)
    return step, init_state(params, optimizer), optimizer


def test_one_step():
    step, state, optimizer = make_run()
    batch = make_batch()
    (gradient, loss, _, _), before = gradients(batch, micro_batches=1), jax.tree.map(jnp.copy, state)
    after, metrics = step(state, batch)
    updates, opt_state = optimizer.update(gradient, before.opt_state, before.params)
    want = optax.apply_updates(before.params, updates)
    assert int(after.step) == 1
    assert greatest_difference(after.params, want) < 1e-6
    assert jax.tree.structure(after.opt_state) == jax.tree.structure(opt_state)
    means = {name: float(total / weight) for name, (total, weight) in metrics.items()}
    assert set(means) == {
        "cross_entropy", "z_loss", "accuracy", "loss", "grad_norm", "param_norm", "learning_rate",
    }  # fmt: skip
    np.testing.assert_allclose(means["loss"], loss, rtol=1e-6)
    np.testing.assert_allclose(means["loss"], means["cross_entropy"] + 0.01 * means["z_loss"], rtol=1e-6)
    np.testing.assert_allclose(means["grad_norm"], optax.tree.norm(gradient), rtol=1e-5)
    np.testing.assert_allclose(means["param_norm"], optax.tree.norm(after.params), rtol=1e-5)
    assert means["learning_rate"] == 0.0
    assert float(step(after, batch)[1]["learning_rate"][0]) == np.float32(0.005)


def test_the_loss_falls():
    step, state, _ = make_run(micro_batches=2)
    losses = []
    for _ in range(30):
        state, metrics = step(state, make_batch())
        losses.append(float(metrics["loss"][0]))
    assert losses[-1] < 0.5 * losses[0]


def test_state_is_donated_but_not_what_is_frozen():
    teacher = {"teacher": jnp.float32(2.0)}
    optimizer = optax.sgd(0.1)
    state = init_state({"model": jnp.float32(1.0)}, optimizer, frozen=teacher, carry=jnp.int32(0))
    step = steps.make_train_step(TwoTerms(), {}, optimizer, seed=0)
    batch = {"w": jnp.ones(4), "x": jnp.ones(4)}
    after, _ = step(state, batch)
    assert state.params["model"].is_deleted()
    assert not teacher["teacher"].is_deleted()
    np.testing.assert_allclose(after.params["model"], 1.0 - 0.1 * 51, rtol=1e-6)
    assert set(after.params) == {"model"}
    assert after.frozen == teacher


def test_a_batch_without_targets_gives_no_gradient():
    batch = make_batch() | {"decoder_loss_weights": jnp.zeros((ROWS, LENGTH))}
    gradient, loss, metrics, _ = gradients(batch, micro_batches=2)
    assert float(loss) == 0.0
    assert all(bool((leaf == 0).all()) for leaf in jax.tree.leaves(gradient))
    assert [float(x) for x in metrics["cross_entropy"]] == [0.0, 0.0]


def test_nan_shows_in_the_metrics():
    step, state, _ = make_run()
    params = jax.tree.map(lambda x: x * jnp.nan, state.params)
    _, metrics = step(dataclasses.replace(state, params=params), make_batch())
    assert np.isnan([metrics[name][0] for name in ("loss", "grad_norm", "param_norm")]).all()


def test_dropout_depends_on_seed_step_and_micro_batch_alone():
    network = FakeNetwork(dropout=0.5)
    batch = make_batch()

    def loss(seed, step):
        return float(gradients(batch, micro_batches=2, network=network, key=key_of(seed, step))[1])

    def key_of(seed, step):
        return jax.random.fold_in(jax.random.key(seed), step)

    assert loss(0, 1) == loss(0, 1)
    assert len({loss(0, 1), loss(0, 2), loss(1, 1)}) == 3

    # Two equal micro-batches draw different masks: else one of them alone would give the same loss.
    twice = {name: jnp.repeat(value[1:2], 2, axis=0) for name, value in batch.items()}
    both = gradients(twice, micro_batches=2, network=network, key=key_of(0, 1))
    one = gradients({n: v[:1] for n, v in twice.items()}, micro_batches=1, network=network, key=key_of(0, 1))
    assert float(both[1]) != float(one[1])


def test_evaluation_is_deterministic_and_adds_up():
    network = FakeNetwork(dropout=0.5)
    evaluate = steps.make_eval_step(OBJECTIVE, {"model": network})
    params = {"model": network.init(jax.random.key(0))}
    batch = make_batch()
    whole = evaluate(params, batch)
    parts = [evaluate(params, {name: value[rows] for name, value in batch.items()}) for rows in (slice(3), slice(3, 8))]
    for name, (total, weight) in whole.items():
        np.testing.assert_allclose(total, sum(part[name][0] for part in parts), rtol=1e-5)
        np.testing.assert_allclose(weight, sum(part[name][1] for part in parts), rtol=1e-6)


def test_objectives_that_compare_rows_refuse_micro_batches():
    class InBatchNegatives(TwoTerms):
        additive = False

    with pytest.raises(ValueError, match="micro_batches=2"):
        steps.make_train_step(InBatchNegatives(), {}, optax.sgd(0.1), seed=0, micro_batches=2)


def test_terms_and_weights_must_agree():
    class Forgetful(TwoTerms):
        def weights(self, batch):
            return {"a": jnp.sum(batch["w"])}

    batch = {"w": jnp.ones(4), "x": jnp.ones(4)}
    with pytest.raises(ValueError, match=r"\['a', 'b'\]"):
        steps.accumulate_gradients(Forgetful(), {}, {"model": jnp.float32(1.0)}, batch, frozen={}, key=None, carry=0)


def test_gradients_are_held_once():
    """Temporary memory does not grow with the number of micro-batches of the same size."""
    network = FakeNetwork(vocab_size=512, d_model=64)
    params = {"model": network.init(jax.random.key(0))}

    def temporary(micro_batches):
        rows = {name: jnp.zeros((2 * micro_batches, LENGTH), jnp.int32) for name in make_batch()}
        run = jax.jit(
            lambda params, batch: steps.accumulate_gradients(
                OBJECTIVE, {"model": network}, params, batch, frozen={}, key=None, carry=(), micro_batches=micro_batches
            )
        )
        return run.lower(params, rows).compile().memory_analysis().temp_size_in_bytes

    assert temporary(16) < 1.1 * temporary(4)


def compiled_step(policy=None, *, depth=2):
    """A real model's step for abstract arguments, and its state."""
    config = AdamW(learning_rate=Constant(peak=1e-2, warmup_steps=4), weight_decay=0.01)
    model = tiny_run.model()
    stacks = {side: dataclasses.replace(getattr(model, side), num_layers=depth) for side in ("encoder", "decoder")}
    network = Network(dataclasses.replace(model, **stacks))
    shapes = {"model": network.shapes()}
    optimizer = config.make(shapes, {"model": network.logical_axes()})
    state = jax.eval_shape(lambda params: init_state(params, optimizer), shapes)
    step = steps.make_train_step(LanguageModeling(), {"model": network}, optimizer, seed=0, policy=policy)
    tokens = {
        f"{side}_{name}": jax.ShapeDtypeStruct((4, length), dtype)
        for side, length in (("encoder", 12), ("decoder", 6))
        for name, dtype in (("input_tokens", jnp.int32), ("segment_ids", jnp.int32))
    }
    targets = {
        "decoder_target_tokens": jax.ShapeDtypeStruct((4, 6), jnp.int32),
        "decoder_loss_weights": jax.ShapeDtypeStruct((4, 6), jnp.float32),
    }
    return step.lower(state, tokens | targets), state


@pytest.mark.slow
@pytest.mark.parametrize("policy", [None, Faults(on_nan="skip", on_spike="skip")])
def test_the_new_state_takes_the_place_of_the_old(policy):
    """Every byte of the state is an alias of its successor: the program holds no second copy."""
    lowered, state = compiled_step(policy)
    analysis = lowered.compile().memory_analysis()
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
    assert analysis.alias_size_in_bytes == size


@pytest.mark.slow
def test_depth_hardly_changes_the_time_of_compilation():
    """Layers are scanned: XLA sees one of them, whatever their number."""

    def seconds(depth: int) -> float:
        begin = time.process_time()
        lowered = compiled_step(depth=depth)[0]
        with fresh_compilation():
            lowered.compile()
        return time.process_time() - begin

    seconds(2)  # what is imported and traced first takes longer
    ratios = [seconds(24) / seconds(2) for _ in range(2)]
    assert min(ratios) < 1.5, ratios


@contextlib.contextmanager
def fresh_compilation():
    """Without the programs that tests keep."""
    before = jax.config.jax_enable_compilation_cache
    jax.config.update("jax_enable_compilation_cache", False)
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", before)
