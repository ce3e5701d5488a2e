"""Caches made by Apache Beam: what needs no Beam, and pipelines, which run wherever it can be imported.

Beam wants an older protobuf than the newest SentencePiece: `launch/test.sh` installs both beside the environment, in
.beam, and one test here runs the others in a process that has them.
"""

import os
import pathlib
import subprocess
import sys

import pytest

from t2t.data import beam_cache
from t2t.data.corpora import CorpusError
from t2t.data.file_source import FileSource
from t2t.errors import UsageError
from tests.data.test_token_cache import TASKS, corpus, load, make, same  # noqa: F401 - a fixture

BEAM = pathlib.Path(__file__).resolve().parents[2] / ".beam"


def test_without_beam_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    with pytest.raises(UsageError, match=r"--runner flink needs Apache Beam .*pip install 't2t\[beam\]'"):
        beam_cache.BeamRunner("flink")


@pytest.fixture
def beam():
    return pytest.importorskip("apache_beam", reason="apache-beam is not in this process: .beam may have it")


@pytest.fixture
def runner(beam):
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


@pytest.mark.slow
def test_errors_of_a_pipeline_name_the_file(tmp_path, runner):
    (tmp_path / "a.txt").write_bytes(b"\xff")
    task = TASKS["spans"](FileSource({"train": [str(tmp_path / "a.txt")]}))
    with pytest.raises((CorpusError, RuntimeError), match="a.txt is not UTF-8"):
        make(task, tmp_path / "cache", runner=runner)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "option", "wanted"),
    [
        ("flink", "--flink_master=host:8081", ("FlinkRunner", "flink_master", "host:8081")),
        ("Spark", "--spark_master_url=spark://host:7077", ("SparkRunner", "spark_master_url", "spark://host:7077")),
        ("dataflow", "--region=europe-west4", ("DataflowRunner", "region", "europe-west4")),
        ("PortableRunner", "--job_endpoint=host:8099", ("PortableRunner", "job_endpoint", "host:8099")),
    ],
)
def test_a_pipeline_has_the_runner_and_the_options_it_is_given(tmp_path, beam, monkeypatch, name, option, wanted):
    """As Beam itself reads them; the machines of these runners are not there."""
    from apache_beam.options.pipeline_options import StandardOptions

    seen = []

    class Pipeline:
        def __init__(self, options):
            seen.append(options)
            raise InterruptedError

    monkeypatch.setattr(beam, "Pipeline", Pipeline)
    (tmp_path / "a.txt").write_text("some text")
    task = TASKS["spans"](FileSource({"train": [str(tmp_path / "a.txt")]}))
    with pytest.raises(InterruptedError):
        make(task, tmp_path / "cache", runner=beam_cache.BeamRunner(name, [option]))
    runner, field, value = wanted
    assert seen[0].view_as(StandardOptions).runner == runner
    assert runner in StandardOptions.KNOWN_RUNNER_NAMES
    assert seen[0].get_all_options()[field] == value


@pytest.mark.slow
def test_all_of_it_under_beam():
    """Everything that is skipped above, in a process of its own."""
    if not (BEAM / "apache_beam").is_dir():
        pytest.skip(f"needs apache-beam in {BEAM}: launch/test.sh installs it")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTHONPATH"] = os.pathsep.join([str(BEAM), environment["PYTHONPATH"]])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "pipeline", __file__]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 passed" in done.stdout
    assert "skipped" not in done.stdout


def test_sources_that_only_this_process_can_read_are_refused(corpus, tmp_path):  # noqa: F811
    task = TASKS["own steps before"](FileSource({"train": [str(corpus)]}))
    with pytest.raises(UsageError, match="Other machines cannot read the source of task 'cached': they need files"):
        make(task, tmp_path, runner=lambda reader, writer, jobs: iter(()))


def test_shards_that_were_written_elsewhere_are_missed(corpus, tmp_path):  # noqa: F811
    task = TASKS["spans"](FileSource({"train": [str(corpus)]}))
    with pytest.raises(ValueError, match=r"lacks shards of \d+ of \d+ groups \(g00000"):
        make(task, tmp_path, runner=lambda reader, writer, jobs: iter(()))
