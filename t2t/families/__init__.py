"""Model families as data: presets, Hugging Face name tables, config maps, tokenizer kinds.

Every module of this package with a value `FAMILY` is a family; nothing else lists them.
"""

import dataclasses
import difflib
import functools
import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any

from t2t import heads
from t2t.hf import config_map, table
from t2t.models import base


@functools.cache
def all_families() -> Mapping[str, config_map.Family]:
    """Every family, by transformers' model_type, in alphabetical order of their files."""
    modules = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    families = [module.FAMILY for module in modules if hasattr(module, "FAMILY")]
    return {family.model_type: family for family in families}


def docstring(family: config_map.Family) -> str:
    """What the file of a family says about it: its sizes, its paper, and how ours differs."""
    return next(
        module.__doc__
        for module in map(importlib.import_module, (f"{__name__}.{m.name}" for m in pkgutil.iter_modules(__path__)))
        if getattr(module, "FAMILY", None) is family
    )


def by_model_type(model_type: str | None) -> config_map.Family:
    """The family of a config.json's `model_type`.

    Raises:
        ValueError: no family of t2t has it.
    """
    known = all_families()
    if model_type not in known:
        raise ValueError(f"config.json has model_type {model_type!r}; t2t knows {', '.join(sorted(known))}")
    return known[model_type]


def presets() -> tuple[str, ...]:
    """Names of all published models, family by family."""
    return tuple(name for family in all_families().values() for name in family.presets)


def preset(name: str, *, head: heads.Head | None = None) -> Any:
    """The config of a published model: bare, or with the head asked for.

    Raises:
        ValueError: an unknown name, or a head that the family does not have.
    """
    for family in all_families().values():
        if name in family.presets:
            return family.presets[name](head=None if isinstance(head, heads.Bare) else head)
    close = difflib.get_close_matches(name, presets(), n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else "`t2t presets` lists them."
    raise ValueError(f"there is no preset {name!r}; {hint}")


def with_dropout(config: Any, rate: float) -> Any:
    """The same model with one rate of dropout everywhere, for fine-tuning what was pretrained with another."""
    if isinstance(config, tuple):
        return tuple(with_dropout(item, rate) for item in config)
    if not dataclasses.is_dataclass(config):
        return config
    fields = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    changed = {name: rate if name == "dropout" else with_dropout(value, rate) for name, value in fields.items()}
    return dataclasses.replace(config, **changed)


def bindings(family: config_map.Family, config: Any) -> tuple[table.Binding, ...]:
    """The tensors of a model as transformers' class for it names them."""
    shapes = base.Network(config).shapes_by_path()
    task = getattr(config.head, "task", None)
    return family.table.bind(shapes, base=family.has_base(config), task=task)


def expressing(config: Any) -> tuple[config_map.Family, dict[str, Any]]:
    """The family whose class of transformers computes what a config means, and its attributes in config.json.

    Where several do, it is the one that the config names.

    Raises:
        InexpressibleError: there is none; the message says for each family what stands against it.
    """
    reasons = []
    named = getattr(config, "family", None)
    for family in sorted(all_families().values(), key=lambda family: family.model_type != named):
        try:
            attributes = {**family.to_hf(config), "architectures": [family.architecture(config)]}
            names = {name for binding in bindings(family, config) for name in binding.written}
            written = frozenset(name.removeprefix(family.table.base) for name in names)
            lost = config_map.differences(config, family.from_hf(attributes, written))
        except (config_map.InexpressibleError, table.MisfitError) as error:
            reasons.append(f"{family.model_type}: {error}")
            continue
        if not lost:
            return family, attributes
        reasons.append(f"{family.model_type}: {'; '.join(lost[:6])}")
    raise config_map.InexpressibleError(
        "no class of transformers that t2t exports to computes what this model does:\n  " + "\n  ".join(reasons)
    )
