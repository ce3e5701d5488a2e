"""`t2t vocab train`: every kind, and options that do not belong to it."""

import dataclasses
import inspect

import pytest

from t2t import cli
from t2t import vocabulary as vocabularies
from t2t.commands import vocab

TEXT = "\n".join(f"The quick brown fox number {i} jumps over the lazy dog." for i in range(200))


@pytest.fixture
def text(tmp_path):
    (tmp_path / "in.txt").write_text(TEXT, encoding="utf-8")
    return str(tmp_path / "in.txt")


@pytest.mark.parametrize(
    ("kind", "size", "extra", "sentinels"),
    [
        ("sentencepiece-unigram", 150, [], 100),
        ("sentencepiece-bpe", 80, ["--sentinels", "3"], 3),
        ("sentencepiece-unigram", 60, ["--framed", "--no-lowercase"], 0),
        ("wordpiece", 80, ["--no-lowercase"], 0),
        ("byte-bpe", 290, ["--end-of-text", "--no-mask", "--sentinels", "2"], 2),
    ],
)
def test_every_kind(text, tmp_path, capsys, kind, size, extra, sentinels):
    out = tmp_path / "out"
    arguments = ["--input", text, "--kind", kind, "--size", str(size), "--output", str(out)]
    assert cli.main(["vocab", "train", *arguments, *extra]) == 0
    trained = vocabularies.Vocabulary.load(out)
    assert (trained.size, len(trained.sentinels)) == (size, sentinels)
    assert trained.decode(trained.encode("The lazy dog")) == "The lazy dog"
    assert f"{size} ids" in capsys.readouterr().out


def test_a_vocabulary_for_ul2(text, tmp_path):
    out = tmp_path / "out"
    arguments = ["--input", text, "--size", "350", "--output", str(out), "--sentinels", "300", "--modes"]
    assert cli.main(["vocab", "train", *arguments]) == 0
    trained = vocabularies.Vocabulary.load(out)
    assert (trained.size, len(trained.sentinels), [*trained.modes]) == (350, 300, ["[NLU]", "[NLG]", "[S2S]"])
    assert trained.encode("[NLU] The lazy dog")[0] == trained.modes["[NLU]"]


def test_an_earlier_vocabulary_is_replaced_when_told_to_alone(text, tmp_path, capsys):
    out = tmp_path / "out"
    first = ["vocab", "train", "--input", text, "--kind", "wordpiece", "--size", "80", "--output", str(out)]
    other = ["vocab", "train", "--input", text, "--size", "150", "--output", str(out)]
    assert cli.main(first) == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert cli.main(other) == 2
    assert f"{out} is there already; --overwrite replaces its files" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert cli.main([*other, "--overwrite"]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["sentencepiece.model", "vocabulary.json"]
    assert vocabularies.Vocabulary.load(out).size == 150


def test_options_of_another_kind_are_refused(text, tmp_path, capsys):
    arguments = ["--input", text, "--size", "300", "--output", str(tmp_path / "out")]
    assert cli.main(["vocab", "train", *arguments, "--end-of-text"]) == 2
    assert "--end-of-text is for --kind byte-bpe, not for sentencepiece-unigram" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", vocab.OPTIONS)
def test_options_and_their_defaults_are_those_of_the_functions(kind):
    parameters = inspect.signature(vocab._trainer(kind)).parameters
    defaults = {field.name: field.default for field in dataclasses.fields(vocab.VocabTrain)}
    names = set(parameters) - {"lines", "size", "model_type"}
    assert set(vocab.OPTIONS[kind]) == names
    for name in names - {"sentinels"}:
        assert parameters[name].default == defaults[name]


def test_lines_that_cannot_be_read_are_left_out_when_told_to_alone(text, tmp_path, capsys):
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"Caf\xe9.\n")
    arguments = ["--input", text, str(bad), "--kind", "wordpiece", "--size", "80", "--output", str(tmp_path / "out")]
    assert cli.main(["vocab", "train", *arguments]) == 2
    assert "t2t vocab train: --on-error skip" in capsys.readouterr().err
    assert cli.main(["vocab", "train", *arguments, "--on-error", "skip"]) == 0
