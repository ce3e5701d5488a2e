"""What decays and what does not."""

import pytest

from t2t.train import roles

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
    """By role: never norms, biases or tables of relative positions, whatever their rank (A66)."""
    assert roles.decay_mask(nest(EXPECTED)) == nest(EXPECTED)


def test_unknown_names_are_an_error():
    with pytest.raises(ValueError, match="model/encoder/gate"):
        roles.decay_mask(nest({"model/encoder/gate": 0}))
