"""What several processes of one run must agree on; each function is trivial where there is one process."""

import contextlib
import itertools
import json
import os
from collections.abc import Iterator
from typing import Any, Literal

import jax
import numpy as np
from jax._src import distributed  # barriers without devices have no public name (jax 0.10)
from jax.experimental import multihost_utils

from t2t.errors import UsageError
from t2t.train import peers

VARIABLES = ("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID")
"""Environment variables that make a process one of several: host:port of process 0, how many there are, which it is."""


@contextlib.contextmanager
def joined(how: Literal["auto"] | None = None, *, peer_timeout: float = peers.TIMEOUT) -> Iterator[None]:
    """`join`, and from then on the processes watch each other: when one is lost, all end (`t2t.train.peers`)."""
    join(how, peer_timeout=peer_timeout)
    with peers.watched(timeout=peer_timeout):
        yield


def join(how: Literal["auto"] | None = None, *, peer_timeout: float = peers.TIMEOUT) -> None:
    """Makes this process one of the several of a run; to be called before anything computes with JAX.

    Args:
        how: auto asks the cluster who the others are, as JAX does on TPU pods, Slurm, Open MPI and Kubernetes; None
            takes `VARIABLES`, and without them this process is alone.
        peer_timeout: seconds without a sign of life after which a process is given up; by JAX itself after twice that.

    Raises:
        UsageError: some of the variables are missing or no numbers, or JAX knows no such cluster.
        ConnectionError: the others were not reached.
    """
    if not peer_timeout > 0:
        raise UsageError(f"the time after which a process is given up is {peer_timeout} seconds: give more than 0")
    heartbeat = {"heartbeat_timeout_seconds": max(10, round(2 * peer_timeout))}
    if how == "auto":
        try:
            jax.distributed.initialize(**heartbeat)
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
        jax.distributed.initialize(address, int(count), int(index), **heartbeat)
    except ValueError as error:
        raise UsageError(f"{given} names no process of a run: {error}") from error
    except RuntimeError as error:
        raise ConnectionError(
            f"process {index} has not met the other {int(count) - 1} at {address}, where process 0 listens: is each of "
            f"them started, and can this host reach that one? ({error})"
        ) from error


LONGEST_WAIT = 7 * 24 * 3600 * 1000
"""Milliseconds."""

_barriers = itertools.count()  # every process comes to the same ones in the same order


def is_first() -> bool:
    """Whether this process writes what only one may write."""
    return jax.process_index() == 0


def agree_on_failure(failure: Exception | None) -> Exception | None:
    """The failure of this process, else that of another, so that all stop. Every process must call it."""
    said = [text for text in gather_json(failure and f"{type(failure).__name__}: {failure}") if text]
    return failure if failure is not None or not said else RuntimeError(f"another process failed: {said[0]}")


def wait_for_all(reason: str) -> None:
    """Returns when every process has come here, however long that takes: `t2t.train.peers` ends it if one is lost."""
    if jax.process_count() > 1:
        # A barrier of the coordination service: an operation of devices would time out after 30 seconds on CPUs.
        barrier = f"t2t/{reason}/{next(_barriers)}"
        distributed.global_state.client.wait_at_barrier(barrier, timeout_in_ms=LONGEST_WAIT)


def gather_json(value: Any) -> list[Any]:
    """The value of every process, in their order. Every process must call it."""
    if jax.process_count() == 1:
        return [value]
    wait_for_all("gathering")
    text = np.frombuffer(json.dumps(value).encode(), np.uint8)
    sizes = np.asarray(multihost_utils.process_allgather(np.int32(text.size))).reshape(-1)
    padded = np.zeros(int(sizes.max()), np.uint8)
    padded[: text.size] = text
    rows = np.asarray(multihost_utils.process_allgather(padded))
    return [json.loads(row[:size].tobytes()) for row, size in zip(rows, sizes, strict=True)]
