import jax.numpy as jnp
import numpy as np
import pytest

from t2t.functional import convolution, masks


def _slow(x: np.ndarray, kernel: np.ndarray, segments: np.ndarray) -> np.ndarray:
    """Position by position, over neighbours of the same example that is no padding."""
    batch, length, _ = x.shape
    out = np.zeros((batch, length, kernel.shape[2]))
    for b in range(batch):
        for t in range(length):
            for k in range(len(kernel)):
                s = t + k - len(kernel) // 2
                if 0 <= s < length and segments[b, s] == segments[b, t] != 0:
                    out[b, t] += x[b, s] @ kernel[k]
    return out


@pytest.mark.parametrize("size", [1, 3, 5])
@pytest.mark.parametrize("given", [True, False])
def test_convolution_equals_the_oracle(size, given):
    rng = np.random.default_rng(size)
    x = rng.normal(size=(2, 9, 4)).astype(np.float32)
    kernel = rng.normal(size=(size, 4, 6)).astype(np.float32)
    segments = np.array([[1, 1, 1, 2, 2, 2, 2, 0, 0], [1, 2, 3, 3, 3, 3, 3, 3, 3]]) if given else np.ones((2, 9), int)
    mask = masks.encoder_mask(jnp.asarray(segments, jnp.int32)) if given else None
    found = convolution.convolve(jnp.asarray(x), jnp.asarray(kernel), mask=mask)
    np.testing.assert_allclose(found, _slow(x, kernel, segments), atol=1e-5)
