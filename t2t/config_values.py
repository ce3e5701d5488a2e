"""Configs as values: their types looked at, to JSON and back, and their differences in words.

They hold frozen dataclasses, tuples, dictionaries with names, and scalars. This module imports none of the classes.
"""

import dataclasses
import difflib
import importlib
import math
import types
import typing
from collections.abc import Iterator
from typing import Any, Literal


def check_types(value: Any) -> None:
    """Refuses settings of another type than their field has: a list for a tuple, a NumPy scalar, 4.0 for an int, NaN.

    Python does not look, and the run would end somewhere deep, or go on with a batch of True rows.

    Raises:
        TypeError: naming every such setting, its value and what is allowed.
    """
    wrong = list(_wrong_types(value, type(value), ""))
    if wrong:
        raise TypeError("; ".join(wrong))


def _wrong_types(value: Any, hint: Any, path: str) -> Iterator[str]:
    inner = typing.get_args(hint)
    if not _is_a(value, hint):
        names = " or ".join(getattr(kind, "__name__", str(kind)) for kind in (inner if _is_union(hint) else (hint,)))
        names = str(hint) if typing.get_origin(hint) in (tuple, dict) else names.replace("NoneType", "None")
        yield f"{path} is {value!r} ({type(value).__name__}); it must be {names}"
    elif isinstance(value, float) and math.isnan(value):
        yield f"{path} is nan; it must be a number"
    elif dataclasses.is_dataclass(value):
        hints = typing.get_type_hints(type(value))
        for field in dataclasses.fields(value):
            yield from _wrong_types(getattr(value, field.name), hints[field.name], f"{path}.{field.name}".lstrip("."))
    elif typing.get_origin(hint) is tuple and inner[1:] == (...,):
        for index, item in enumerate(value):
            yield from _wrong_types(item, inner[0], f"{path}[{index}]")
    elif isinstance(value, dict):
        entry = next((typing.get_args(kind) for kind in (hint, *inner) if typing.get_origin(kind) is dict), ())
        for key, item in value.items() if entry else ():
            yield from _wrong_types(item, entry[1], f"{path}.{key}")


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def _is_a(value: Any, hint: Any) -> bool:
    """Whether a value is of a type, looking into neither. Types of kinds that no config of t2t has are not judged."""
    if _is_union(hint):
        return any(_is_a(value, kind) for kind in typing.get_args(hint))
    if typing.get_origin(hint) is Literal:
        return value in typing.get_args(hint)
    kind = typing.get_origin(hint) or hint
    if kind in (bool, int, str, types.NoneType):
        return type(value) is kind  # True is an int to Python, and np.float64 a float
    if kind is float:
        return type(value) in (int, float)
    return not (kind in (tuple, dict) or dataclasses.is_dataclass(kind)) or isinstance(value, kind)


def to_json(value: Any) -> Any:
    """Plain JSON values for a config: each dataclass becomes {"class": "t2t.config.Train", its fields...}.

    Sequences are tuples (frozen like everything else) and become lists; keys of dictionaries are strings.

    Raises:
        TypeError: For values that `from_json` could not give back, naming where they stand.
    """
    return _to_json(value, "config")


def _to_json(value: Any, path: str) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: _to_json(getattr(value, f.name), f"{path}.{f.name}") for f in dataclasses.fields(value)}
        return {"class": f"{type(value).__module__}.{type(value).__qualname__}", **fields}
    if isinstance(value, tuple):
        return [_to_json(item, f"{path}.{i}") for i, item in enumerate(value)]
    if isinstance(value, dict) and "class" not in value and all(isinstance(key, str) for key in value):
        return {key: _to_json(item, f"{path}.{key}") for key, item in value.items()}
    if value is None or type(value) in (bool, int, float, str):
        return value
    hint = "write a tuple" if isinstance(value, list) else "configs hold dataclasses, tuples, dictionaries and scalars"
    raise TypeError(f"{path} is {value!r} ({type(value).__name__}), which has no form in JSON: {hint}")


def from_json(value: Any, *, modules: tuple[str, ...] | None = None) -> Any:
    """The config that `to_json` wrote.

    Args:
        value: What `to_json` returned, also after a trip through a file.
        modules: Modules besides those of t2t whose dataclasses may be built; None takes the `data.modules` that an
            experiment names itself.

    Raises:
        ValueError: For classes of other modules, and for fields that the class does not have.
    """
    if modules is None:
        data = value.get("data") if isinstance(value, dict) else None
        modules = tuple(data.get("modules", ())) if isinstance(data, dict) else ()
    if isinstance(value, list):
        return tuple(from_json(item, modules=modules) for item in value)
    if not isinstance(value, dict):
        return value
    fields = {key: from_json(item, modules=modules) for key, item in value.items() if key != "class"}
    return _find_class(value["class"], modules)(**fields) if "class" in value else fields


def _find_class(path: str, modules: tuple[str, ...]) -> Any:
    module_name, _, name = path.rpartition(".")
    if module_name.partition(".")[0] != "t2t" and module_name not in modules:
        raise ValueError(f"the config names the class {path}, but only classes of t2t and of data.modules are loaded")
    try:
        found = getattr(importlib.import_module(module_name), name, None)
    except ModuleNotFoundError as error:
        raise ValueError(f"the config names the class {path}, but there is no module {error.name}") from error
    if not (isinstance(found, type) and dataclasses.is_dataclass(found)):
        raise ValueError(f"the config names the class {path}, but {module_name} has no such dataclass")
    return lambda **fields: _build(found, fields)


def _build(cls: type, fields: dict[str, Any]) -> Any:
    known = [field.name for field in dataclasses.fields(cls)]
    for name in fields:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(known)}"
            raise ValueError(f"{cls.__name__} has no field {name}; {hint}")
    missing = [
        field.name
        for field in dataclasses.fields(cls)
        if field.name not in fields and field.default is field.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise ValueError(f"{cls.__name__} needs {', '.join(missing)}")
    return cls(**fields)


def flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    """The leaves of a config by dotted path, classes included: {"train.steps": 100, "mesh": "Mesh", ...}."""
    tree = to_json(value)
    leaves: dict[str, Any] = {}

    def visit(node: Any, path: str) -> None:
        children = dict(enumerate(node)) if isinstance(node, list) else node
        if not isinstance(children, dict) or not children:
            leaves[path] = node
            return
        if "class" in children:
            leaves[path] = children["class"].rpartition(".")[2]
        for name, child in children.items():
            if name != "class":
                visit(child, f"{path}.{name}" if path else str(name))

    visit(tree, prefix)
    return leaves


def difference(old: Any, new: Any, *, ignore: tuple[str, ...] = ()) -> tuple[str, ...]:
    """One readable line per setting that differs: ("train.steps: 100 -> 200",). Empty where nothing does.

    Args:
        old: The config on the left of the arrows.
        new: The config on the right.
        ignore: Dotted paths that may differ, with everything below them.
    """
    before, after = flatten(old), flatten(new)
    absent = object()
    lines = []
    for path in [*before, *(path for path in after if path not in before)]:
        left, right = before.get(path, absent), after.get(path, absent)
        if left == right or any(path == name or path.startswith(f"{name}.") for name in ignore):
            continue
        show = ["(absent)" if side is absent else str(side) for side in (left, right)]
        lines.append(f"{path or 'config'}: {show[0]} -> {show[1]}")
    return tuple(lines)
