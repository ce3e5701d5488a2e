import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.nn import classification
from t2t.nn.classification import ClassificationHead
from t2t.nn.norm import LayerNorm
from tests.models import tiny
from tests.nn.arrays import shapes, variables
from tests.reference import transformer

D_MODEL = 6
SIZES = {"vocab_size": 11, "d_model": D_MODEL}
SEGMENTS = jnp.array([[1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 2, 2]], jnp.int32)


def _hidden():
    return np.random.default_rng(0).normal(size=(3, 4, D_MODEL)).astype(np.float32)


def _run(config, *, pooled=None, segment_ids=SEGMENTS):
    module, hidden = config.make(**SIZES), jnp.asarray(_hidden())
    options = {"segment_ids": segment_ids, "pooled": pooled}
    params = tiny.random_like(shapes(module, hidden, **options))
    return params, module.apply(variables(params), hidden, **options)


@pytest.mark.parametrize(
    "pooling, rows",
    # What is read of each of the three rows of padding and text above.
    [
        ("first", [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]),
        ("last", [[0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1]]),
        ("mean", [[1 / 3, 1 / 3, 1 / 3, 0], [0, 0.5, 0.5, 0], [0, 0, 0.5, 0.5]]),
    ],
)
def test_one_state_stands_for_a_text(pooling, rows):
    hidden = _hidden()
    got = classification.pool(jnp.asarray(hidden), pooling=pooling, segment_ids=jnp.asarray(SEGMENTS))
    np.testing.assert_allclose(got, np.einsum("BT,BTD->BD", rows, hidden), atol=1e-6)


@pytest.mark.parametrize("pooling, weights", [("first", [1, 0, 0, 0]), ("last", [0, 0, 0, 1]), ("mean", [0.25] * 4)])
def test_without_segments_every_position_is_text(pooling, weights):
    hidden = _hidden()
    got = classification.pool(jnp.asarray(hidden), pooling=pooling, segment_ids=None)
    np.testing.assert_allclose(got, np.einsum("T,BTD->BD", weights, hidden), atol=1e-6)


@pytest.mark.parametrize("pooling", ["first", "last", "mean"])
def test_rows_of_padding_alone_give_a_finite_state_and_gradient(pooling):
    def total(hidden):
        nothing = jnp.zeros((3, 4), jnp.int32)
        return jnp.sum(classification.pool(hidden, pooling=pooling, segment_ids=nothing))

    value, gradient = jax.value_and_grad(total)(jnp.asarray(_hidden()))
    assert bool(jnp.isfinite(value))
    assert bool(jnp.isfinite(gradient).all())


def test_a_text_is_scored_by_its_state():
    params, output = _run(ClassificationHead(task="sequence", num_labels=5, pooling="last", use_bias=False))
    assert set(params) == {"classifier"}
    assert set(params["classifier"]) == {"kernel"}
    last = _hidden()[np.arange(3), [2, 2, 3]]
    np.testing.assert_allclose(output["logits"], last @ params["classifier"]["kernel"], atol=1e-5)
    assert output["logits"].dtype == jnp.float32


def test_dense_layer_activation_and_norm_come_before_the_classifier():
    head = ClassificationHead(task="tokens", num_labels=5, activation="tanh", dense_bias=False, norm=LayerNorm())
    params, output = _run(head)
    inner = np.tanh(_hidden() @ params["dense"]["kernel"])
    inner = transformer.layer_norm(inner, **params["norm"], eps=1e-5)
    expected = inner @ params["classifier"]["kernel"] + params["classifier"]["bias"]
    assert set(params["dense"]) == {"kernel"}
    np.testing.assert_allclose(output["logits"], expected, atol=1e-4)


def test_the_ends_of_an_answer_are_two_scores_of_each_token():
    params, output = _run(ClassificationHead(task="span", num_labels=2))
    scores = _hidden() @ params["span"]["kernel"] + params["span"]["bias"]
    np.testing.assert_allclose(output["start_logits"], scores[..., 0], atol=1e-5)
    np.testing.assert_allclose(output["end_logits"], scores[..., 1], atol=1e-5)


@pytest.mark.parametrize("task, shape", [("replaced", (3, 4)), ("choice", (3,))])
def test_one_score_has_no_axis_of_labels(task, shape):
    _, output = _run(ClassificationHead(task=task, num_labels=1))
    assert output["logits"].shape == shape


