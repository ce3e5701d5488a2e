"""`t2t export RUN OUT_DIR`: a run as a Hugging Face directory."""

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Annotated

import tyro

from t2t.commands import arguments as arguments_lib
from t2t.errors import UsageError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Export:
    """Write a Hugging Face directory: config, weights, tokenizer, generation settings and a model card."""

    model: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """A run (its last checkpoint), a checkpoint or a model directory."""
    output: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="OUT_DIR")]
    """The directory to write."""
    overwrite: bool = False
    """Replace files of a directory that is not empty."""


def run(arguments: Sequence[str]) -> int:
    """Load the model and write it."""
    options = arguments_lib.parse(Export, arguments, command="export")
    output = pathlib.Path(options.output)
    if output.exists() and (not output.is_dir() or any(output.iterdir())) and not options.overwrite:
        raise UsageError(f"{output} is there already; --overwrite replaces its files")
    import t2t
    from t2t.hf import export

    try:
        export.check_directory(output)  # before the model is loaded
    except ValueError as error:
        raise UsageError(str(error)) from error
    t2t.load(options.model).export(output)
    for file in sorted(output.iterdir()):
        print(f"{file}  {file.stat().st_size / 1e6:,.1f} MB")
    return 0
