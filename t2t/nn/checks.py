"""Checks that configs run on their own fields: each error names the field, its value, what is allowed and a repair."""

from collections.abc import Sequence
from typing import Any


def check(condition: bool, config: Any, field: str, *, allowed: str, repair: str) -> None:
    """Raises ValueError about one field of a config unless `condition` holds."""
    if not condition:
        value = getattr(config, field)
        raise ValueError(f"{type(config).__name__}.{field} = {value!r}: must be {allowed}. {repair}")


def check_positive(config: Any, *fields: str) -> None:
    """Raises ValueError unless each of the fields is a positive integer."""
    for field in fields:
        value = getattr(config, field)
        is_positive = isinstance(value, int) and not isinstance(value, bool) and value > 0
        check(is_positive, config, field, allowed="a positive integer", repair=f"Set {field} to 1 or more.")


def check_fraction(config: Any, *fields: str) -> None:
    """Raises ValueError unless each of the fields is a rate in [0, 1)."""
    for field in fields:
        value = getattr(config, field)
        check(0.0 <= value < 1.0, config, field, allowed="in [0, 1)", repair=f"Set {field}=0.0 to turn it off.")


def check_choice(config: Any, field: str, choices: Sequence[Any]) -> None:
    """Raises ValueError unless the field is one of the choices."""
    names = ", ".join(repr(choice) for choice in choices)
    check(getattr(config, field) in choices, config, field, allowed=f"one of {names}", repair=f"Pick one for {field}.")


def check_deviation(config: Any, *fields: str) -> None:
    """Raises ValueError unless each of the fields is None or a standard deviation of initial values, 0 or more."""
    for field in fields:
        value = getattr(config, field)
        repair = f"Set {field}=None for the published rule of its size, or a number such as 0.02."
        check(value is None or value >= 0, config, field, allowed="None or 0 or more", repair=repair)
