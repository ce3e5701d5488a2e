"""What several processes of one run must agree on; each function is trivial where there is one process."""

import json
import os
from typing import Any, Literal

import jax
import numpy as np
from jax.experimental import multihost_utils

from t2t.errors import UsageError

VARIABLES = ("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID")
"""Environment variables that make a process one of several: host:port of process 0, how many there are, which it is."""


def join(how: Literal["auto"] | None = None) -> None:
    """Makes this process one of the several of a run; to be called before anything computes with JAX.

    Args:
        how: auto asks the cluster who the others are, as JAX does on TPU pods, Slurm, Open MPI and Kubernetes; None
            takes `VARIABLES`, and without them this process is alone.

    Raises:
        UsageError: some of the variables are missing or no numbers, or JAX knows no such cluster.
    """
    if how == "auto":
        try:
            jax.distributed.initialize()
        except ValueError as error:
            raise UsageError(f"--distributed auto finds no cluster that JAX knows: {error}") from error
        return
    given = {name: os.environ[name] for name in VARIABLES if os.environ.get(name)}
    missing = [name for name in VARIABLES if name not in given]
    if not given:
        return
    if missing:
        raise UsageError(f"{', '.join(given)} set without {', '.join(missing)}: set all of them, or none")
    address, count, index = given.values()
    try:
        jax.distributed.initialize(address, int(count), int(index))
    except ValueError as error:
        raise UsageError(f"{given} names no process of a run: {error}") from error


def is_first() -> bool:
    """Whether this process writes what only one may write."""
    return jax.process_index() == 0


def agree_on_failure(failure: Exception | None) -> Exception | None:
    """The failure of this process, else that of another, so that all stop. Every process must call it."""
    said = [text for text in gather_json(failure and f"{type(failure).__name__}: {failure}") if text]
    return failure if failure is not None or not said else RuntimeError(f"another process failed: {said[0]}")


def wait_for_all(reason: str) -> None:
    """Returns when every process has come here."""
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices(reason)


def gather_json(value: Any) -> list[Any]:
    """The value of every process, in their order. Every process must call it."""
    if jax.process_count() == 1:
        return [value]
    text = np.frombuffer(json.dumps(value).encode(), np.uint8)
    sizes = np.asarray(multihost_utils.process_allgather(np.int32(text.size))).reshape(-1)
    padded = np.zeros(int(sizes.max()), np.uint8)
    padded[: text.size] = text
    rows = np.asarray(multihost_utils.process_allgather(padded))
    return [json.loads(row[:size].tobytes()) for row, size in zip(rows, sizes, strict=True)]