def test_two_linear_layers_without_anything_between_them():
    params, output = _run(ClassificationHead(task="choice", num_labels=1, activation="identity", dense_dim=2))
    assert params["dense"]["kernel"].shape == (D_MODEL, 2)
    first = _hidden()[np.arange(3), [0, 1, 2]]
    inner = first @ params["dense"]["kernel"] + params["dense"]["bias"]
    expected = (inner @ params["classifier"]["kernel"] + params["classifier"]["bias"])[:, 0]
    np.testing.assert_allclose(output["logits"], expected, atol=1e-5)


def test_the_width_of_a_layer_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="dense_dim = 2: must be None where there is no dense layer"):
        ClassificationHead(task="choice", num_labels=1, dense_dim=2)


def test_the_next_sentence_has_scores_of_its_own():
    pooled = np.random.default_rng(1).normal(size=(3, D_MODEL)).astype(np.float32)
    params, output = _run(ClassificationHead(task="next", num_labels=2, pooling="pooler"), pooled=jnp.asarray(pooled))
    expected = pooled @ params["next_sentence"]["kernel"] + params["next_sentence"]["bias"]
    assert set(output) == {"next_sentence_logits"}
    np.testing.assert_allclose(output["next_sentence_logits"], expected, atol=1e-5)


def test_what_the_pooler_made_is_read_where_asked_for():
    head = ClassificationHead(task="sequence", num_labels=2, pooling="pooler")
    assert head.reads_pooled
    pooled = np.random.default_rng(1).normal(size=(3, D_MODEL)).astype(np.float32)
    params, output = _run(head, pooled=jnp.asarray(pooled))
    expected = pooled @ params["classifier"]["kernel"] + params["classifier"]["bias"]
    np.testing.assert_allclose(output["logits"], expected, atol=1e-5)


def test_dropout_comes_before_the_classifier_and_before_the_dense_layer_where_asked_for():
    head = ClassificationHead(task="tokens", num_labels=2, activation="relu", dropout=0.5)
    hidden = jnp.ones((1, 50, D_MODEL))
    identity = {"kernel": jnp.eye(D_MODEL), "bias": jnp.zeros(D_MODEL)}
    count = {"kernel": jnp.ones((D_MODEL, 2)), "bias": jnp.zeros(2)}

    def sums(head):
        """Sums of the values that come through: each is doubled by every dropout that it passes."""
        module, params = head.make(**SIZES), {"params": {"dense": identity, "classifier": count}}
        logits = module.apply(params, hidden, deterministic=False, rngs={"dropout": jax.random.key(0)})["logits"]
        still = module.apply(params, hidden)["logits"]
        np.testing.assert_array_equal(still, D_MODEL)
        return {float(x) for x in np.unique(logits)}

    assert sums(head) <= {2.0 * n for n in range(D_MODEL + 1)}
    twice = sums(dataclasses.replace(head, drops_input=True))
    assert len(twice) > 1
    assert twice <= {4.0 * n for n in range(D_MODEL + 1)}


def test_choices_become_rows():
    batch = {
        "encoder_input_tokens": jnp.arange(24).reshape(2, 3, 4),
        "encoder_segment_ids": jnp.ones((2, 3, 4), int),
        "labels": jnp.array([0, 2]),
    }
    flat, choices = classification.flatten_choices(batch)
    assert choices == 3
    np.testing.assert_array_equal(flat["encoder_input_tokens"], np.arange(24).reshape(6, 4))
    assert flat["labels"].shape == (2,)
    plain = {"encoder_input_tokens": jnp.ones((2, 4), int)}
    assert classification.flatten_choices(plain) == (plain, None)


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"num_labels": 0}, "num_labels = 0: must be a positive integer"),
        ({"task": "span", "num_labels": 3}, "num_labels = 3: must be 2 for task='span'"),
        ({"labels": ("no",)}, "labels = .*: must be no names, or one for each of the num_labels = 2"),
        ({"labels": ("no", "no")}, "labels = .*: must be no names"),
        ({"dropout": 1.0}, r"dropout = 1.0: must be in \[0, 1\)"),
        ({"initializer_std": -1.0}, "initializer_std = -1.0"),
    ],
)
def test_wrong_fields_are_refused_by_name(fields, message):
    with pytest.raises(ValueError, match=f"ClassificationHead.{message}"):
        ClassificationHead(**({"task": "sequence", "num_labels": 2} | fields))
