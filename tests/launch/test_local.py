"""One machine: one process, or several that train together, share GPUs, fail and stop together."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.launch import shell

PYTHON = f"{sys.executable} -m t2t"


def test_it_says_what_it_would_do():
    done = shell.run("local.sh", "--processes", "2", "--restarts", "3", "--dry-run", "quickstart", "--train.steps", "5")
    assert done.returncode == 0
    setup, train = done.stdout.splitlines()
    assert setup.endswith("launch/setup.sh metrics")
    words = train.split()
    assert words[1] == "bash" and words[2].endswith("launch/restart.sh") and words[3:5] == ["--restarts", "3"]
    assert words[6].endswith("launch/processes.sh") and words[7] == "2"
    assert words[9:] == ["train", "quickstart", "--train.steps", "5"]


def test_devices_of_a_cpu_can_be_tried():
    done = shell.run("local.sh", "--cpu-devices", "4", "--dry-run", "quickstart", T2T_COMMAND="t2t", XLA_FLAGS="")
    (line,) = done.stdout.splitlines()
    assert "JAX_PLATFORMS=cpu" in line and "--xla_force_host_platform_device_count=4" in line
    assert line.endswith("t2t train quickstart")


SHOW = """import json, os, sys
names = "JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID", "CUDA_VISIBLE_DEVICES"
sys.stdout.write(json.dumps({name: os.environ.get(name) for name in names}) + "\\n")
"""


def test_processes_know_of_each_other_and_share_the_gpus():
    done = shell.run("processes.sh", "3", sys.executable, "-c", SHOW, CUDA_VISIBLE_DEVICES="0,2,4,5,6,7")
    assert done.returncode == 0, done.stderr
    rows = {json.loads(line[line.index("{") :])["JAX_PROCESS_ID"]: line for line in done.stdout.splitlines()}
    assert sorted(rows) == ["0", "1", "2"]
    assert rows["0"].startswith("{") and rows["1"].startswith("[1] {")
    parsed = {index: json.loads(line[line.index("{") :]) for index, line in rows.items()}
    assert [parsed[i]["CUDA_VISIBLE_DEVICES"] for i in "012"] == ["0,2", "4,5", "6,7"]
    assert {row["JAX_NUM_PROCESSES"] for row in parsed.values()} == {"3"}
    (address,) = {row["JAX_COORDINATOR_ADDRESS"] for row in parsed.values()}
    assert address.startswith("127.0.0.1:")
    wrong = shell.run("processes.sh", "4", "true", CUDA_VISIBLE_DEVICES="0,1,2,3,4,5")
    assert wrong.returncode == 2 and "6 GPUs cannot be shared equally by 4 processes" in wrong.stderr


FOREVER = "while true; do sleep 0.05; done"
ENDS = f'case $JAX_PROCESS_ID in 1) sleep 0.3; exit CODE;; *) trap "exit 143" TERM; {FOREVER};; esac'


@pytest.mark.parametrize("code", [2, 1, 139, 143])
def test_where_one_ends_the_others_are_stopped_and_its_code_is_told(code):
    began = time.monotonic()
    done = shell.run("processes.sh", "3", "bash", "-c", ENDS.replace("CODE", str(code)), CUDA_VISIBLE_DEVICES="")
    assert done.returncode == code
    assert time.monotonic() - began < 30


def test_a_signal_reaches_all(tmp_path):
    saves = f"echo $JAX_PROCESS_ID >>{tmp_path}/saved"
    text = f'trap "{saves}; exit 143" TERM; echo x >>{tmp_path}/begun; {FOREVER}'
    command = ["bash", str(shell.ROOT / "launch" / "processes.sh"), "2", "bash", "-c", text]
    script = subprocess.Popen(command, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    while not (tmp_path / "begun").is_file() or len((tmp_path / "begun").read_text()) < 4:
        time.sleep(0.02)
    time.sleep(0.2)
    script.send_signal(signal.SIGTERM)
    assert script.wait(timeout=20) == 143
    assert sorted((tmp_path / "saved").read_text().split()) == ["0", "1"]


CONFIG = '''"""A small run."""

from tests.train import tiny_run


def get_config():
    return tiny_run.experiment(data={"batch_size": 4}, train={"steps": 4}, mesh={"data": 2})
'''


@pytest.mark.nightly  # on a quiet machine, as tests/train/test_several_processes.py
@pytest.mark.multi_device
def test_two_processes_train_a_real_run(tmp_path):
    """Through local.sh, restart.sh and processes.sh, with the t2t of these tests; a wrong config ends at once."""
    config = tmp_path / "small.py"
    config.write_text(CONFIG, encoding="utf-8")
    options = ("--processes", "2", "--cpu-devices", "1", "--restarts", "2")
    environment = {
        "T2T_COMMAND": PYTHON,
        "CUDA_VISIBLE_DEVICES": "",
        "XLA_FLAGS": "",
        "PYTHONPATH": f"{shell.ROOT}:{os.environ.get('PYTHONPATH', '')}",
    }
    workdir = tmp_path / "run"
    done = shell.run("local.sh", *options, str(config), "--workdir", str(workdir), timeout=540, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
    assert max(row["step"] for row in rows) == 4
    assert "crash" not in done.stderr
    wrong = ("--workdir", str(tmp_path / "wrong"), "--data.batch-size", "3")
    done = shell.run("local.sh", *options, str(config), *wrong, timeout=540, **environment)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "again in" not in done.stderr
