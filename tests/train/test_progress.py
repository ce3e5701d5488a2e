"""What a run shows: plain lines in a pipe, a bar on a terminal, a sign of life in between, everything in log.txt."""

import io
import logging
import time

import rich.console

from t2t.train import progress


def make(tmp_path, *, terminal: bool = False):
    console = rich.console.Console(file=io.StringIO(), force_terminal=terminal, width=120)
    return progress.Progress(tmp_path / "log.txt", total=10, console=console), console.file


def test_lines_go_to_the_output_and_to_the_log(tmp_path):
    report, out = make(tmp_path)
    with report:
        report.phase("training")
        report.say("hello")
        report.step(3)
        report.note("step 3/10  loss 1.0")
        logging.getLogger("t2t.data").warning("careful %d", 5)
    logging.getLogger("t2t.data").warning("not shown: the run is over")
    assert out.getvalue().splitlines() == ["hello", "step 3/10  loss 1.0", "warning: careful 5"]
    assert [line[20:] for line in (tmp_path / "log.txt").read_text().splitlines()] == out.getvalue().splitlines()


def test_a_silent_run_says_what_it_does(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "SILENCE", 0.0)
    report, out = make(tmp_path)
    with report:
        report.phase("compiling the training step")
        for _ in range(40):
            if "compiling" in out.getvalue():
                break
            time.sleep(0.1)
    assert "  ... compiling the training step (" in out.getvalue()


def test_a_terminal_shows_a_bar_with_the_last_numbers(tmp_path):
    report, out = make(tmp_path, terminal=True)
    with report:
        report.phase("training")
        report.step(4)
        report.note("step 4/10  loss 1.2500")
    assert "4/10" in out.getvalue() and "loss 1.2500" in out.getvalue() and "training" in out.getvalue()
    assert "step 4/10  loss 1.2500" in (tmp_path / "log.txt").read_text()


def test_an_error_is_kept_in_the_log(tmp_path):
    report, _ = make(tmp_path)
    try:
        with report:
            raise ValueError("no data")
    except ValueError:
        pass
    assert "ended by ValueError: no data" in (tmp_path / "log.txt").read_text()
