"""Signals as requests: the first is noted, a second Ctrl-C ends the process; handlers come back afterwards."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from t2t.train import signals


def test_the_first_signal_is_noted_and_handlers_come_back(capfd):
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with signals.StopRequests() as requests:
        assert requests.agreed(1) is None
        os.kill(os.getpid(), signal.SIGTERM)
        assert requests.agreed(2) == signal.SIGTERM
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
    assert "SIGTERM: finishing the step and saving" in capfd.readouterr().err


def test_sigterm_may_come_again_and_before_or_after_ctrl_c(capfd, monkeypatch):
    ended = []
    monkeypatch.setattr(os, "_exit", ended.append)
    with signals.StopRequests() as requests:
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
            os.kill(os.getpid(), number)
            assert requests.agreed(1) == signal.SIGTERM
        assert not ended
        os.kill(os.getpid(), signal.SIGINT)
        assert ended == [130]
    assert "once more to stop at once, unsaved" in capfd.readouterr().err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_exit_codes_are_those_of_the_signal(number, code):
    with pytest.raises(SystemExit) as error:
        raise signals.Interrupted(number, step=7)
    assert (error.value.code, error.value.step) == (code, 7)


@pytest.mark.slow
def test_the_second_ctrl_c_ends_the_process_at_once():
    script = textwrap.dedent("""
        import time
        from t2t.train import signals
        with signals.StopRequests():
            print("ready", flush=True)
            time.sleep(60)
            time.sleep(60)
    """)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.stderr.readline()
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
