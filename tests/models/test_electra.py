"""A pair shares what it shall: parameters are held once, and both models read them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import traverse_util

from t2t import heads
from t2t.families import electra
from t2t.models.base import Network
from t2t.models.electra import DISCRIMINATOR, GENERATOR, SHARINGS, ElectraConfig
from tests.models import electra_tiny

TABLES = {"embed/embedding", "embed/positions", "embed/types"}
NORM = {"embed/norm/scale", "embed/norm/bias"}


def paths(tree) -> set[str]:
    return set(traverse_util.flatten_dict(tree, sep="/"))


@pytest.mark.parametrize("sharing", SHARINGS)
def test_what_is_shared_is_held_once(sharing):
    config = electra_tiny.pair(sharing)
    networks = config.networks()
    own = paths(networks[GENERATOR].shapes())
    whole = paths(Network(config.generator).shapes())
    if sharing in ("none", "disentangled"):
        assert own == whole
    elif sharing == "embeddings":
        assert whole - own == TABLES | NORM
    else:
        assert own == {path for path in whole if path.startswith("head/")}
    assert paths(networks[DISCRIMINATOR].shapes()) == paths(Network(config.discriminator).shapes())
    for network in networks.values():
        assert paths(network.init(jax.random.key(0))) == paths(network.shapes()) == paths(network.logical_axes())


@pytest.mark.parametrize("sharing", SHARINGS)
def test_the_whole_models_and_where_their_parameters_are_kept(sharing):
    config = electra_tiny.pair(sharing)
    params = electra_tiny.params(config)
    kept = {role: traverse_util.flatten_dict(tree, sep="/") for role, tree in params.items()}
    for role, network in config.networks().items():
        whole = traverse_util.flatten_dict(network.whole(params), sep="/")
        assert set(whole) >= paths(Network(config.configs()[role]).shapes())
        for path in paths(Network(config.configs()[role]).shapes()):
            origins = config.origins(role, path)
            np.testing.assert_array_equal(whole[path], sum(kept[origin][path] for origin in origins))
    assert config.origins(GENERATOR, "head/transform/kernel") == (GENERATOR,)
    table = {
        "none": ((GENERATOR,), (DISCRIMINATOR,)),
        "embeddings": ((DISCRIMINATOR,), (DISCRIMINATOR,)),
        "all": ((DISCRIMINATOR,), (DISCRIMINATOR,)),
        "disentangled": ((GENERATOR,), (GENERATOR, DISCRIMINATOR)),
    }[sharing]
    assert tuple(config.origins(role, "embed/embedding") for role in (GENERATOR, DISCRIMINATOR)) == table


def test_a_fresh_difference_is_zero_and_sends_no_gradient_to_the_generator():
    config = electra_tiny.pair("disentangled")
    networks = config.networks()
    params = {role: network.init(jax.random.key(0)) for role, network in networks.items()}
    assert not np.any(params[DISCRIMINATOR]["embed"]["embedding"])
    gradients = jax.grad(lambda p: jnp.sum(networks[DISCRIMINATOR].whole(p)["embed"]["embedding"] ** 2))(params)
    assert not np.any(gradients[GENERATOR]["embed"]["embedding"])
    assert np.any(gradients[DISCRIMINATOR]["embed"]["embedding"])


def test_pairs_that_cannot_share_are_refused():
    good = electra_tiny.pair()
    with pytest.raises(ValueError, match="embed/embedding"):
        ElectraConfig(
            generator=good.generator,
            discriminator=dataclasses.replace(
                good.discriminator, embed=dataclasses.replace(good.discriminator.embed, dim=4)
            ),
        )
    with pytest.raises(ValueError, match="share less"):
        dataclasses.replace(good, sharing="all")
    with pytest.raises(ValueError, match=r"head=heads.MaskedLM\(\)"):
        ElectraConfig(generator=good.discriminator, discriminator=good.discriminator)
    small = electra.with_head(
        electra.electra(d_model=8, d_ff=8, num_layers=1, num_heads=1, vocab_size=9), heads.MaskedLM()
    )
    with pytest.raises(ValueError, match="9 embedding rows and the discriminator 50"):
        ElectraConfig(generator=small, discriminator=good.discriminator, sharing="none")
