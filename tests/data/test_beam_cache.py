import sys

import pytest

from t2t.data import beam_cache
from t2t.data.corpora import CorpusError
from t2t.data.file_source import FileSource
from t2t.errors import UsageError
from tests.data.test_token_cache import TASKS, corpus, load, make, same  # noqa: F401 - a fixture


def test_without_beam_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    with pytest.raises(UsageError, match=r"--runner flink needs Apache Beam .*pip install 't2t\[beam\]'"):
        beam_cache.BeamRunner("flink")


@pytest.fixture
def runner():
    pytest.importorskip("apache_beam", reason="apache-beam is not installed: pip install 't2t[beam]'")
    return beam_cache.BeamRunner("direct")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spans", "text to text"])
def test_a_pipeline_makes_the_same_shards(corpus, tmp_path, runner, name):  # noqa: F811
    task = TASKS[name](FileSource({"train": [str(corpus)]}))
    made = make(task, tmp_path / "beam", runner=runner)
    assert made.manifest == make(task, tmp_path / "here").manifest
    same(load(task, tmp_path / "beam").store, load(task).store)


@pytest.mark.slow
def test_a_pipeline_goes_on_with_what_is_there(corpus, tmp_path, runner):  # noqa: F811
    task = TASKS["spans"](FileSource({"train": [str(corpus)]}))
    made = make(task, tmp_path)
    (made.directory / made.manifest.shards[2].file).unlink()
    again = make(task, tmp_path, runner=runner)
    assert (again.manifest, again.kept) == (made.manifest, len(made.manifest.shards) - 1)


def test_sources_that_only_this_process_can_read_are_refused(corpus, tmp_path):  # noqa: F811
    task = TASKS["own steps before"](FileSource({"train": [str(corpus)]}))
    with pytest.raises(UsageError, match="Other machines cannot read the source of task 'cached': they need files"):
        make(task, tmp_path, runner=lambda reader, writer, jobs: iter(()))


def test_shards_that_were_written_elsewhere_are_missed(corpus, tmp_path):  # noqa: F811
    task = TASKS["spans"](FileSource({"train": [str(corpus)]}))
    with pytest.raises(ValueError, match=r"lacks shards of \d+ of \d+ groups \(g00000"):
        make(task, tmp_path, runner=lambda reader, writer, jobs: iter(()))


@pytest.mark.slow
def test_errors_of_a_pipeline_name_the_file(tmp_path, runner):
    (tmp_path / "a.txt").write_bytes(b"\xff")
    task = TASKS["spans"](FileSource({"train": [str(tmp_path / "a.txt")]}))
    with pytest.raises((CorpusError, RuntimeError), match="a.txt is not UTF-8"):
        make(task, tmp_path / "cache", runner=runner)
