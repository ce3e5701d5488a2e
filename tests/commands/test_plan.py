"""`t2t plan`: what is printed, what is refused, and the exit codes."""

import json

import jax
import pytest
from planning import runs

from t2t import cli, config_values
from t2t.planning import topology

CONFIG = '''"""A tiny decoder.

Command: t2t plan tiny
"""

from t2t import config_values


def get_config():
    """From JSON."""
    return config_values.from_json({experiment})
'''


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """The path of a config; whatever the command sets for its process is taken back."""
    for name in topology.ENVIRONMENT:
        monkeypatch.setenv(name, topology.ENVIRONMENT[name])
    before = jax.config.jax_enable_compilation_cache
    path = tmp_path / "tiny.py"
    path.write_text(CONFIG.format(experiment=repr(config_values.to_json(runs.experiment("decoder")))))
    yield str(path)
    jax.config.update("jax_enable_compilation_cache", before)


def test_without_libtpu(tiny, capsys):
    assert cli.main(["plan", tiny, "--topology", "v5e:2x2", "--without-libtpu", "--price", "1.2"]) == 0
    shown = capsys.readouterr().out
    assert "decoder: " in shown and "data=4, batch of 16 rows" in shown
    assert "it fits, by the estimate" in shown and "$" in shown


def test_settings_are_those_of_training(tiny, capsys):
    arguments = ["--topology", "v5p:2x2x1", "--without-libtpu", "--json", "--mesh.fsdp", "4", "--train.steps", "7"]
    assert cli.main(["plan", tiny, *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["mesh"] == {"data": 1, "fsdp": 4, "tensor": 1, "sequence": 1} and found["chips"] == 4


def test_what_cannot_fit_ends_with_1(tiny, capsys):
    arguments = ["--topology", "v5e:1x1", "--without-libtpu", "--data.batch-size", str(2**24)]
    assert cli.main(["plan", tiny, *arguments]) == 1
    assert "IT DOES NOT FIT" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "states no topology"),
        (["--topology", "v5e:3x3"], "no slice of this shape"),
        (["--topology", "v5e:2x2", "--price", "0"], "--price 0"),
        (["--topology", "v5e:2x2", "--without-libtpu", "--mesh.fsdp", "3"], "fsdp=3"),
        (["--topology", "v5e:4x4", "--without-libtpu", "--data.batch-size", "8"], "batch_size=8"),
    ],
)
def test_refusals_end_with_2(tiny, capsys, arguments, said):
    assert cli.main(["plan", tiny, *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.slow
@runs.needs_libtpu
@pytest.mark.usefixtures("tiny")
def test_changes_that_fit_are_found(tmp_path, capsys):
    """A batch that needs 21 GiB of one chip fits in two micro-batches."""
    path = tmp_path / "wide.py"
    path.write_text(CONFIG.format(experiment=repr(config_values.to_json(runs.wide_decoder()))))
    assert cli.main(["plan", str(path), "--topology", "v5e:1x1", "--alternatives", "1", "--tries", "2"]) == 1
    shown = capsys.readouterr().out
    assert "changes that fit" in shown and "--train.micro-batches 2 " in shown
