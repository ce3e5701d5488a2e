import typing

import jax
import pytest

from t2t.nn.positions.context import PositionContext
from t2t.nn.positions.relative import RelativeEmbeddings
from t2t.nn.positions.schemes import Position

SIZES = {RelativeEmbeddings: {"dim": 12, "max_distance": 4}}


@pytest.mark.parametrize("scheme", typing.get_args(Position))
def test_every_scheme_maps_a_context_to_one_of_the_same_lengths(scheme):
    module = scheme(**SIZES.get(scheme, {})).make(3, head_dim=4, name="position")
    length = 5 if scheme is RelativeEmbeddings else 2  # which are of one length alone
    context = PositionContext(length=length, key_length=5)
    out, _ = module.init_with_output(jax.random.key(0), context)
    assert isinstance(out, PositionContext)
    assert (out.length, out.key_length) == (length, 5)
    assert sum(found is not None for found in (out.bias, out.rotary, out.relative)) == 1
