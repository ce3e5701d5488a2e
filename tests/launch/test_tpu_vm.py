"""TPU VMs: which commands of gcloud are called in which order, and what follows preemptions and crashes."""

import shlex
import subprocess

import pytest

from tests.launch import shell

WHERE = ("--name", "mine", "--zone", "us-central1-a", "--poll", "1")
SHARED = ("--share", "10.0.0.2:/runs")


@pytest.fixture
def fakes(tmp_path) -> shell.Fakes:
    return shell.Fakes(tmp_path, "gcloud")


def verbs(fakes) -> list[str]:
    """What was called, in short, without looks at the state."""
    words = [given[2:4] for _, given, _ in fakes.calls()]
    short = [" ".join(pair) for pair in words]
    return [verb.replace("queued-resources ", "").replace("tpu-vm ", "") for verb in short if "describe" not in verb]


def commands(fakes) -> list[str]:
    """What hosts were told."""
    return [given[given.index("--command") + 1] for _, given, _ in fakes.calls() if "--command" in given]


ACTIVE = ("describe", "ACTIVE", 0, -1)
NOBODY = ("describe", "", 1, 1)


def test_a_run_from_the_first_request_to_its_end(fakes):
    fakes.answers(NOBODY, ACTIVE, ("cat train.code", "running", 0, 2), ("cat train.code", "0", 0, -1))
    done = shell.run("tpu_vm.sh", "run", *WHERE, *SHARED, "pretrain/t5_small", "--name", "it's", fakes=fakes)
    assert done.returncode == 0, done.stderr
    assert verbs(fakes) == ["create", "scp", "ssh", "ssh", "ssh", "ssh", "ssh", "ssh"]
    create = next(given for _, given, _ in fakes.calls() if "create" in given)
    assert create[create.index("create") + 1 :] == [
        *("mine", "--zone", "us-central1-a", "--accelerator-type", "v5litepod-16"),
        *("--runtime-version", "v2-alpha-tpuv5-lite", "--node-id", "mine"),
    ]
    install, halt, start, *_ = commands(fakes)
    assert "sudo mount 10.0.0.2:/runs /mnt/t2t" in install and "launch/setup.sh metrics,tpu" in install
    assert "pkill -TERM" in halt
    to_hosts = [given for _, given, _ in fakes.calls() if "--worker" in given]
    assert [given[given.index("--worker") + 1] for given in to_hosts] == ["all"] * 4 + ["0"] * 3
    assert "ended with exit code 0; the TPUs cost money until" in done.stderr
    # What the shell of a host makes of it: the words of the run, whole.
    inner = shlex.split(start[start.index("bash -c ") :])[2]
    assert shlex.split(inner.partition(";")[0]) == [
        *("bash", "launch/restart.sh", "--restarts", "10", ".venv/bin/t2t", "train", "pretrain/t5_small"),
        *("--name", "it's", "--distributed", "auto"),
    ]


def test_what_hosts_are_told_is_shell(fakes):
    fakes.answers(NOBODY, ACTIVE, ("cat train.code", "0", 0, -1))
    shell.run("tpu_vm.sh", "run", *WHERE, *SHARED, "quickstart", fakes=fakes)
    shell.run("tpu_vm.sh", "stop", *WHERE, *SHARED, fakes=fakes)
    for command in commands(fakes):
        done = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, (command, done.stderr)


@pytest.mark.parametrize("code", [1, 2])
def test_a_run_that_has_failed_ends_with_its_code(fakes, code):
    fakes.answers(NOBODY, ACTIVE, ("cat train.code", str(code), 0, -1))
    done = shell.run("tpu_vm.sh", "run", *WHERE, *SHARED, "quickstart", fakes=fakes)
    assert done.returncode == code
    assert verbs(fakes).count("create") == 1


