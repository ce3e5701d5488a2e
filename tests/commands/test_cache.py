"""`t2t cache`: the same tokens for `t2t train`, in the words of the command line."""

import pathlib
import re
import sys

import pytest

from t2t import cli, finding
from t2t.commands import cache
from t2t.data import examples, pipeline
from t2t.errors import UsageError
from t2t.train import build, tasks
from t2t.vocabulary import ByteVocabulary

CONFIG = '''"""A small run."""

from t2t.config import Data, Experiment, Train
from t2t.families import t5
from t2t.objectives.language_modeling import LanguageModeling
from t2t.train.optimizer import Adafactor


def get_config():
    return Experiment(
        name="small",
        model=t5.t5(num_layers=1, d_model=8, num_heads=2, head_dim=4, d_ff=16, vocab_size=384),
        data=Data(
            modules=("tasks.pydocs",),
            train="pydocs_span_corruption",
            lengths={"inputs": 32, "targets": 14},
            batch_size=4,
            files=("books",),
        ),
        objective=LanguageModeling(),
        optimizer=Adafactor(),
        train=Train(steps=3),
    )
'''


@pytest.fixture
def here(tmp_path, monkeypatch) -> pathlib.Path:
    """A working directory with a config named small and a folder of texts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv("T2T_CACHE", raising=False)
    for folder in ("configs", "books"):
        (tmp_path / folder).mkdir()
    (tmp_path / "configs" / "small.py").write_text(CONFIG, encoding="utf-8")
    for i in range(4):
        (tmp_path / "books" / f"{i}.txt").write_text(f"A text number {i}.\n\n" * 40, encoding="utf-8")
    return tmp_path


def run(*arguments: str) -> int:
    return cli.main(["cache", "small", *arguments])


SMALL = ("--shard-megabytes", "0.0005", "--workers", "1")


def store(directory):
    """What `t2t train small` reads."""
    experiment = finding.load_config("small")[0]
    vocabulary = ByteVocabulary()
    stream = pipeline.load_stream(
        tasks.to_train(experiment),
        vocabulary=vocabulary,
        converter=build.make_converter(experiment, vocabulary),
        seed=0,
        cache_dir=directory,
    )
    return stream.tasks[0].store


def test_a_run_finds_what_was_made(here, capsys, monkeypatch):
    assert run(*SMALL) == 0
    out, err = capsys.readouterr()
    assert re.search(r"pydocs_span_corruption: \d+ examples \([\d,]+ targets\) in 8 shards.*of which 0 were there", out)
    assert "train from it, with the same settings: T2T_CACHE=cache t2t train small ..." in out
    assert "books: 4 files (4 .txt)" in err
    cached, read = store("cache"), store(None)
    assert type(cached) is not type(read)
    assert [cached[i]["targets"].tolist() for i in range(len(cached))] == [
        read[i]["targets"].tolist() for i in range(len(read))
    ]
    monkeypatch.setenv("T2T_CACHE", str(here / "cache"))
    monkeypatch.setattr(examples, "read_examples", None)
    assert run(*SMALL) == 0
    assert "of which 8 were there" in capsys.readouterr().out


@pytest.mark.slow
def test_what_was_left_out_is_said(here, capsys):
    (here / "books" / "bad.jsonl").write_bytes(b'{"text": "caf\xe9"}\n{"text": ""}\n')
    assert run(*SMALL, "--output", "elsewhere") == 2
    assert "bad.jsonl is not UTF-8: byte 13 is 0xe9" in capsys.readouterr().err
    assert run(*SMALL, "--output", "elsewhere", "--data.on-error", "skip") == 0
    assert "left out: 1 documents empty, 1 documents that cannot be read" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "--workers is 0; it must be positive"),
        ({"shard_megabytes": 0.0}, "--shard-megabytes is 0.0; it must be positive"),
        ({"shard_megabytes": float("nan")}, "--shard-megabytes is nan; it must be positive"),
        ({"runner_options": "--x=1"}, "--runner-options are for a runner of Apache Beam"),
    ],
)
def test_options_that_contradict_themselves(options, message):
    with pytest.raises(UsageError, match=message):
        cache._check(cache.Options(**options))


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data.lengths.inputs", "1"], "leave no room for text"),
        slow(["--split", "test"], "'pydocs_span_corruption' has no split 'test'"),
        slow(["--data.files", "nothing.txt"], "data.files: No file matches 'nothing.txt'"),
        slow(["--output", "configs/small.py"], "configs/small.py"),
        slow(["--model.embed.vocab-size", "100"], "the model has 100 embedding rows and the vocabulary"),
    ],
)
def test_what_cannot_work_is_refused(here, capsys, arguments, message):
    assert run(*arguments) == 2
    assert message in capsys.readouterr().err
    assert not (here / "cache").exists() or not list((here / "cache").rglob("*.safetensors"))


def test_nothing_is_left_of_a_cache_that_could_not_be_begun(here, capsys):
    """A run would take its folder for a cache that is not complete; what was made of one that was begun stays."""
    (here / "books" / "0.txt").write_bytes(b"Caf\xe9.")
    assert run("--output", "made", *SMALL) == 2
    assert "0.txt is not UTF-8" in capsys.readouterr().err
    assert list((here / "made").iterdir()) == []
    (here / "books" / "0.txt").write_text("A text.")
    (here / "books" / "3.txt").write_bytes(b"Caf\xe9.")
    assert run("--output", "made", *SMALL) == 2
    (begun,) = (here / "made").iterdir()
    assert list(begun.glob("g*.safetensors"))
