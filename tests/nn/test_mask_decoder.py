"""The decoder of masked words against the slow one, and what it must not change."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t import heads
from t2t.families import bert, deberta, deberta_v2
from t2t.functional import masks
from t2t.models.base import Network
from t2t.nn import mask_decoder
from t2t.nn import stack as stack_lib
from t2t.nn.heads import MaskedLanguageModelHead
from t2t.nn.positions.absolute import LearnedPositions
from tests.hf import tiny
from tests.reference import mask_decoder as oracle

SIZES = {"num_layers": 3, "d_model": 12, "num_heads": 3, "d_ff": 7, "vocab_size": 11, "max_distance": 9}
LATER = deberta.deberta(**SIZES, num_buckets=4, norms_distances=True, shares_projections=True, key_bias=True)
REQUEST = heads.EnhancedMaskedLM()
FORMS = {
    "third version": deberta_v2.with_head(LATER, REQUEST),
    "first version": deberta.with_head(deberta.deberta(**SIZES), REQUEST),
    "second version": deberta_v2.with_head(deberta_v2.convolved(LATER), REQUEST),
}
MODEL = FORMS["third version"]
LENGTH = 7
TOKENS = np.random.default_rng(0).integers(1, 11, (2, LENGTH)).astype(np.int32)
SEGMENTS = np.array([[1, 1, 1, 1, 2, 2, 2], [1, 1, 1, 1, 1, 0, 0]], np.int32)
POSITIONS = np.array([[0, 1, 2, 3, 0, 1, 2], [0, 1, 2, 3, 4, 0, 0]], np.int32)
BATCH = {"encoder_input_tokens": TOKENS, "encoder_segment_ids": SEGMENTS}


@functools.cache
def params_of(config):
    return jax.tree.map(lambda leaf: jnp.asarray(0.4 * leaf), tiny.params(config))


@functools.cache
def program(config):
    return jax.jit(functools.partial(Network(config).apply, hidden_states=True))


def run(config, batch):
    return program(config)(params_of(config), batch)


def check_against_the_oracle(config):
    output, params = run(config, BATCH), jax.tree.map(np.asarray, params_of(config))
    last = jax.tree.map(lambda leaf: leaf[-1], params["encoder"]["layers_0"])
    position, eps = config.stack.position, config.stack.blocks[-1].norm.eps
    distances = params["encoder"]["position"]["positions"]
    if position.norm is not None:
        distances = oracle.norm(distances, params["encoder"]["position"]["norm"], eps=eps)
    allowed = np.asarray(masks.encoder_mask(jnp.asarray(SEGMENTS)))
    for row in range(2):
        expected = oracle.decode(
            np.asarray(output.hidden_states[-2][row]),
            positions=POSITIONS[row],
            table=params["head"]["mask_decoder"]["positions"],
            distances=distances,
            params=last,
            allowed=allowed[row],
            eps=eps,
            max_distance=position.max_distance,
            num_buckets=position.num_buckets,
        )
        real = SEGMENTS[row] != 0
        np.testing.assert_allclose(output.last_hidden[row][real], expected[real], atol=1e-4)


def test_states_equal_those_of_the_oracle_in_packed_and_padded_rows():
    check_against_the_oracle(MODEL)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["first version", "second version"])
def test_states_of_the_other_versions_equal_those_of_the_oracle(form):
    check_against_the_oracle(FORMS[form])


def test_only_the_decoder_knows_where_words_stand():
    plain = run(MODEL, BATCH)
    given, moved = (run(MODEL, BATCH | {"encoder_positions": POSITIONS + offset}) for offset in (0, 2))
    assert len(given.hidden_states) == 4
    for before, after in zip(given.hidden_states, moved.hidden_states, strict=True):
        np.testing.assert_array_equal(before, after)
    assert float(jnp.abs(given.last_hidden - moved.last_hidden).max()) > 1e-2
    real = SEGMENTS != 0
    np.testing.assert_allclose(given.logits[real], plain.logits[real], atol=1e-6)


def test_the_second_text_of_a_row_is_decoded_as_if_it_were_alone():
    packed = run(MODEL, BATCH).logits
    alone = {
        "encoder_input_tokens": np.roll(TOKENS, -4, axis=1),
        "encoder_segment_ids": np.array([[1, 1, 1, 0, 0, 0, 0]] * 2, np.int32),
    }
    np.testing.assert_allclose(packed[0, 4:], run(MODEL, alone).logits[0, :3], atol=1e-5)


def test_what_stands_in_padding_changes_nothing():
    real = SEGMENTS != 0
    other = BATCH | {"encoder_input_tokens": np.where(real, TOKENS, 3).astype(np.int32)}
    np.testing.assert_array_equal(run(MODEL, other).logits[real], run(MODEL, BATCH).logits[real])


@pytest.mark.slow
def test_layers_one_by_one_give_the_same():
    network, params = Network(MODEL), params_of(MODEL)
    loop = {**params, "encoder": stack_lib.unrolled_scopes(stack_lib.unstack(params["encoder"]))}
    found = network._module(unrolled=True).apply({"params": loop}, jax.tree.map(jnp.asarray, BATCH), method="hidden")
    real = SEGMENTS != 0
    np.testing.assert_allclose(found.last_hidden[real], run(MODEL, BATCH).last_hidden[real], atol=1e-5)


@pytest.mark.slow
def test_gradients_reach_the_table_and_the_last_layer_and_are_the_same_rematerialised():
    def gradient(remat):
        network = Network(MODEL, remat=remat)

        def loss(params, key):
            hidden = network.hidden(params, BATCH, key=key).last_hidden
            return jnp.sum(jnp.square(network.logits(params, hidden)) * (SEGMENTS != 0).astype(np.float32)[..., None])

        return jax.jit(jax.grad(loss))

    kept, again = gradient("none"), gradient("full")
    found = kept(params_of(MODEL), jax.random.key(0))
    assert all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(found))
    used = np.abs(found["head"]["mask_decoder"]["positions"]).max(axis=1) > 0
    np.testing.assert_array_equal(used, np.arange(9) < 5)  # the longest text has five tokens
    assert float(jnp.abs(found["encoder"]["layers_0"]["attention"]["value"]["kernel"][-1]).max()) > 0
    largest = max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(found))
    same = again(params_of(MODEL), jax.random.key(0))
    for one, two in zip(jax.tree.leaves(found), jax.tree.leaves(same), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-6 * largest, rtol=1e-4)
    other = kept(params_of(MODEL), jax.random.key(1))  # of dropout
    assert any(
        bool((one != two).any()) for one, two in zip(jax.tree.leaves(found), jax.tree.leaves(other), strict=True)
    )


def test_the_table_is_all_that_is_new():
    plain = dataclasses.replace(MODEL, head=dataclasses.replace(MODEL.head, mask_decoder=None))
    new = set(Network(MODEL).shapes_by_path().items()) - set(Network(plain).shapes_by_path().items())
    assert new == {("head/mask_decoder/positions", (9, 12))}


DECODER = mask_decoder.MaskDecoderConfig(position=LearnedPositions(max_positions=9))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"norm_position": "pre"}, "norm_position='pre', not 'post'"),
        ({"final_norm": True}, "a final norm follows"),
        ({"convolved": True}, "of a kind of its own"),
    ],
)
def test_stacks_whose_last_block_cannot_be_run_again_are_refused(change, reason):
    model = bert.bert(num_layers=2, d_model=12, num_heads=3, d_ff=7, vocab_size=11)
    (block,), norm = model.stack.pattern, model.embed.norm
    stack = model.stack
    if "norm_position" in change:
        stack = dataclasses.replace(stack, pattern=(dataclasses.replace(block, **change),))
    if "final_norm" in change:
        stack = dataclasses.replace(stack, final_norm=norm)
    if "convolved" in change:
        (first,) = deberta_v2.convolved(model).stack.prefix
        stack = dataclasses.replace(stack, pattern=(first,))
    head = MaskedLanguageModelHead(activation="gelu", norm=norm, mask_decoder=DECODER)
    dataclasses.replace(model, head=head)
    with pytest.raises(ValueError, match=reason):
        dataclasses.replace(model, stack=stack, head=head)


def test_longer_texts_than_the_table_are_refused():
    long = {"encoder_input_tokens": np.ones((1, 10), np.int32)}
    with pytest.raises(ValueError, match="length 10 is more than LearnedPositions.max_positions = 9"):
        Network(MODEL).hidden(params_of(MODEL), long)
