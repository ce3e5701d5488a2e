import types

import pytest

from t2t.nn import checks


def test_choice_names_what_is_possible():
    config = types.SimpleNamespace(activation="swish")
    with pytest.raises(ValueError, match="SimpleNamespace.activation = 'swish': must be one of 'relu', 'gelu'"):
        checks.check_choice(config, "activation", ("relu", "gelu"))
    checks.check_choice(config, "activation", ("swish",))


@pytest.mark.parametrize("value", [0, -3, True, 2.0])
def test_positive_means_a_whole_number_above_zero(value):
    with pytest.raises(ValueError, match="must be a positive integer. Set size to 1 or more"):
        checks.check_positive(types.SimpleNamespace(size=value), "size")


def test_deviation_may_be_none_or_zero():
    checks.check_deviation(types.SimpleNamespace(a=None, b=0.0, c=0.02), "a", "b", "c")
