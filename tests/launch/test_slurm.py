"""Jobs for Slurm: what is asked for, what runs, and what becomes of exit codes and of signals, with a fake srun."""

import os
import re
import signal
import subprocess
import time

import pytest

from tests.launch import shell


@pytest.fixture
def fakes(tmp_path) -> shell.Fakes:
    return shell.Fakes(tmp_path, "sbatch", "srun", "scontrol")


def submit(fakes, *arguments: str) -> str:
    """The job that was submitted."""
    done = shell.run("slurm.sh", *arguments, fakes=fakes, T2T_COMMAND="t2t-here")
    assert done.returncode == 2 and "t2t-here is not there" in done.stderr
    done = shell.run("slurm.sh", *arguments, fakes=fakes, T2T_COMMAND="env t2t")
    assert done.returncode == 0, done.stderr
    ((name, given, job),) = fakes.calls()
    assert (name, given) == ("sbatch", [])
    return job


def options(job: str) -> set[str]:
    return set(re.findall(r"^#SBATCH (.*)$", job, re.MULTILINE))


def test_a_process_for_each_gpu(fakes):
    job = submit(
        fakes, "--nodes", "2", "--gpus", "4", "--sbatch", "--partition=long", "pretrain/t5_small", "--name", "a b"
    )
    assert {
        "--job-name=t2t-t5_small",
        "--nodes=2",
        "--ntasks-per-node=4",
        "--gpus-per-node=4",
        "--time=24:00:00",
        "--signal=B:TERM@180",
        "--requeue",
        "--partition=long",
    } <= options(job)
    assert "JAX_LOCAL_DEVICE_IDS" not in job  # JAX gives each process the GPU of its number
    assert r"env t2t train pretrain/t5_small --name a\ b --distributed auto &" in job
    assert f"cd {shell.ROOT}" in job


def test_a_process_for_each_node_is_told_its_gpus(fakes):
    job = submit(fakes, "--gpus", "4", "--per", "node", "--prepare", "module load cuda", "quickstart")
    assert "--ntasks-per-node=1" in options(job) and "--gpus-per-node=4" in options(job)
    assert "export JAX_LOCAL_DEVICE_IDS=0,1,2,3" in job
    assert job.index("module load cuda") < job.index("srun")


def test_cpus_alone(fakes):
    job = submit(fakes, "--gpus", "0", "--nodes", "3", "quickstart")
    assert not any("gpus" in option for option in options(job))
    assert "--ntasks-per-node=1" in options(job) and "JAX_LOCAL_DEVICE_IDS" not in job


def test_dry_run_submits_nothing(fakes):
    done = shell.run("slurm.sh", "--dry-run", "quickstart", fakes=fakes)
    assert done.returncode == 0 and fakes.calls() == []
    assert "#SBATCH --nodes=1" in done.stdout and done.stdout.splitlines()[-1].startswith("+ sbatch")


def run_job(fakes, job: str, *, stop: bool = False) -> int:
    """Runs a job as Slurm would; `stop` sends SIGTERM to the batch shell, as --signal=B:TERM asks."""
    path = fakes.folder / "job.sh"
    path.write_text(job.replace("--restarts 2", "--restarts 2 --wait 0"))
    environment = {**os.environ, "PATH": f"{fakes.folder}:{os.environ['PATH']}", "SLURM_JOB_ID": f"test{os.getpid()}"}
    process = subprocess.Popen(["bash", str(path)], env=environment, stderr=subprocess.DEVNULL)
    if stop:
        while not (fakes.folder / "begun").is_file():
            time.sleep(0.02)
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
    return process.wait(timeout=60)


@pytest.mark.parametrize(("code", "starts"), [(0, 1), (2, 1), (1, 3)])
def test_the_exit_code_of_the_processes_decides(fakes, code, starts):
    job = submit(fakes, "--restarts", "2", "quickstart")
    fakes.answers(("srun", "", code, -1))
    assert run_job(fakes, job) == code
    assert [name for name, *_ in fakes.calls()] == ["sbatch", *["srun"] * starts]


REAL_SRUN = """#!/usr/bin/env bash
# Two tasks: what stands behind the options, with the number of the task.
while [[ "$1" == --* ]]; do shift; done
for i in 0 1; do SLURM_PROCID=$i "$@" & tasks+=($!); done
trap 'kill -TERM ${tasks[@]}' TERM
largest=0
for task in ${tasks[@]}; do
    wait $task; code=$?
    while kill -0 $task 2>/dev/null; do wait $task; done
    wait $task; code=$?
    largest=$((code > largest ? code : largest))
done
exit $largest
"""


def with_tasks(fakes, text: str) -> None:
    """A srun that runs two tasks, and an `env` in place of t2t that does what is said."""
    (fakes.folder / "srun").write_text(REAL_SRUN)
    (fakes.folder / "env").write_text(f"#!/bin/bash\n{text}\n")
    (fakes.folder / "env").chmod(0o755)


def test_a_wrong_config_is_seen_behind_tasks_that_were_told_to_stop(fakes):
    """srun says 143, the largest; a job that believed it would start for ever."""
    job = submit(fakes, "--restarts", "2", "quickstart")
    count = fakes.folder / "count"
    with_tasks(fakes, f"echo x >>{count}; [ $SLURM_PROCID = 0 ] && exit 2; exit 143")
    assert run_job(fakes, job) == 2
    assert len(count.read_text().split()) == 2


def test_a_job_whose_time_ends_saves_and_is_queued_again(fakes):
    job = submit(fakes, "--restarts", "2", "quickstart")
    begun = fakes.folder / "begun"
    with_tasks(fakes, f"trap 'sleep 0.2; exit 143' TERM; touch {begun}; while true; do sleep 0.05; done")
    assert run_job(fakes, job, stop=True) == 143
    assert fakes.calls()[-1][:2] == ["scontrol", ["requeue", f"test{os.getpid()}"]]
    assert not (shell.ROOT / ".slurm" / f"test{os.getpid()}").exists()
