"""When a command is started again: by its exit code, so often, and never after a signal to the script itself."""

import os
import pathlib
import signal
import subprocess
import time

import pytest

from tests.launch import shell

SCRIPT = str(shell.ROOT / "launch" / "restart.sh")
FAST = ("--wait", "0")


@pytest.fixture
def ends(tmp_path) -> tuple[pathlib.Path, object]:
    """Makes a command that ends with one code after the other, the last for ever, and counts its starts."""
    counter = tmp_path / "starts"

    def command(*codes: int) -> list[str]:
        words = " ".join(map(str, codes))
        text = f"echo x >>{counter}; n=$(wc -l <{counter}); codes=({words}); n=$((n > {len(codes)} ? {len(codes)} : n))"
        return ["bash", "-c", f"{text}; exit ${{codes[n - 1]}}"]

    return counter, command


def starts(counter: pathlib.Path) -> int:
    return len(counter.read_text().splitlines()) if counter.is_file() else 0


@pytest.mark.parametrize(
    ("codes", "code", "times"),
    [
        ([0], 0, 1),
        ([2], 2, 1),
        ([1, 2], 2, 2),
        ([1, 139, 0], 0, 3),
        ([1], 1, 4),
        ([137], 137, 4),
        ([143, 0], 0, 2),
        ([143, 1, 130, 1, 143, 1, 0], 0, 7),
    ],
    ids=str,
)
def test_the_exit_code_decides(ends, codes, code, times):
    counter, command = ends
    done = shell.run("restart.sh", "--restarts", "3", *FAST, *command(*codes))
    assert (done.returncode, starts(counter)) == (code, times)


def test_the_last_crash_is_told(ends):
    _, command = ends
    done = shell.run("restart.sh", "--restarts", "1", *FAST, *command(7))
    assert "crash 1 (exit code 7): again in 0 seconds, at most 0 times more" in done.stderr
    assert "crash 2 in a row (exit code 7): giving up after 1 restarts" in done.stderr


def test_waits_double(ends):
    counter, command = ends
    began = time.monotonic()
    done = shell.run("restart.sh", "--restarts", "2", "--wait", "1", *command(1))
    assert starts(counter) == 3 and time.monotonic() - began >= 3
    assert "again in 1 seconds" in done.stderr and "again in 2 seconds" in done.stderr


def test_a_run_that_was_steady_begins_to_count_anew(ends):
    counter, command = ends
    slow = command(1, 1, 1, 0)
    slow[2] = f"sleep 1.1; {slow[2]}"
    done = shell.run("restart.sh", "--restarts", "1", "--steady", "1", *FAST, *slow)
    assert (done.returncode, starts(counter)) == (0, 4)


TRAINS = (
    "echo x >>{counter}; trap 'sleep 0.3; echo saved >{counter}.saved; exit 143' TERM; while true; do sleep 0.05; done"
)


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_script_lets_the_run_save_and_ends_both(tmp_path, sent):
    counter = tmp_path / "starts"
    text = TRAINS.format(counter=counter).replace("TERM", sent.name.removeprefix("SIG"))
    heard = ["env", "--default-signal=INT"]  # a job in the background of a shell ignores it
    script = subprocess.Popen([*heard, "bash", SCRIPT, *FAST, "bash", "-c", text], start_new_session=True)
    while not starts(counter):
        time.sleep(0.02)
    time.sleep(0.2)
    os.kill(script.pid, sent)
    assert script.wait(timeout=20) == 143
    assert starts(counter) == 1 and (tmp_path / "starts.saved").is_file()


def test_a_signal_while_it_waits_ends_it_at_once(ends):
    counter, command = ends
    script = subprocess.Popen(["bash", SCRIPT, "--wait", "60", *command(1)], stderr=subprocess.PIPE, text=True)
    assert "again in 60 seconds" in script.stderr.readline()
    time.sleep(0.2)
    script.terminate()
    script.communicate(timeout=10)
    assert (script.returncode, starts(counter)) == (1, 1)


@pytest.mark.parametrize(
    ("codes", "code"),
    [([0, 0], 0), ([143, 2, 143], 2), ([143, 1, 143], 1), ([143, 143], 143), ([0, 134, 143], 134)],
    ids=str,
)
def test_the_codes_of_all_processes_count(tmp_path, codes, code):
    """The command itself ends with the largest, as srun does."""
    notes = tmp_path / "codes"
    notes_of = "".join(f"echo {one} >{notes}/{place}; " for place, one in enumerate(codes))
    largest = ["bash", "-c", f"{notes_of} exit {max(codes)}"]
    count = tmp_path / "starts"
    largest[2] = f"echo x >>{count}; [ $(wc -l <{count}) -lt 3 ] || exit 0; {largest[2]}"
    done = shell.run("restart.sh", "--codes", str(notes), "--restarts", "1", *FAST, *largest)
    expected = {0: (0, 1), 2: (2, 1), 1: (1, 2), 134: (134, 2), 143: (0, 3)}[code]
    assert (done.returncode, starts(count)) == expected


def test_a_process_notes_its_code(tmp_path):
    done = shell.run("note.sh", str(tmp_path / "codes"), "bash", "-c", "exit 7", SLURM_PROCID="3")
    assert done.returncode == 7
    assert (tmp_path / "codes" / "3").read_text() == "7\n"
