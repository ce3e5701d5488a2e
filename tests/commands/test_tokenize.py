"""`t2t tokenize`: aligned pieces and ids, two vocabularies side by side, numbers of all lines."""

import io
import json
import re

import pytest
from rich import cells

from t2t import cli
from t2t import vocabulary as vocabularies

LINES = [f"The quick brown fox number {i} jumps over the lazy dog." for i in range(200)]


@pytest.fixture
def paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    vocabularies.train_wordpiece(LINES, size=90).save(tmp_path / "words")
    vocabularies.train_byte_bpe(LINES, size=300).save(tmp_path / "run" / "vocabulary")
    return tmp_path


def test_pieces_stand_above_their_ids(paths, capsys):
    assert cli.main(["tokenize", "words", "The dog, Ж"]) == 0
    lines = capsys.readouterr().out.splitlines()
    vocabulary = vocabularies.Vocabulary.load(paths / "words")
    ids = vocabulary.encode("The dog, Ж")
    assert ids.count(vocabulary.unk_id) == 2
    assert lines[0] == "The dog, Ж"
    assert lines[1].split() == [vocabulary.pieces()[token] for token in ids]
    assert lines[2].split() == [str(token) for token in ids]
    starts = [[match.start() for match in re.finditer(r"\S+", line)] for line in lines[1:3]]
    assert starts[0] == starts[1]
    assert dict(re.split("  +", line) for line in lines[4:]) == {
        "1 text": "words", "ids": "90", "tokens": f"{len(ids)}", "tokens per word": f"{len(ids) / 3:.2f}",
        "characters per token": f"{10 / len(ids):.2f}", "unknown": f"{200 / len(ids):.2f} %",
    }  # fmt: skip


def test_nothing_is_wider_than_the_terminal(paths, capsys):
    text = "日本語 " * 30 + "x" * 200 + " \t\x1b[31m the lazy dog" * 9
    for compare in ([], ["--compare", "run"]):
        assert cli.main(["tokenize", "words", text, "", *compare]) == 0
        out = capsys.readouterr().out
        assert max(cells.cell_len(line) for line in out.splitlines()) <= 80
        assert "\x1b" not in out and "\t" not in out


def test_two_vocabularies_side_by_side(paths, capsys):
    assert cli.main(["tokenize", "words", "--compare", "run", "the lazy cat", "dog Ж"]) == 0
    out = capsys.readouterr().out.splitlines()
    left, right = out[1].split(" | ")
    assert left.split()[0] == "the" and right.split()[0] == "the"
    assert any("tokens) " in line and line.endswith("tokens)") and "|" in line for line in out)
    assert out[-6].split() == ["2", "texts", "words", "run"]
    assert out[-1].split()[0] == "unknown" and out[-1].split()[-2:] == ["0.00", "%"]


def test_lines_of_a_file_or_of_standard_input(paths, capsys, monkeypatch):
    (paths / "in.jsonl").write_text("".join(json.dumps({"q": line}) + "\n" for line in LINES), encoding="utf-8")
    assert cli.main(["tokenize", "run", "--input", "in.jsonl", "--field", "q", "--show", "2"]) == 0
    out = capsys.readouterr().out
    assert LINES[1] in out and LINES[2] not in out
    assert "200 texts" in out
    monkeypatch.setattr("sys.stdin", io.StringIO("from a pipe\n"))
    assert cli.main(["tokenize", "bytes"]) == 0
    assert "from a pipe" in capsys.readouterr().out


def test_what_cannot_be_is_refused(paths, capsys):
    assert cli.main(["tokenize", "nowhere/at/all", "x"]) == 2
    assert "nowhere/at/all" in capsys.readouterr().err
    (paths / "empty").mkdir()
    assert cli.main(["tokenize", "empty", "x"]) == 2
    assert "empty holds no vocabulary" in capsys.readouterr().err
    assert cli.main(["tokenize", "bytes", "x", "--input", "in.txt"]) == 2
    assert "either texts or --input" in capsys.readouterr().err
    (paths / "broken.txt").write_text("no word pieces\n")
    for name in ("broken.txt", "in.model"):
        (paths / "in.model").write_text("x")
        assert cli.main(["tokenize", name, "x"]) == 2
        assert f"{name} cannot be read as a vocabulary" in capsys.readouterr().err
    assert cli.main(["tokenize", "bytes", "x", "--show", "-1"]) == 2
    assert "--show is -1" in capsys.readouterr().err
