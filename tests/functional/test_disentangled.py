import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.functional import disentangled
from tests.reference import disentangled as oracle


@pytest.mark.parametrize(("num_buckets", "max_distance"), [(256, 512), (8, 20), (62, 64), (9, 33), (4, 512)])
def test_buckets_equal_the_oracle(num_buckets, max_distance):
    settings = {"num_buckets": num_buckets, "max_distance": max_distance}
    distances = np.arange(-700, 701, dtype=np.int32)
    expected = [oracle.bucket(int(distance), **settings) for distance in distances]
    assert disentangled.log_buckets(distances, **settings).tolist() == expected


def test_published_buckets_are_exact_up_to_128_and_end_at_511():
    settings = {"num_buckets": 256, "max_distance": 512}
    found = disentangled.log_buckets(np.array([0, -127, 128, 129, 130, 511, -511, 512]), **settings)
    assert found.tolist() == [0, -127, 128, 129, 130, 255, -255, 256]


@pytest.mark.parametrize("length", [1, 2, 7, 30])
@pytest.mark.parametrize(("max_distance", "num_buckets"), [(5, None), (40, None), (20, 8)])
def test_rows_equal_the_oracle(length, max_distance, num_buckets):
    settings = {"max_distance": max_distance, "num_buckets": num_buckets}
    expected = [oracle.row(distance, **settings) for distance in range(1 - length, length)]
    assert disentangled.distance_rows(length, **settings).tolist() == expected


def _draw(length: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(length)
    content = rng.normal(size=(2, 3, length, 4)).astype(np.float32)
    return content, rng.normal(size=(3, 2 * length - 1, 4)).astype(np.float32)


def _slow(content: np.ndarray, positions: np.ndarray, *, reads: bool) -> np.ndarray:
    """The scores one by one; `content` is what reads, or what is read."""
    length = content.shape[2]
    out = np.zeros((*content.shape[:3], length))
    for t in range(length):
        for s in range(length):
            own = content[:, :, t if reads else s]
            out[:, :, t, s] = np.einsum("bnh,nh->bn", own, positions[:, t - s + length - 1])
    return out


@pytest.mark.parametrize("length", [1, 2, 5])
def test_scores_equal_the_oracle(length):
    content, positions = _draw(length)
    found = disentangled.content_to_position(jnp.asarray(content), jnp.asarray(positions))
    np.testing.assert_allclose(found, _slow(content, positions, reads=True), atol=1e-5)
    found = disentangled.position_to_content(jnp.asarray(content), jnp.asarray(positions))
    np.testing.assert_allclose(found, _slow(content, positions, reads=False), atol=1e-5)


@pytest.mark.parametrize("reads", [True, False])
def test_gradients_equal_those_of_a_gather(reads):
    content, positions = (jnp.asarray(x) for x in _draw(6))
    length = content.shape[2]
    index = np.arange(length)[:, None] - np.arange(length)[None] + length - 1
    factors = jnp.asarray(np.random.default_rng(0).normal(size=(2, 3, length, length)).astype(np.float32))

    def gathered(content, positions):
        own = "bnth,ntsh->bnts" if reads else "bnsh,ntsh->bnts"
        return jnp.sum(factors * jnp.einsum(own, content, positions[:, index]))

    def shifted(content, positions):
        function = disentangled.content_to_position if reads else disentangled.position_to_content
        return jnp.sum(factors * function(content, positions))

    expected = jax.grad(gathered, argnums=(0, 1))(content, positions)
    found = jax.grad(shifted, argnums=(0, 1))(content, positions)
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-5)