def test_what_is_preempted_is_asked_for_again(fakes):
    taken = [("describe", "ACTIVE", 0, 2), ("describe", "SUSPENDED", 0, 2), ("describe", "ACTIVE", 0, -1)]
    fakes.answers(NOBODY, *taken, ("cat train.code", "running", 0, 1), ("cat train.code", "0", 0, -1))
    done = shell.run("tpu_vm.sh", "run", *WHERE, *SHARED, "--spot", "quickstart", fakes=fakes)
    assert done.returncode == 0, done.stderr
    found = verbs(fakes)
    assert found.count("create") == 2 and found.count("delete") == 1 and found.count("scp") == 2
    assert "taken away: asking again" in done.stderr
    assert all("--spot" in given for _, given, _ in fakes.calls() if "create" in given)


@pytest.mark.parametrize("said", ["lost", "143"])
def test_a_host_that_was_restarted_trains_again(fakes, said):
    """Maintenance ends a run; the TPUs stay."""
    fakes.answers(NOBODY, ACTIVE, ("cat train.code", said, 0, 1), ("cat train.code", "0", 0, -1))
    done = shell.run("tpu_vm.sh", "run", *WHERE, *SHARED, "quickstart", fakes=fakes)
    assert done.returncode == 0, done.stderr
    assert verbs(fakes).count("create") == 1 and verbs(fakes).count("scp") == 2


def test_who_stops_it_does_not_see_it_again(fakes):
    fakes.answers(NOBODY, ACTIVE, ("cat train.code", "143\nstopped", 0, -1))
    done = shell.run("tpu_vm.sh", "run", *WHERE, *SHARED, "quickstart", fakes=fakes)
    assert done.returncode == 143 and verbs(fakes).count("scp") == 1


def test_a_request_that_is_refused_ends_it(fakes):
    fakes.answers(("describe", "", 1, -1), ("create", "", 1, -1))
    done = shell.run("tpu_vm.sh", "run", *WHERE, *SHARED, "quickstart", fakes=fakes)
    assert done.returncode == 1 and verbs(fakes) == ["create"]


def test_a_setup_that_fails_ends_it(fakes):
    fakes.answers(NOBODY, ACTIVE, ("scp", "", 1, -1))
    done = shell.run("tpu_vm.sh", "run", *WHERE, *SHARED, "quickstart", fakes=fakes)
    assert done.returncode == 1 and verbs(fakes) == ["create", "scp"]


def test_several_slices_are_set_up_one_by_one(fakes):
    fakes.answers(NOBODY, ACTIVE, ("cat train.code", "0", 0, -1))
    several = ("--slices", "2", "--type", "v6e-16", "--project", "ours")
    done = shell.run("tpu_vm.sh", "run", *WHERE, *SHARED, *several, "quickstart", fakes=fakes)
    assert done.returncode == 0, done.stderr
    create = next(given for _, given, _ in fakes.calls() if "create" in given)
    assert create[-4:] == ["--node-count", "2", "--node-prefix", "mine"]
    assert create[create.index("--runtime-version") + 1] == "v2-alpha-tpuv6e"
    copied = [given[given.index("scp") + 2] for _, given, _ in fakes.calls() if "scp" in given]
    assert copied == ["mine-0:t2t.tgz", "mine-1:t2t.tgz"]
    assert all("--project" in given for _, given, _ in fakes.calls())


def test_one_host_needs_no_shared_directory(fakes):
    fakes.answers(NOBODY, ACTIVE, ("cat train.code", "0", 0, -1))
    done = shell.run("tpu_vm.sh", "run", *WHERE, "--type", "v6e-8", "quickstart", fakes=fakes)
    assert done.returncode == 0 and "mount" not in commands(fakes)[0]


def test_dry_run_calls_nothing(fakes):
    done = shell.run("tpu_vm.sh", "run", *WHERE, *SHARED, "--dry-run", "quickstart", fakes=fakes)
    assert done.returncode == 0, done.stderr
    assert fakes.calls() == []
    lines = [line for line in done.stdout.splitlines() if line.startswith("+ ")]
    kinds = [next(word for word in shlex.split(line) if word in ("create", "scp", "ssh", "delete")) for line in lines]
    assert kinds == ["create", "scp", "ssh", "ssh", "ssh", "delete"]
