"""`t2t presets [NAME]`: the published models that can be built, and one of them in detail."""

import dataclasses
import difflib
from collections.abc import Sequence
from typing import Annotated

import tyro

from t2t import config as config_lib
from t2t.commands import arguments as arguments_lib
from t2t.errors import UsageError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Presets:
    """List the published models that can be built, or show every setting and the parameters of one."""

    name: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[NAME]")] = None
    """A preset, such as t5-small; without one all names are listed."""
    count: bool = False
    """Count the parameters of every listed preset."""


def run(arguments: Sequence[str]) -> int:
    """List the presets, or show one."""
    options = arguments_lib.parse(Presets, arguments, command="presets")
    import t2t

    names = t2t.presets()
    if options.name is None:
        for name in names:
            print(f"{name:<40}{t2t.count_parameters(t2t.preset(name)):>18,}" if options.count else name, flush=True)
        return 0
    if options.name not in names:
        close = difflib.get_close_matches(options.name, names, n=3, cutoff=0.4)
        hint = f"the closest are {', '.join(close)}" if close else "t2t presets lists all"
        raise UsageError(f"there is no preset {options.name}; {hint}")
    preset = t2t.preset(options.name)
    for path, value in config_lib.flatten(preset).items():
        print(f"{path or 'config':<50}{value}")
    print(f"{'parameters':<50}{t2t.count_parameters(preset):,}")
    return 0
