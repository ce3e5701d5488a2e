"""What is measured elsewhere runs here, at sizes that say nothing."""

import json
import os
import subprocess
import sys

import pytest
from test_architecture import ROOT


@pytest.mark.slow
def test_the_benchmark_of_gpus_runs_on_a_cpu(tmp_path):
    done = subprocess.run(
        ["bash", "benchmarks/gpu.sh", str(tmp_path), "--tiny", "--steps", "1"],
        cwd=ROOT,
        env=os.environ | {"PATH": f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((tmp_path / "mfu.json").read_text())
    assert [result["model"] for result in results] == ["bert-large-uncased", "t5-large", "gpt2-medium"]
    assert all(result["seconds"] > 0 and result["attention"].startswith("reference in ") for result in results)


def test_the_script_is_shell():
    subprocess.run(["bash", "-n", "benchmarks/gpu.sh"], cwd=ROOT, check=True)


@pytest.mark.slow
def test_the_benchmark_of_losses_runs(tmp_path):
    command = [sys.executable, "-m", "benchmarks.loss_memory", "--tiny", "--models", "t5-small", "--rounds", "1"]
    subprocess.run([*command, "--output", str(tmp_path / "out.json")], cwd=ROOT, check=True)
    (result,) = json.loads((tmp_path / "out.json").read_text())
    assert result["vocabulary"] == 32128 and set(result["bytes"]) >= {"chunks", "whole"}
