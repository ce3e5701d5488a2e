"""`t2t tasks`: rows as a run gets them, numbers, a page; what cannot work stops before TensorFlow is imported."""

import re

import pytest
from commands.test_page import check_self_contained

from t2t import cli, finding
from t2t import vocabulary as vocabularies

MODULE = '''"""Tasks on a few lines."""

from t2t.data import masked_objectives, permutation_objectives, registry

WORDS = "one two three four five six seven eight nine ten".split()


def rows(split):
    return [{"text": " ".join(WORDS[(i * k) % 10] for k in range(1, 30))} for i in range(1, 30)]


def pairs(split):
    return [{"inputs": f"count: {'one ' * i}<b>", "targets": str(i)} for i in range(1, 9)]


source = registry.TextSource(rows, splits=("train",))
registry.add_objectives("toy", source)
masked_objectives.add_masked_objectives("toy", source)
permutation_objectives.add_permutation_lm("toy", source)
registry.add_text_to_text("toy_count", registry.TextSource(pairs, splits=("train", "test")), metric_fns=[])
registry.add_mixture("toy_mixture", {"toy_mlm": 1.0, "toy_count": 2.0})
'''


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A folder with a module of tasks and a vocabulary."""
    folder = tmp_path_factory.mktemp("here")
    (folder / "tasks").mkdir()
    (folder / "tasks" / "looked_at.py").write_text(MODULE)
    lines = ["one two three four five six seven eight nine ten", "count: one 1 2 3 4 5 6 7 8 <b>"]
    vocabularies.train_wordpiece(lines * 9, size=60).save(folder / "words")
    return folder


@pytest.fixture
def run(here, monkeypatch, capsys):
    """Runs `t2t tasks` there and returns what it prints."""
    monkeypatch.chdir(here)
    monkeypatch.syspath_prepend(str(here))

    def run(*arguments: str, code: int = 0) -> str:
        assert cli.main(["tasks", *arguments, "--modules", "tasks.looked_at"]) == code
        out, err = capsys.readouterr()
        return err if code else out

    finding.extend_path()
    return run


def test_masked_words(run, here):
    out = run(
        "toy_mlm_exact", "--vocabulary", "words", "--lengths.inputs", "32", "--lengths.targets", "32", "--examples", "2"
    )
    assert (
        "toy_mlm_exact: MaskedTokens, 61 examples in train, read by a model of the kind encoder (lengths inputs 32"
        in out
    )
    assert out.count("row ") == 2 and "row 1: 1 example, 32 of 32 positions" in out
    assert "[MASK]" in out and "encoder targets" in out
    assert re.search(r"1\d\.\d % of the text chosen: \d\d\.\d % masked, \d+\.\d % replaced, \d+\.\d % kept", out)
    assert re.search(r"[01]\.\d % padding", out)
    assert "█" in out


def test_the_same_seed_shows_the_same(run):
    arguments = ("toy_mlm", "--vocabulary", "words", "--examples", "1", "--statistics", "0")
    first = run(*arguments)
    assert run(*arguments) == first != run(*arguments, "--seed", "1")


def test_replaced_tokens_are_judged_all(run):
    out = run("toy_rtd", "--vocabulary", "words", "--examples", "0")
    assert "toy_rtd: ReplacedTokens" in out
    assert re.search(r"1\d\.\d % of the text chosen", out)
    assert "100.0 % of the tokens with loss for the discriminator" in out


def test_permutations_have_two_streams(run):
    out = run("toy_permutation_lm", "--vocabulary", "words", "--lengths.inputs", "24", "--lengths.targets", "24")
    assert "content stream" in out and "query stream" in out
    assert re.search(r"16\.[67] % of the tokens with loss", out)


def test_pairs_share_rows_unless_told_not_to(run):
    out = run("toy_count", "--vocabulary", "words", "--lengths.inputs", "40", "--lengths.targets", "9")
    shown = [int(number) for number in re.findall(r"row \d: (\d) example", out)]
    assert shown[0] > 1 and sum(shown[:-1]) < 3 <= sum(shown)  # rows are shown whole
    assert " | " in out and "decoder reading encoder" in out
    out = run("toy_count", "--vocabulary", "words", "--no-packing", "--model", "prefix-lm")
    assert out.count("1 example,") == 3 and "decoder reading encoder" not in out
    assert "of 8 examples in 8 rows" in out
    out = run("toy_count", "--vocabulary", "words", "--open-rows", "8", "--examples", "0")
    assert re.search(r"of 1?\d examples in [1-3] rows?", out)
    out = run("toy_count", "--vocabulary", "words", "--open-rows", "8", "--no-packing", code=2)
    assert "--open-rows is 8; it must be 1 with --no-packing" in out


def test_other_kinds_of_models(run):
    assert "100.0 % of the tokens with loss" in run("toy_causal_lm", "--examples", "1")
    out = run("toy_causal_lm", "--model", "encoder-decoder", code=2)
    assert "Task 'toy_causal_lm' has the features ['targets']" in out and "lacks ['inputs']" in out


def test_a_mixture_and_its_page(run, here):
    out = run("toy_mixture", "--vocabulary", "words", "--examples", "1", "--html", "pages/toy.html")
    assert "toy_mlm: " in out and "toy_count: " in out and "wrote pages/toy.html" in out
    assert re.search(r"toy_count +8 ", out)
    found = check_self_contained((here / "pages" / "toy.html").read_text(encoding="utf-8"))
    assert "toy_count, toy_mlm" in found.text
    assert sum(name == "img" for name, _ in found.tags) == 4
    assert {"masked", "kept"} <= {word for _, about in found.tags for word in (about.get("class") or "").split()}


def test_a_split_that_is_not_there(run):
    assert "toy_mlm has no split test; it has train" in run("toy_mlm", "--split", "test", code=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--examples", "-1"], "--examples is -1; it must not be negative"),
        (["--lengths.inputs", "0"], "--lengths must be positive numbers of tokens, got {'inputs': 0}"),
        (["--html", "."], "--html . is a directory; give a file to write"),
        (["--html", "corpus.txt"], "--html corpus.txt is there already and no page by its name"),
        (["--seed", "-1"], "--seed is -1; it must lie between 0 and 2147483647"),
        (["--open-rows", "1000000000"], "--open-rows is 1000000000; it must lie between 1 and 4096"),
    ],
)
def test_what_cannot_be_is_refused(monkeypatch, tmp_path, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus.txt").write_text("text")
    assert cli.main(["tasks", "pydocs_topic", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_page_of_all_tasks_is_refused(capsys):
    assert cli.main(["tasks", "--html", "x.html"]) == 2
    assert "--html is a page of one task or mixture: name it" in capsys.readouterr().err


def test_a_vocabulary_that_is_not_there(tmp_path, capsys):
    assert cli.main(["tasks", "pydocs_topic", "--vocabulary", str(tmp_path / "nothing")]) == 2
    assert f"--vocabulary: vocabulary {tmp_path / 'nothing'} does not exist" in capsys.readouterr().err
    (tmp_path / "vocabulary.json").write_text("{")
    assert cli.main(["tasks", "pydocs_topic", "--vocabulary", str(tmp_path)]) == 2


def test_many_languages_are_a_line_for_each_objective(capsys):
    from t2t.commands import tasks
    from t2t.data import languages, registry

    source = registry.TextSource(lambda split: [], splits=("train",))
    languages.add_languages("many", {f"l{number}": source for number in range(21)}, exponent=0.5)
    tasks._list_all()
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines() if line.startswith("many_")]
    assert [line.split()[0] for line in lines] == [
        "many_causal_lm", "many_mlm", "many_prefix_lm", "many_span_corruption"
    ]  # fmt: skip
    assert lines[1] == "many_mlm mixture of 21 tasks, many_l0_mlm to many_l9_mlm"
