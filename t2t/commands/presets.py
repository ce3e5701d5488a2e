"""`t2t presets [NAME]`: the published models that can be built, and one of them in detail."""

import dataclasses
import difflib
import gc
import inspect
import math
from collections.abc import Sequence
from typing import Annotated, Any

import tyro

from t2t import config_values
from t2t.commands import arguments as arguments_lib
from t2t.errors import UsageError

MIB = 2**20

WIDTHS = {"float32": 4, "bfloat16": 2, "int8": 1}
"""Bytes of a parameter."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Presets:
    """List the published models that can be built, or show every setting and the size of one.

    Sizes are of the bare model: parameters, mebibytes of them in float32, bfloat16 and int8, and the operations of a
    training step for each token (forward and backward, at --length). A model without a head has no output to learn:
    what predicts words takes 6 operations more for each value of its token table and each predicted token.
    """

    name: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[NAME]")] = None
    """A preset, such as t5-small; without one all are listed."""
    names: bool = False
    """List the names alone, which takes no time."""
    length: int = 512
    """Tokens of a row, of each side, for the operations of a token."""


def run(arguments: Sequence[str]) -> int:
    """List the presets, or show one."""
    options = arguments_lib.parse(Presets, arguments, command="presets")
    if options.length < 1:
        raise UsageError(f"--length {options.length}: a row has at least one token")
    import t2t

    names = t2t.presets()
    if options.name is None:
        _list(names, options)
        return 0
    if options.name not in names:
        close = difflib.get_close_matches(options.name, names, n=3, cutoff=0.4)
        hint = f"the closest are {', '.join(close)}" if close else "t2t presets lists all"
        raise UsageError(f"there is no preset {options.name}; {hint}")
    _explain(options.name, options.length)
    return 0


def _list(names: Sequence[str], options: Presets) -> None:
    if options.names:
        print("\n".join(names))
        return
    types = "".join(f"{f'{kind} MiB':>14}" for kind in WIDTHS)
    print(f"{'preset':<36}{'parameters':>16}{'layers':>8}{'width':>7}{types}{'FLOPs/token':>13}")
    gc.disable()  # tracing makes millions of objects and hardly any garbage: looking for it takes a third of the time
    try:
        for name in names:
            print(_row(name, _size(name, options.length)), flush=True)
    finally:
        gc.enable()


def _row(name: str, size: "_Size") -> str:
    layers = "+".join(map(str, size.layers))
    megabytes = "".join(f"{size.parameters * width / MIB:>14,.1f}" for width in WIDTHS.values())
    return f"{name:<36}{size.parameters:>16,}{layers:>8}{size.width:>7}{megabytes}{size.flops:>13.3g}"


def _explain(name: str, length: int) -> None:
    import t2t
    from t2t import families

    family = next(family for family in families.all_families().values() if name in family.presets)
    size = _size(name, length)
    print(inspect.cleandoc(families.docstring(family)))
    print()
    sizes = {
        "parameters": f"{size.parameters:,}",
        **{f"MiB in {kind}": f"{size.parameters * width / MIB:,.2f}" for kind, width in WIDTHS.items()},
        f"training FLOPs per token at length {length}": f"{size.flops:.4g}",
    }
    arguments_lib.print_columns(config_values.flatten(t2t.preset(name)) | sizes)


@dataclasses.dataclass(frozen=True)
class _Size:
    parameters: int
    layers: tuple[int, ...]
    width: int
    flops: float


def _size(name: str, length: int) -> _Size:
    import jax

    import t2t
    from t2t.models.base import Network
    from t2t.train import flops

    config = t2t.preset(name)
    stacks = [getattr(config, part) for part in ("stack", "encoder", "decoder") if hasattr(config, part)]
    shapes = Network(config).shapes()
    batch: dict[str, Any] = {
        key: jax.ShapeDtypeStruct((1, length), "int32") for key in config.example() if key.endswith("_input_tokens")
    }
    num_tokens = length * len(batch)
    if config.head is None:
        batch["encoder_predict_positions"] = jax.ShapeDtypeStruct((1, 0), "int32")
    step = flops.step_flops(shapes, batch, applications=flops.applications(config))
    return _Size(
        parameters=sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(shapes)),
        layers=tuple(stack.num_layers for stack in stacks),
        width=config.d_model,
        flops=step / num_tokens,
    )
