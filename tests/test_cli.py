"""The command line: instant help, settings as typed flags, one message and a code for everything that goes wrong."""

import dataclasses
import json
import os
import pathlib
import resource
import subprocess
import sys

import pytest

from t2t import cli, config_values
from t2t.commands import arguments
from t2t.config import Experiment
from t2t.errors import UsageError

ROOT = pathlib.Path(__file__).resolve().parents[1]

CONFIG = '''"""A small run: what it reproduces, where, for how long."""

from t2t.config import Data, Experiment, Train
from t2t.families import t5
from t2t.objectives.language_modeling import LanguageModeling
from t2t.train.optimizer import Adafactor


def get_config():
    return Experiment(
        name="small",
        model=t5.t5(num_layers=2, d_model=8, num_heads=2, head_dim=4, d_ff=16, vocab_size=384),
        data=Data(train="some_task", lengths={"inputs": 16, "targets": 8}, batch_size=4),
        objective=LanguageModeling(z_loss=1e-4),
        optimizer=Adafactor(),
        train=Train(steps=10),
    )
'''


@pytest.fixture
def here(tmp_path, monkeypatch) -> pathlib.Path:
    """A working directory with a config named small."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "small.py").write_text(CONFIG, encoding="utf-8")
    return tmp_path


def printed_config(capsys, *arguments: str) -> Experiment:
    assert cli.main(["train", "small", "--print-config", *arguments]) == 0
    return config_values.from_json(json.loads(capsys.readouterr().out))


@pytest.mark.parametrize("command", ["", *cli.COMMANDS, "vocab train"])
def test_help_is_instant_and_light(command):
    code = (
        "import sys\nfrom t2t import cli\n"
        f"code = cli.main([*{command!r}.split(), '--help'])\n"
        "heavy = sorted({'jax', 'flax', 'tensorflow', 'seqio', 'torch', 'sentencepiece'} & set(sys.modules))\n"
        "print('CODE', code, 'HEAVY', heavy, file=sys.stderr)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "COVERAGE_PROCESS_START"}
    took = []
    # The processor's time, the least of three: other work on the machine does not count, and hardly disturbs.
    while not took or (min(took) >= 1 and len(took) < 3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=ROOT)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert done.stderr.strip() == "CODE 0 HEAVY []", done.stderr
        assert "usage" in done.stdout
    assert min(took) < 1, f"took {took} seconds"


def test_every_command_has_a_module_and_a_summary():
    modules = {path.stem.rstrip("_") for path in (ROOT / "t2t" / "commands").glob("*.py")}
    assert set(cli.COMMANDS) <= modules


def test_settings_reach_every_part_of_the_experiment(here, capsys):
    experiment = printed_config(
        capsys,
        *("--train.steps", "1000", "--mesh.fsdp", "4", "--data.lengths.inputs", "32", "--init", "runs/other"),
        *("--data.files", "a.txt", "b/*.txt", "--objective.z-loss", "0", "--optimizer.learning-rate.peak", "0.5"),
        *("--train.remat", "dots_no_batch", "--model.encoder.pattern.0.dropout", "0.25", "--data.no-packing"),
        *("--evaluate.tasks", "x", "y"),
    )
    assert experiment.train.steps == 1000
    assert experiment.train.remat == "dots_no_batch"
    assert experiment.mesh.fsdp == 4
    assert experiment.data.lengths == {"inputs": 32, "targets": 8}
    assert experiment.data.files == ("a.txt", "b/*.txt")
    assert experiment.data.packing is False
    assert experiment.init == "runs/other"
    assert experiment.objective.z_loss == 0
    assert experiment.optimizer.learning_rate.peak == 0.5
    assert experiment.model.encoder.pattern[0].dropout == 0.25
    assert experiment.model.decoder.pattern[0].dropout == 0.1
    assert experiment.evaluate.tasks == ("x", "y")


def test_settings_are_printed_apart_from_their_values(here, capsys):
    arguments.print_settings(printed_config(capsys))
    lines = capsys.readouterr().out.splitlines()
    width = max(len(line.partition("  ")[0]) for line in lines)
    assert width > 52
    assert all(line[width : width + 2] == "  " and line[width + 2] != " " for line in lines if line)


def test_a_mixture_is_given_as_names_and_rates(here, capsys):
    assert printed_config(capsys, "--data.train", "a", "1.0", "b", "2").data.train == {"a": 1.0, "b": 2.0}
    assert printed_config(capsys, "--data.train", "a").data.train == "a"


def test_the_help_of_a_config_shows_its_docstring_and_the_help_of_its_fields(here, capsys):
    assert cli.main(["train", "small", "--help"]) == 0
    text = capsys.readouterr().out
    assert "A small run: what it reproduces" in text
    for flag in ("--workdir", "--dry-run", "--train.steps", "--mesh.fsdp", "--optimizer.learning-rate.warmup-steps"):
        assert flag in text
    assert "Updates of the parameters" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "small", "--train.step", "3"], "--train.steps"),
        (["train", "small", "--trian.steps", "3"], "--train.steps"),
        (["train", "small", "--train.steps", "many"], "many"),
        (["train", "small", "--train.remat", "some"], "full"),
        (["train", "small", "--train.steps", "0"], "train.steps is 0"),
        (["train", "small", "--optimizer.clip-threshold", "-1"], "clip_threshold"),
        (["train", "smal"], "did you mean small?"),
        (["train"], "CONFIG"),
        (["train", "."], "is no run directory"),
        (["trian", "small"], "did you mean train?"),
        (["presets", "--naems"], "--names"),
        (["presets", "zzzz"], "there is no preset zzzz; t2t presets lists all"),
        (["presets", "t5-smal"], "there is no preset t5-smal; the closest are t5-small"),
    ],
)
def test_what_cannot_work_stops_at_once_with_code_2(here, capsys, arguments, message):
    assert cli.main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_unknown_task_modules_are_refused_before_anything_is_loaded(here, capsys):
    assert cli.main(["train", "small", "--data.modules", "tasks.pydoc"]) == 2
    assert "'tasks.pydoc' cannot be imported" in capsys.readouterr().err


@pytest.mark.parametrize("module", ["", ".x", "x..y"])
def test_names_that_no_module_has_are_refused(here, capsys, module):
    assert cli.main(["train", "small", "--data.modules", module]) == 2
    assert f"the task module {module!r} cannot be imported" in capsys.readouterr().err


def test_a_broken_config_is_one_line(here, capsys):
    (here / "configs" / "broken.py").write_text("def get_config():\n    raise ValueError('d_model is 7')\n")
    assert cli.main(["train", "broken"]) == 2
    assert capsys.readouterr().err == f"error: {here / 'configs' / 'broken.py'}:2: d_model is 7\n"


def test_options_may_come_before_the_config_settings_not(here, capsys):
    assert cli.main(["train", "--print-config", "small"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "small"
    assert cli.main(["train", "--train.steps", "3", "small"]) == 2


def test_a_run_directory_is_its_own_config(here, capsys):
    experiment = printed_config(capsys)
    run = here / "runs" / "small"
    run.mkdir(parents=True)
    run.joinpath("config.json").write_text(
        json.dumps({"t2t": "0.1.0", "experiment": config_values.to_json(experiment)})
    )
    assert cli.main(["train", "runs/small", "--print-config", "--train.steps", "20"]) == 0
    longer = config_values.from_json(json.loads(capsys.readouterr().out))
    assert config_values.difference(experiment, longer) == ("train.steps: 10 -> 20",)


def test_a_folder_hides_no_config(here, capsys):
    (here / "small").mkdir()  # the texts it learns from, say
    assert printed_config(capsys).name == "small"
    (here / "other").mkdir()
    assert cli.main(["train", "other"]) == 2
    assert "other is no run directory: it has no config.json" in capsys.readouterr().err


def test_a_run_that_must_come_first_is_named(here, capsys):
    assert cli.main(["train", "small", "--init", "runs/small"]) == 2
    assert "init is runs/small, and there is no such run: train it first (t2t train small)" in capsys.readouterr().err


def test_a_model_directory_is_no_run(here, capsys):
    (here / "model").mkdir()
    (here / "model" / "config.json").write_text(json.dumps({"t2t": "0.1.0", "model": {}}))
    assert cli.main(["train", "model"]) == 2
    assert "t2t train CONFIG --init model" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content", ["", "{", "null", "[]", '{"experiment": 3}', '{"experiment": {"class": "t2t.x.Y"}}']
)
@pytest.mark.parametrize("command", ["train", "eval"])
def test_a_damaged_config_of_a_run_is_named(here, capsys, command, content):
    (here / "run").mkdir()
    (here / "run" / "config.json").write_text(content)
    assert cli.main([command, "run"]) == 2
    assert "run/config.json" in capsys.readouterr().err


def test_damaged_results_are_named(here, capsys):
    task = here / "run" / "eval" / "task"
    task.mkdir(parents=True)
    (here / "run" / "metrics.jsonl").write_text("")
    for content in ("{", "{}"):
        (task / "4.json").write_text(content)
        assert cli.main(["report", "run"]) == 2
        assert "run/eval/task/4.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--size", "300", "--output", "taken"], "taken holds config.json, no vocabulary alone"),
        (["--size", "300", "--output", "text.txt"], "text.txt is a file"),
        (["--size", "5", "--output", "new"], "size=5 must exceed"),
        (["--size", "300", "--output", "new", "--max-lines", "0"], "--max-lines is 0"),
    ],
)
def test_a_vocabulary_that_cannot_be_is_refused(here, capsys, arguments, message):
    (here / "text.txt").write_text("some text\n")
    (here / "taken").mkdir()
    (here / "taken" / "config.json").write_text("{}")
    assert cli.main(["vocab", "train", "--input", "text.txt", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not (here / "new").exists()


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (UsageError("no such thing"), 2, "error: no such thing\n"),
        (ValueError("bad value"), 1, "error: bad value\n"),
        (FileNotFoundError(2, "No such file", "x.txt"), 1, "error: [Errno 2] No such file: 'x.txt'\n"),
        (KeyError("key"), 1, "error: KeyError: 'key' (--debug shows where)\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
    ],
)
def test_errors_are_one_message_and_a_code(monkeypatch, capsys, error, code, message):
    def fail(arguments):
        raise error

    monkeypatch.setattr("t2t.commands.presets.run", fail)
    assert cli.main(["presets"]) == code
    assert capsys.readouterr().err == message
    assert cli.main(["presets", "--debug"]) == code
    assert "Traceback" in capsys.readouterr().err
    monkeypatch.setenv("T2T_DEBUG", "1")
    assert cli.main(["presets"]) == code
    assert "Traceback" in capsys.readouterr().err


def test_characters_that_command_a_terminal_are_shown(monkeypatch, capsys):
    def fail(arguments):
        raise ValueError("a weight named\n\x1b[31m\r\x07\x9b\u202e\ud800\t ä 日 '\\n'")

    monkeypatch.setattr("t2t.commands.presets.run", fail)
    assert cli.main(["presets"]) == 1
    shown = "error: a weight named\n\\x1b[31m\\r\\x07\\x9b\\u202e\\ud800\\t ä 日 '\\n'\n"
    assert capsys.readouterr().err == shown
    assert cli.main(["presets", "--debug"]) == 1
    assert {c for c in capsys.readouterr().err if not c.isprintable()} == {"\n"}
    assert cli.main(["\x1b[31m"]) == 2
    assert "there is no command \\x1b[31m;" in capsys.readouterr().err


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("t2t ")


def test_doctor_names_what_is_missing_and_how_to_get_it(capsys, monkeypatch):
    from t2t.commands import doctor

    fine = doctor.Package(requirement="jax>=0.10,<0.11", extra="", installed="0.10.2", fits=True)
    old = dataclasses.replace(fine, requirement="optax>=0.2.8", installed="0.1.0", fits=False)
    gone = dataclasses.replace(fine, requirement="tyro>=1.0", installed=None, fits=False)
    optional = dataclasses.replace(gone, requirement="sacrebleu>=2.4", extra="metrics")
    monkeypatch.setattr(doctor, "required_packages", lambda: (fine, old, gone, optional))
    assert cli.main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "optax>=0.2.8 is required, 0.1.0 is installed: pip install 'optax>=0.2.8'" in out
    assert "tyro>=1.0 is required, nothing is installed" in out
    assert "metrics  (BLEU, ROUGE, F1 and correlations): missing sacrebleu>=2.4: pip install 't2t[metrics]'" in out
    monkeypatch.setattr(doctor, "required_packages", lambda: (fine, optional))
    assert cli.main(["doctor"]) == 0
    assert "8 x cpu" in capsys.readouterr().out
