"""What decays and what does not."""

import pytest
from flax import traverse_util

from t2t import families, heads
from t2t.models import base
from t2t.train import roles
from tests.families.test_families import models

EXPECTED = {
    "model/embed/embedding": True,
    "model/embed/positions": True,
    "model/embed/types": True,
    "model/embed/norm/scale": False,
    "model/embed/norm/bias": False,
    "model/encoder/position/embedding": False,
    "model/encoder/layers_0/attention/query/kernel": True,
    "model/encoder/layers_0/attention/query/bias": False,
    "model/encoder/layers_0/attention_norm/scale": False,
    "model/encoder/prefix_0/feed_forward/down/kernel": True,
    "model/decoder/final_norm/scale": False,
    "model/pooler/kernel": True,
    "model/head/kernel": True,
    "model/head/bias": False,
    "model/head/norm/bias": False,
}


def nest(flat):
    tree = {}
    for path, value in flat.items():
        *parents, name = path.split("/")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
        node[name] = value
    return tree


def test_decay_mask():
    """By role: never norms, biases or tables of relative positions, whatever their rank."""
    assert roles.decay_mask(nest(EXPECTED)) == nest(EXPECTED)


def test_unknown_names_are_an_error():
    with pytest.raises(ValueError, match="model/encoder/gate"):
        roles.decay_mask(nest({"model/encoder/gate": 0}))


@pytest.mark.slow
@pytest.mark.parametrize("config", models((heads.PRETRAINING, heads.SequenceClassification(), None)))
def test_matrices_decay_in_every_family_and_norms_and_biases_do_not(config):
    """By the names of transformers, whose norms families call as they like: what has one axis there, or bias in it."""
    decays = traverse_util.flatten_dict(roles.decay_mask(base.Network(config).shapes()), sep="/")
    bindings = families.bindings(families.expressing(config)[0], config)
    assert {slot.path for binding in bindings for slot in binding.slots} == set(decays)
    for binding in bindings:
        expected = len(binding.shape) > 1 and "bias" not in binding.key
        assert {decays[slot.path] for slot in binding.slots} == {expected}, binding.key
