"""Runs code under transformers 4.57.6, which `launch/test.sh` installs beside the environment, in its own process."""

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / ".hf4"

PREAMBLE = """
import json, sys, warnings
import numpy as np
import torch, transformers
assert transformers.__version__ == "4.57.6", transformers.__version__
transformers.logging.set_verbosity_error()
given = json.load(sys.stdin)
"""


def run(code: str, **given: Any) -> Any:
    """What `code` leaves in `answer`, by way of JSON; the arguments are in `given`. Skips where .hf4 is missing."""
    if not (FOLDER / "transformers").is_dir():
        pytest.skip(f"needs transformers 4.57.6 in {FOLDER}: launch/test.sh installs it")
    environment = {**os.environ, "PYTHONPATH": str(FOLDER), "PYTHONWARNINGS": "ignore"}
    program = f"{PREAMBLE}\n{code}\nprint('\\n' + json.dumps(answer))"
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
