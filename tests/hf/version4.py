"""Runs code under transformers alone, in its own process: under 4.57.6, which `launch/test.sh` installs beside the
environment, or under the version of the environment. Of t2t and JAX there is nothing in such a process.
"""

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / ".hf4"

PREAMBLE = """
import json, sys, warnings
sys.modules |= dict.fromkeys(hidden)
import numpy as np
import torch, transformers
assert transformers.__version__.startswith(version), transformers.__version__
transformers.logging.set_verbosity_error()
given = json.load(sys.stdin)
"""


def run(code: str, *, version: str = "4.57.6", hidden: Sequence[str] = ("t2t",), **given: Any) -> Any:
    """What `code` leaves in `answer`, by way of JSON; the arguments are in `given`. Skips where .hf4 is missing.

    Args:
        code: reads `given`.
        version: of transformers, or how it begins: 4.57.6, or 5 for that of the environment.
        hidden: modules that cannot be imported there.
        given: anything that JSON holds.
    """
    old = version.startswith("4.")
    if old and not (FOLDER / "transformers").is_dir():
        pytest.skip(f"needs transformers 4.57.6 in {FOLDER}: launch/test.sh installs it")
    environment = {**os.environ, "PYTHONPATH": str(FOLDER) if old else "", "PYTHONWARNINGS": "ignore"}
    settings = f"version, hidden = {version!r}, {list(hidden)!r}"
    program = f"{settings}\n{PREAMBLE}\n{code}\nprint('\\n' + json.dumps(answer))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().split("\n")[-1])
