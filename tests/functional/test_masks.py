import jax.numpy as jnp
import numpy as np

from t2t.functional import masks


def _check(mask, rows):
    np.testing.assert_array_equal(np.asarray(mask[0]).astype(int), rows)


def test_encoder_mask_of_two_packed_examples_and_padding():
    mask = masks.encoder_mask(jnp.array([[1, 1, 2, 2, 2, 0]]))
    _check(
        mask,
        [
            [1, 1, 0, 0, 0, 0],
            [1, 1, 0, 0, 0, 0],
            [0, 0, 1, 1, 1, 0],
            [0, 0, 1, 1, 1, 0],
            [0, 0, 1, 1, 1, 0],
            [0, 0, 0, 0, 0, 0],
        ],
    )
    assert masks.encoder_mask(None) is None


def test_decoder_mask_is_causal_within_each_example():
    mask = masks.decoder_mask(5, segment_ids=jnp.array([[1, 1, 1, 2, 2]]))
    _check(
        mask,
        [
            [1, 0, 0, 0, 0],
            [1, 1, 0, 0, 0],
            [1, 1, 1, 0, 0],
            [0, 0, 0, 1, 0],
            [0, 0, 0, 1, 1],
        ],
    )


def test_prefix_is_visible_in_both_directions_per_packed_example():
    # Example 1: start and one token of prefix, one of suffix. Example 2: start and prefix, two of suffix.
    mask = masks.decoder_mask(
        7, segment_ids=jnp.array([[1, 1, 1, 2, 2, 2, 2]]), prefix=jnp.array([[1, 1, 0, 1, 1, 0, 0]])
    )
    _check(
        mask,
        [
            [1, 1, 0, 0, 0, 0, 0],
            [1, 1, 0, 0, 0, 0, 0],
            [1, 1, 1, 0, 0, 0, 0],
            [0, 0, 0, 1, 1, 0, 0],
            [0, 0, 0, 1, 1, 0, 0],
            [0, 0, 0, 1, 1, 1, 0],
            [0, 0, 0, 1, 1, 1, 1],
        ],
    )


def test_cross_mask_reads_the_same_example():
    mask = masks.cross_mask(jnp.array([[1, 2, 2, 0]]), jnp.array([[1, 1, 2, 0, 0]]), length=4, key_length=5)
    _check(mask, [[1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 0]])


def test_cross_mask_with_one_side_absent_is_one_example():
    assert masks.cross_mask(None, None, length=2, key_length=3) is None
    _check(masks.cross_mask(None, jnp.array([[1, 1, 0]]), length=2, key_length=3), [[1, 1, 0], [1, 1, 0]])
    _check(masks.cross_mask(jnp.array([[1, 0]]), None, length=2, key_length=3), [[1, 1, 1], [0, 0, 0]])


def test_cache_mask_of_two_new_positions_after_left_padding():
    mask = masks.cache_mask(2, index=2, starts=jnp.array([0, 1]), key_length=5)
    np.testing.assert_array_equal(
        np.asarray(mask).astype(int), [[[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], [[0, 1, 1, 0, 0], [0, 1, 1, 1, 0]]]
    )


def test_window_mask_reads_near_positions_on_both_sides():
    _check(
        masks.window_mask(5, 5, window=2),
        [
            [1, 1, 1, 0, 0],
            [1, 1, 1, 1, 0],
            [1, 1, 1, 1, 1],
            [0, 1, 1, 1, 1],
            [0, 0, 1, 1, 1],
        ],
    )


def test_window_mask_of_two_readers_in_a_cache():
    for index in (2, jnp.int32(2)):
        _check(masks.window_mask(2, 6, index=index, window=1), [[0, 1, 1, 1, 0, 0], [0, 0, 1, 1, 1, 0]])


def test_windows_of_packed_examples_and_of_causal_ones():
    segments = jnp.array([[1, 1, 1, 2, 2, 0]])
    near = masks.window_mask(6, 6, window=1)
    _check(
        near & masks.encoder_mask(segments),
        [
            [1, 1, 0, 0, 0, 0],
            [1, 1, 1, 0, 0, 0],
            [0, 1, 1, 0, 0, 0],
            [0, 0, 0, 1, 1, 0],
            [0, 0, 0, 1, 1, 0],
            [0, 0, 0, 0, 0, 0],
        ],
    )
    _check(
        near & masks.decoder_mask(6, segment_ids=segments),
        [
            [1, 0, 0, 0, 0, 0],
            [1, 1, 0, 0, 0, 0],
            [0, 1, 1, 0, 0, 0],
            [0, 0, 0, 1, 0, 0],
            [0, 0, 0, 1, 1, 0],
            [0, 0, 0, 0, 0, 0],
        ],
    )


def test_rules_mean_the_masks_of_the_same_name():
    decoder, encoder = jnp.array([[1, 1, 2, 2, 2, 0]]), jnp.array([[1, 2, 2, 0, 0, 0]])
    marks, same = jnp.array([[1, 1, 1, 1, 0, 0]]), {"length": 6, "key_length": 6}
    pairs = [
        (masks.encoder_rules(decoder), masks.encoder_mask(decoder)),
        (masks.decoder_rules(segment_ids=decoder), masks.decoder_mask(6, segment_ids=decoder)),
        (
            masks.decoder_rules(segment_ids=decoder, prefix=marks),
            masks.decoder_mask(6, segment_ids=decoder, prefix=marks),
        ),
        (masks.cross_rules(decoder, encoder, **same), masks.cross_mask(decoder, encoder, **same)),
        (masks.cross_rules(None, encoder, **same), masks.cross_mask(None, encoder, **same)),
        (masks.within(masks.encoder_rules(decoder), 1, **same), masks.within(masks.encoder_mask(decoder), 1, **same)),
        (masks.within(masks.Mask(), 2, **same), masks.within(None, 2, **same)),
    ]
    for rules, dense in pairs:
        np.testing.assert_array_equal(masks.dense(rules, **same), dense)
        assert masks.dense(dense, **same) is dense
    assert masks.dense(masks.encoder_rules(None), **same) is None
    assert masks.dense(masks.cross_rules(None, None, **same), **same) is None
