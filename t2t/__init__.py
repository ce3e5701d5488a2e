"""t2t: pretrain, transfer and ship transformer text models in JAX.

The names below are loaded when they are first used: `import t2t` itself takes milliseconds.

    config = t2t.preset("t5-small")         a published model as a frozen dataclass; t2t.presets() are their names
    t2t.count_parameters(config)            exact, allocates nothing
    model = t2t.init(config, seed=0)        fresh parameters
    model = t2t.load("runs/quickstart")     a run, checkpoint, model or Hugging Face directory
    model = t2t.train(experiment, workdir)  a run (t2t.config.Experiment), from its beginning or its last checkpoint
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from t2t import heads, train
    from t2t.api import Model, count_parameters, init, preset, presets
    from t2t.opening import load

__version__ = "0.1.0"
__all__ = ["Model", "count_parameters", "heads", "init", "load", "preset", "presets", "train"]

_OF_API = frozenset({"Model", "count_parameters", "init", "preset", "presets"})


def __getattr__(name: str) -> Any:
    """Import what is asked for the first time."""
    if name in _OF_API:
        return getattr(importlib.import_module("t2t.api"), name)
    if name == "load":
        return importlib.import_module("t2t.opening").load
    if name in __all__:
        return importlib.import_module(f"t2t.{name}")
    raise AttributeError(f"module t2t has no attribute {name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
