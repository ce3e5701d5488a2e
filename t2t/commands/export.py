"""`t2t export RUN OUT_DIR`: a run as a Hugging Face directory."""

import dataclasses
import os
import pathlib
import sys
from collections.abc import Sequence
from typing import Annotated, Literal

import tyro

from t2t.commands import arguments as arguments_lib
from t2t.errors import UsageError

RANKS = ("JAX_PROCESS_ID", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK")
"""Environment variables in which launchers say which of several processes this is."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Export:
    """Write a Hugging Face directory: config, weights, tokenizer, generation settings and a model card.

    It reads the checkpoint array by array, whatever mesh and hosts wrote it, and needs no accelerator: one process does
    it. Started as several, the first one exports and the others end at once.
    """

    model: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """A run (its last checkpoint), a checkpoint or a model directory."""
    output: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="OUT_DIR")]
    """The directory to write."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Type in which the weights are stored."""
    sentence_embeddings: Literal["mean", "first"] | None = None
    """Make it open with SentenceTransformer(OUT_DIR) as well: the mean of the states, or the first, is the vector. A
    head is left out."""
    shard_gigabytes: float = 50.0
    """Weights of more than this (10^9 bytes) are divided among files, with an index."""
    role: Literal["generator", "discriminator"] | None = None
    """Which model of a run that trains two; the discriminator if not given."""
    verify: bool = False
    """Open the result with transformers, where it is installed, and compare keys, outputs and token ids."""
    overwrite: bool = False
    """Replace files of a directory that is not empty."""


def run(arguments: Sequence[str]) -> int:
    """Load the model and write it."""
    options = arguments_lib.parse(Export, arguments, command="export")
    rank = next((os.environ[name] for name in RANKS if os.environ.get(name)), "0")
    if rank != "0":
        print(f"this is process {rank}: process 0 exports", file=sys.stderr)
        return 0
    output = pathlib.Path(options.output)
    from t2t.hf import export, verify

    # Everything that can be refused, before the model is opened: first what no option would change.
    try:
        export.check_directory(output)
    except ValueError as error:
        raise UsageError(str(error)) from error
    arguments_lib.check_output(output, overwrite=options.overwrite, source=options.model)
    if not 0 < options.shard_gigabytes < float("inf"):
        raise UsageError(f"--shard-gigabytes {options.shard_gigabytes}: give a positive number")
    if options.verify:
        verify.check_installed()
    _write(options, output)
    return 0


def _write(options: Export, output: pathlib.Path) -> None:
    """Reads the arrays one after another from the checkpoint and writes them, then what goes with them."""
    from t2t import opening
    from t2t.hf import sentence_embeddings as vectors
    from t2t.hf import verify

    model = opening.open_lazily(options.model, role=options.role)
    if options.sentence_embeddings is not None:
        config, params = vectors.without_head(model.config, model.params)
        model = dataclasses.replace(model, config=config, params=params)
    if options.verify:
        verify.check_class(model.config)
    model.export(
        output,
        dtype=options.dtype,
        sentence_embeddings=options.sentence_embeddings,
        max_shard_bytes=int(options.shard_gigabytes * 10**9),
    )
    arguments_lib.list_files(output)
    if options.verify:
        for line in verify.verify(output, config=model.config, params=model.params, vocabulary=model.vocabulary):
            print(line)
