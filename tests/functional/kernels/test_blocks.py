import jax.numpy as jnp
import numpy as np
import pytest

from t2t.functional.kernels import blocks
from t2t.functional.masks import Mask


@pytest.mark.parametrize(("length", "size"), [(128, 128), (256, 256), (384, 128), (512, 512), (768, 256), (1024, 512)])
def test_block_size(length, size):
    assert blocks.block_size(length) == size


def test_filled():
    assert blocks.filled(jnp.ones((2, 5, 3)), axis=1, unit=4).shape == (2, 8, 3)
    assert np.asarray(blocks.filled(jnp.ones((1, 3)), axis=1, unit=4)).tolist() == [[1, 1, 1, 0]]


def test_what_is_filled_is_never_read():
    assert blocks.segments(Mask(), batch=2, length=128, key_length=256) is None
    assert blocks.segments(Mask(causal=True), batch=2, length=100, key_length=100) is None  # comes last
    reader, read = blocks.segments(Mask(window=3), batch=2, length=128, key_length=130)
    assert reader.shape == (2, 128) and read.shape == (2, 256)
    assert int(read.sum()) == 2 * 130 and not read[:, 130:].any()
    ids = jnp.full((1, 5), 3)
    assert [x.shape for x in blocks.segments(Mask(reader=ids, read=ids), batch=1, length=5, key_length=5)] == [
        (1, 128)
    ] * 2
