"""Adaptive embeddings and softmax against one word at a time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.nn.adaptive import AdaptiveEmbedConfig, AdaptiveSoftmaxHead, Clusters
from tests.models import tiny
from tests.reference import relative

VOCAB, WIDTH = 11, 8
KINDS = {
    "one": (Clusters(), 8),
    "narrow": (Clusters(), 6),
    "clusters": (Clusters(cutoffs=(3, 7)), 8),
    "clusters-narrow": (Clusters(cutoffs=(4,)), 6),
    "falling": (Clusters(cutoffs=(3, 5, 9), divisor=2), 8),
}


def _unboxed(variables):
    return jax.tree.map(lambda box: box.value, variables["params"], is_leaf=lambda leaf: hasattr(leaf, "value"))


def _random(params, seed):
    return jax.tree.map(jnp.asarray, tiny.random_like(params, seed))


@pytest.fixture(params=KINDS)
def kind(request):
    clusters, dim = KINDS[request.param]
    config = AdaptiveEmbedConfig(vocab_size=VOCAB, dim=dim, d_model=WIDTH, clusters=clusters, scale=WIDTH**0.5)
    head = AdaptiveSoftmaxHead(clusters=clusters, dim=dim, is_projected=config.is_projected)
    embed, scores = config.make(), head.make(vocab_size=VOCAB, d_model=WIDTH)
    tokens = jnp.arange(VOCAB, dtype=jnp.int32)[None]
    embed_params = _random(_unboxed(embed.init(jax.random.key(0), tokens)), 1)
    table = embed.apply({"params": embed_params}, method="table")
    states = jnp.asarray(np.random.default_rng(2).normal(size=(2, 3, WIDTH)), jnp.float32)
    head_params = _random(_unboxed(scores.init(jax.random.key(0), states, table)), 3)
    return config, embed, embed_params, scores, head_params, tokens, states


def test_words_are_embedded_by_their_cluster(kind):
    config, embed, params, *_, tokens, _ = kind
    found = embed.apply({"params": params}, tokens)
    clusters = config.clusters
    expected = relative.adaptive_embedding(
        np.asarray(tokens), params, scale=config.scale, cutoffs=clusters.cutoffs, divisor=clusters.divisor
    )
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=1e-5)


def test_log_probabilities_of_each_word(kind):
    config, embed, embed_params, scores, head_params, _, states = kind
    table = embed.apply({"params": embed_params}, method="table")
    found = np.asarray(scores.apply({"params": head_params}, states, table))
    clusters = config.clusters
    expected = [
        [relative.adaptive_log_probability(state, word, embed_params, head_params, cutoffs=clusters.cutoffs,
                                           divisor=clusters.divisor, vocab_size=VOCAB) for word in range(VOCAB)]
        for state in np.asarray(states).reshape(-1, WIDTH)
    ]  # fmt: skip
    np.testing.assert_allclose(found.reshape(-1, VOCAB), expected, atol=1e-5, rtol=1e-5)
    np.testing.assert_allclose(np.exp(found).sum(axis=-1), 1, atol=1e-5)


def test_an_unknown_id_is_seen_at_once(kind):
    _, embed, params, *_ = kind
    found = embed.apply({"params": params}, jnp.array([[1, VOCAB]], jnp.int32))
    assert np.isfinite(found[0, 0]).all()
    assert np.isnan(found[0, 1]).all()


def test_gradients_reach_every_cluster():
    clusters, dim = KINDS["falling"]
    config = AdaptiveEmbedConfig(vocab_size=VOCAB, dim=dim, d_model=WIDTH, clusters=clusters)
    embed = config.make()
    tokens = jnp.arange(VOCAB, dtype=jnp.int32)[None]
    params = _unboxed(embed.init(jax.random.key(0), tokens))
    gradients = jax.grad(lambda p: jnp.sum(embed.apply({"params": p}, tokens) ** 2))(params)
    for leaf in jax.tree.leaves(gradients):
        assert np.isfinite(leaf).all()
        assert np.abs(leaf).max() > 0


def test_cutoffs_lie_within_the_vocabulary():
    with pytest.raises(ValueError, match="cutoffs below vocab_size = 5"):
        AdaptiveEmbedConfig(vocab_size=5, dim=4, clusters=Clusters(cutoffs=(2, 5)))
    with pytest.raises(ValueError, match="positive and rising"):
        Clusters(cutoffs=(4, 2))
