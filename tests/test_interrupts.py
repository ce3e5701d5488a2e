"""Ctrl-C ends a command with code 130, whatever the code that it meets makes of it."""

import signal
import subprocess
import sys
import textwrap
import threading

import pytest

from t2t import interrupts

COMMAND = """
import os, signal, sys, time
from t2t import cli, interrupts
interrupts.PATIENCE = {patience}

def run(arguments):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
    except BaseException as error:
        {meets}
        time.sleep(60)

sys.modules["t2t.commands.doctor"] = sys.modules[__name__]
sys.argv = ["t2t", "doctor"]
sys.exit(cli.main())
"""


def run(script: str) -> subprocess.CompletedProcess:
    hears = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    return subprocess.run([sys.executable, "-c", hears + script], capture_output=True, text=True, timeout=50)


@pytest.fixture(autouse=True)
def heard():
    """Ctrl-C as on a terminal: in the background of a shell, tests inherit that it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("meets", "patience"),
    [
        ("raise", 60),
        ("raise ValueError('the arrays are others') from None", 60),
        ("raise ImportError('half a module') from None", 60),
        ("pass", 0.2),  # lost
        ("return 0", 60),
        ("os.kill(os.getpid(), signal.SIGINT)", 60),  # the second ends at once
    ],
)
def test_ctrl_c_ends_a_command_whatever_it_meets(meets, patience):
    script = textwrap.dedent(COMMAND).format(meets=meets, patience=patience)
    done = run(script)
    assert done.returncode == 130
    assert done.stdout == ""
    assert done.stderr == ("" if "kill" in meets else "interrupted\n")


def test_ctrl_c_while_modules_are_imported_ends_at_once(tmp_path):
    (tmp_path / "swallows.py").write_text(
        "import os, signal, time\n"
        "try:\n    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(60)\nexcept BaseException:\n    pass\n"
    )
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n" + textwrap.dedent("""
        import sys
        from t2t import cli

        def run(arguments):
            import swallows

        sys.modules["t2t.commands.doctor"] = sys.modules[__name__]
        sys.argv = ["t2t", "doctor"]
        sys.exit(cli.main())
    """)
    done = run(script)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_handlers_come_back_and_others_are_kept():
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with interrupts.Watch() as watch:
        assert signal.getsignal(signal.SIGINT) == watch._receive
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as nohup and job control leave it
    try:
        with interrupts.Watch():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_change_nothing():
    def enter():
        with interrupts.Watch():
            found.append(signal.getsignal(signal.SIGINT))

    found = []
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]
