"""What is known of each family from outside: tiny models of transformers to compare with, and published counts.

A module for each family, found by looking: `CASES` (see `Case`) and `COUNTS`, preset -> parameters of the bare model
and with the heads of pretraining. Whoever adds a family adds a module and edits no test.
"""

import dataclasses
import importlib
import pkgutil
from collections.abc import Callable, Iterable
from typing import Any, Literal

import pytest


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """A class of transformers, its config, and what its inputs look like; every size differs from every other."""

    name: str
    architecture: str
    config: dict[str, Any]
    side: Literal["encoder", "decoder", "both"] = "encoder"
    num_types: int = 0
    """Sentence types that are given; 0 = the model takes none."""
    num_languages: int = 0
    """Languages of tokens that are given; 0 = none are."""
    pad_id: int = 0
    pads_left: bool = False
    choices: bool = False
    """Whether inputs have an axis of choices."""
    unread: frozenset[str] = frozenset()
    """Parameters that transformers' class has and never uses, or holds twice."""
    end: int | None = None
    """The token that ends the encoder's texts, which the decoder reads shifted right by one; None = its own texts."""
    exported: str | None = None
    """The class that its export is, where that is another."""
    is_decoding: bool = False
    """Whether greedy generation is compared too."""
    is_daily: bool = False
    """Whether it is tested beside the first case of its class, for models that everybody uses."""
    is_of_derived_family: bool = False
    """Whether its family only renames and resizes another, so that one of its cases a day is enough."""

    def __str__(self) -> str:
        return self.name


def _modules() -> list[Any]:
    return [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]


def all_cases() -> tuple[Case, ...]:
    """The cases of every family; a module says with `IS_DERIVED = True` that its family derives from another."""
    return tuple(
        dataclasses.replace(case, is_of_derived_family=getattr(module, "IS_DERIVED", False))
        for module in _modules()
        for case in module.CASES
    )


def marked(cases: Iterable[Case], *, by: Callable[[Case], str] = lambda case: case.architecture) -> list[Any]:
    """The cases as parameters of a test, all but the first of each class (or by another rule) nightly.

    Of a family that derives from another the first case alone is not.
    """
    seen: set[str] = set()
    found = []
    for case in cases:
        group = f"derived {case.name.split('-')[0]}" if case.is_of_derived_family else by(case)
        found.append(
            pytest.param(case, id=case.name, marks=[pytest.mark.nightly] if group in seen and not case.is_daily else [])
        )
        seen.add(group)
    return found


def all_counts() -> dict[str, tuple[int, int]]:
    """The counts of every preset that has one."""
    return {name: counts for module in _modules() for name, counts in module.COUNTS.items()}
