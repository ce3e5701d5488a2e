"""Models with kernels, interpreted on a CPU: the same results, or the reference, or an error."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas
from models import tiny

from t2t.functional.kernels import attend, choice
from t2t.models.base import Network
from t2t.nn import kernels
from t2t.nn.attention import AttentionConfig

TPU = ("splash", "flash", "reference")


@pytest.fixture
def interpreted(monkeypatch):
    monkeypatch.setattr(choice, "SHORT", 0)
    monkeypatch.setattr(attend, "attend", functools.partial(attend.attend, interpret=True))
    monkeypatch.setattr(pallas, "pallas_call", functools.partial(pallas.pallas_call, interpret=True))


def gradients(config, order):
    """Of the squares of all real hidden states, of every parameter; and the kernels that were chosen."""
    network, batch = Network(config, kernels=order), packed(tiny.batch(config))
    is_real = jnp.asarray(
        batch["decoder_segment_ids" if "decoder_segment_ids" in batch else "encoder_segment_ids"] != 0
    )

    def total(params):
        hidden = network.hidden(params, batch).last_hidden
        return jnp.sum(jnp.where(is_real[..., None], jnp.square(hidden), 0))

    params = tiny.params(config)
    with choice.recording() as choices:
        return jax.jit(jax.grad(total))(params), {one.kernel for one in choices}


def packed(batch):
    """Two examples in each row and one position of padding, on every side."""
    for side in ("encoder", "decoder"):
        if (tokens := batch.get(f"{side}_input_tokens")) is not None:
            ids = np.asarray([1] * 3 + [2] * (tokens.shape[1] - 4) + [0], np.int32)
            batch[f"{side}_segment_ids"] = np.tile(ids, (len(tokens), 1))
    return batch


@pytest.mark.slow
@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    ("make", "chosen"),
    [
        (tiny.t5, {"splash", "flash"}),
        (tiny.gpt2, {"splash"}),
        (tiny.local_encoder, {"splash"}),
        (tiny.prefix_lm, {"reference"}),
    ],
)
def test_models_compute_the_same(make, chosen):
    got, found = gradients(make(), TPU)
    want, by_reference = gradients(make(), choice.REFERENCE)
    assert found == chosen and by_reference == {"reference"}
    largest = max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(want))
    for mine, theirs in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-5 * largest)


def test_dropped_weights_and_wanted_weights_are_left_to_the_reference():
    config = tiny.gpt2(dropout=0.1)
    batch = tiny.batch(config)
    shapes = Network(config).shapes()

    def chosen(order, **options):
        network = Network(config, kernels=order)
        with choice.recording() as choices:
            jax.eval_shape(lambda params: network.hidden(params, batch, **options).last_hidden, shapes)
        return {one.kernel for one in choices}

    assert chosen(TPU, key=jax.random.key(0)) == {"reference"}
    assert chosen(TPU, attentions=True) == {"reference"}
    with pytest.raises(ValueError, match="splash cannot drop attention weights"):
        chosen(("splash",), key=jax.random.key(0))
    with pytest.raises(ValueError, match="splash does not hand out attention weights"):
        chosen(("splash",), attentions=True)


def test_parameters_and_decoding_are_made_by_the_reference():
    """A kernel of a device that is not there is no hindrance."""
    config = tiny.gpt2()
    network = Network(config, kernels=("splash",))
    assert network.shapes() == Network(config).shapes()
    batch = tiny.batch(config)

    def decode(key):
        return network.prefill(network.unstack(network.init(key)), batch, length=9)[0]

    assert jax.eval_shape(decode, jax.random.key(0)).shape[1] == 7


def test_all_blocks_of_a_stack_change_and_nothing_else():
    stack = tiny.t5().decoder
    assert not kernels.may_differ(stack.blocks)
    changed = kernels.with_kernels(stack, ("cudnn",))
    assert kernels.may_differ(changed.blocks)
    for block in changed.blocks:
        assert block.attention.kernels == block.cross_attention.kernels == ("cudnn",)
    assert kernels.with_kernels(changed, choice.REFERENCE) == stack


def test_no_kernel_at_all_is_refused():
    with pytest.raises(ValueError, match="kernels"):
        AttentionConfig(num_heads=1, head_dim=2, kernels=())
    assert dataclasses.replace(AttentionConfig(num_heads=1, head_dim=2), kernels=TPU).kernels == TPU
