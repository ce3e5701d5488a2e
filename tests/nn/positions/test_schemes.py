import typing

import jax
import pytest

from t2t.nn.positions.context import PositionContext
from t2t.nn.positions.schemes import Position


@pytest.mark.parametrize("scheme", typing.get_args(Position))
def test_every_scheme_maps_a_context_to_one_of_the_same_lengths(scheme):
    module = scheme().make(3, head_dim=4, name="position")
    context = PositionContext(length=2, key_length=5)
    out, _ = module.init_with_output(jax.random.key(0), context)
    assert isinstance(out, PositionContext)
    assert (out.length, out.key_length) == (2, 5)
    assert (out.bias is None) != (out.rotary is None)
