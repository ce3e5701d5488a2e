"""What is known of each family from outside: tiny models of transformers to compare with, and published counts.

A module for each family, of the name of its file in `t2t/families` and found by looking: `CASES` (see `Case`) and
`COUNTS`, preset -> parameters of the bare model and with the heads of pretraining. Where there is something to say,
these besides:

    IS_DERIVED           True: the family only renames and resizes another
    COUNTS_POSITIONS     True: transformers counts positions in the text, so that padding may stand before it
    SURE_OF_ITS_INPUT    True: a fresh model predicts the token that it reads, since its output is its embedding, and
                         that is normalised or large; elsewhere a fresh model prefers no token
    READ_AS_OTHERS       classes that t2t reads as another class, and that no case has
    LABELS               (attributes of config.json, head asked for, fields that it then has), one row for each rule
    SPREADS              pattern of parameters -> standard deviation by the config, where papers say another one than
                         transformers draws with; None: transformers draws no model of this family that t2t reads

Whoever adds a family adds a module and edits no test.
"""

import collections
import dataclasses
import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, Literal

import pytest


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """A class of transformers, its config, and what its inputs look like; every size differs from every other."""

    name: str
    architecture: str
    config: dict[str, Any]
    family: str = ""
    """The `model_type` of its family, filled in by `all_cases`."""
    side: Literal["encoder", "decoder", "both"] = "encoder"
    length: int = 29
    """Tokens of a row; more than its relative positions tell apart."""
    num_types: int = 0
    """Sentence types that are given; 0 = the model takes none."""
    num_languages: int = 0
    """Languages of tokens that are given; 0 = none are."""
    pad_id: int = 0
    pads_left: bool = False
    counts_positions: bool = False
    """Whether transformers counts positions in the text, filled in by `all_cases`."""
    choices: bool = False
    """Whether inputs have an axis of choices."""
    unread: frozenset[str] = frozenset()
    """Parameters that transformers' class has and never uses, or holds twice."""
    untrained: frozenset[str] = frozenset()
    """Parameters that transformers' class reads and gives no gradient."""
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

    @property
    def is_untied(self) -> bool:
        """Whether its scores of the vocabulary have a table of their own, and its config says so."""
        return self.config.get("tie_word_embeddings") is False


@functools.cache
def _modules() -> Mapping[str, ModuleType]:
    """The module of each family."""
    names = [found.name for found in pkgutil.iter_modules(__path__)]
    families = [importlib.import_module(f"t2t.families.{name}").FAMILY.model_type for name in names]
    return {family: importlib.import_module(f"{__name__}.{name}") for family, name in zip(families, names, strict=True)}


def said(name: str, default: Any = None) -> dict[str, Any]:
    """What the module of each family says under a name, by family."""
    return {family: getattr(module, name, default) for family, module in _modules().items()}


def all_cases() -> tuple[Case, ...]:
    """The cases of every family."""
    derived, counting = said("IS_DERIVED", False), said("COUNTS_POSITIONS", False)
    return tuple(
        dataclasses.replace(
            case, family=family, is_of_derived_family=derived[family], counts_positions=counting[family]
        )
        for family, cases in said("CASES").items()
        for case in cases
    )


_OF_HEADS = frozenset({"num_labels", "tie_word_embeddings", "eos_token_id", "pad_token_id"})
"""Attributes that a case says of its head, or of its texts."""


def further_cases() -> tuple[Case, ...]:
    """A second configuration of each class that has a single case, with all that another case of its family says.

    That is the one which differs from it in most attributes that are no matter of the head.
    """
    cases = all_cases()
    numbers = collections.Counter(case.architecture for case in cases)
    return tuple(
        _changed_as(case, max((other for other in cases if other.family == case.family), key=lambda o: _apart(case, o)))
        for case in cases
        if numbers[case.architecture] == 1
    )


def _body(case: Case) -> dict[str, Any]:
    return {name: value for name, value in case.config.items() if name not in _OF_HEADS}


def _apart(case: Case, other: Case) -> int:
    return sum(case.config.get(name) != value for name, value in _body(other).items())


def _changed_as(case: Case, other: Case) -> Case:
    return dataclasses.replace(
        case,
        name=f"{case.name}-as-{other.name}",
        config={**case.config, **_body(other)},
        length=min(case.length, other.length),  # positions in a table may be the other's
        num_types=other.num_types,
        num_languages=other.num_languages,
        is_daily=False,
    )


def by_family(case: Case) -> str:
    """The group of a case, for `marked`."""
    return case.family


def marked(cases: Iterable[Case], *, by: Callable[[Case], str] = lambda case: case.architecture) -> list[Any]:
    """The cases as parameters of a test, all but the first of each class (or by another rule) nightly.

    Of a family that derives from another the first case alone is not.
    """
    seen: set[str] = set()
    found = []
    for case in cases:
        group = case.family if case.is_of_derived_family else by(case)
        found.append(
            pytest.param(case, id=case.name, marks=[pytest.mark.nightly] if group in seen and not case.is_daily else [])
        )
        seen.add(group)
    return found


def first_of_each(cases: Iterable[Case], by: Callable[[Case], str]) -> list[Case]:
    """The first case of each group, those of derived families among them."""
    found: dict[str, Case] = {}
    for case in cases:
        found.setdefault(by(case), case)
    return list(found.values())


def all_counts() -> dict[str, tuple[int, int]]:
    """The counts of every preset."""
    return {name: counts for found in said("COUNTS").values() for name, counts in found.items()}
