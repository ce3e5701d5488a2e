import functools
import gzip
import json
import logging
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import seqio

from t2t.data import cache, cache_directory, examples, pair_objectives, registry, token_cache
from t2t.data.corpora import CorpusError, MissingFileError
from t2t.data.features import EncoderDecoderFeatures
from t2t.data.file_source import FileSource
from t2t.data.mapped_store import MappedStore
from t2t.data.pipeline import TrainPipeline, load_stream
from t2t.data.preprocessors import CausalLM, Chunk, MaskedTokens, PrefixLM, SpanCorruption, TextToText, tokenize
from t2t.data.registry import feature
from t2t.data.token_cache import Settings
from t2t.data.workers import WorkerDiedError
from t2t.errors import UsageError
from t2t.vocabulary import ByteVocabulary
from tests.data.deadly import Deadly

BYTES = ByteVocabulary()
LENGTHS = {"inputs": 32, "targets": 14}
WORDS = "the quick brown fox jumps over a lazy dog and does not come back until it is dark é 日本".split()


def document(i):
    return " ".join(WORDS[(i * 7 + k * k) % len(WORDS)] for k in range(3 + i * i % 23))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Seven files of five kinds with 84 documents."""
    folder = tmp_path_factory.mktemp("corpus")
    texts = [document(i) for i in range(84)]
    for number in range(6):
        part = texts[number * 14 : number * 14 + 14]
        lines = "".join(json.dumps({"text": text}) + "\n" for text in part)
        if number % 3 == 0:
            (folder / f"{number}.txt").write_text("\n\n".join(part), encoding="utf-8")
        elif number % 3 == 1:
            (folder / f"{number}.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
        else:
            (folder / f"{number}.jsonl").write_text(lines + '{"text": " "}\n', encoding="utf-8")
    (folder / "7.txt").write_text("\n\n")
    return folder


def make_task(objective, source, *steps):
    features = {name: feature(add_eos=not isinstance(objective, CausalLM)) for name in objective.makes}
    rekey = functools.partial(seqio.preprocessors.rekey, key_map={"targets": "text"})
    plain = functools.partial(tokenize, copy_pretokenized=False)
    steps = steps or (rekey, plain, Chunk(corruption=objective, end_documents=isinstance(objective, CausalLM)))
    return seqio.Task("cached", source, output_features=features, preprocessors=[*steps, objective])


def fit(task):
    return examples.fit(task, "train", vocabulary=BYTES, lengths=LENGTHS)[0]


def make(task, directory, *, workers=1, shard_size=300, **options):
    settings = Settings(workers=workers, shard_size=shard_size, **options)
    return token_cache.make(fit(task), "train", lengths=LENGTHS, directory=directory, settings=settings)


def load(task, directory=None):
    return examples.load_examples(task, "train", vocabulary=BYTES, lengths=LENGTHS, seed=5, cache_dir=directory)


def same(one, other):
    assert len(one) == len(other) > 0
    for i in range(len(one)):
        left, right = one[i], other[i]
        assert left.keys() == right.keys()
        for name, value in left.items():
            assert value.dtype == right[name].dtype
            assert value.shape == right[name].shape
            np.testing.assert_array_equal(value, right[name])


def pairs_of_sentences(source):
    names = pair_objectives.add_pair_objectives("cached_pairs", source)
    task = examples.get_task("cached_pairs_mlm_nsp")
    for name in names:
        seqio.TaskRegistry.remove(name)
    return task.replace(name="cached")


def first_fifty(dataset):
    return dataset.map(lambda row: {"targets": row["text"]}).take(50)


def beginnings_but_three(dataset):
    return dataset.map(lambda row: {"targets": row["targets"][:7]}).skip(3)


TASKS = {
    "spans": lambda source: make_task(SpanCorruption(), source),
    "masked": lambda source: make_task(MaskedTokens(), source),
    "causal": lambda source: make_task(CausalLM(), source),
    "prefix of each document": lambda source: make_task(
        PrefixLM(),
        source,
        functools.partial(seqio.preprocessors.rekey, key_map={"targets": "text"}),
        tokenize,
        Chunk(corruption=PrefixLM(), across_documents=False),
    ),
    "pairs of sentences": pairs_of_sentences,
    "text to text": lambda source: seqio.Task(
        "cached",
        source,
        output_features={"inputs": feature(), "targets": feature()},
        preprocessors=[
            TextToText(prefix="say: ", inputs="text", targets="text"),
            tokenize,
            seqio.preprocessors.append_eos_after_trim,
        ],
    ),
    "own steps before": lambda source: make_task(
        CausalLM(),
        source,
        first_fifty,
        tokenize,
        Chunk(corruption=CausalLM()),
    ),
    "own steps behind": lambda source: make_task(
        CausalLM(),
        source,
        functools.partial(seqio.preprocessors.rekey, key_map={"targets": "text"}),
        functools.partial(tokenize, copy_pretokenized=False),
        beginnings_but_three,
    ),
    "own tokenizer": lambda source: make_task(
        CausalLM(),
        source,
        functools.partial(seqio.preprocessors.rekey, key_map={"targets": "text"}),
        seqio.preprocessors.tokenize,
        Chunk(corruption=CausalLM()),
    ),
}


@pytest.fixture(scope="module")
def in_memory(corpus):
    """The examples of a task as they are without a cache."""
    return functools.cache(lambda name: load(TASKS[name](FileSource({"train": [str(corpus)]}))).store)


QUICK = ("spans", "text to text")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in TASKS]
)
def test_a_cache_holds_what_is_read_into_memory(corpus, tmp_path, in_memory, name):
    task = TASKS[name](FileSource({"train": [str(corpus)]}))
    made = make(task, tmp_path)
    cached = load(task, tmp_path)
    assert isinstance(cached.store, MappedStore)
    assert len(made.manifest.shards) > 2
    same(cached.store, in_memory(name))
    assert not list(made.directory.glob("tokens"))


@pytest.mark.slow
def test_texts_in_memory_are_cached_too(tmp_path):
    source = registry.TextSource(lambda split: [{"text": document(i)} for i in range(40)], splits=["train"])
    task = TASKS["spans"](source)
    make(task, tmp_path)
    same(load(task, tmp_path).store, load(task).store)


CONVERTER = EncoderDecoderFeatures(lengths=LENGTHS, start_id=0)


def batches(task, directory, *, rows=4, number=6):
    stream = load_stream(task, vocabulary=BYTES, converter=CONVERTER, seed=3, cache_dir=directory)
    lanes = TrainPipeline(stream, rows=rows, trace=True)
    return [*(next(lanes) for _ in range(number)), lanes.state()]


@pytest.mark.slow
def test_batches_do_not_depend_on_workers_and_shards(corpus, tmp_path):
    task = TASKS["spans"](FileSource({"train": [str(corpus)]}))
    in_memory = batches(task, None)
    hashes = []
    for workers, size in ((1, 300), (3, 300), (3, 900)):
        directory = tmp_path / f"{workers}-{size}"
        made = make(task, directory, workers=workers, shard_size=size)
        hashes.append([shard.sha256 for shard in made.manifest.shards])
        for batch, wanted in zip(batches(task, directory), in_memory, strict=True):
            assert batch.keys() == wanted.keys()
            for name, value in wanted.items():
                np.testing.assert_array_equal(batch[name], value)
    assert hashes[0] == hashes[1] != hashes[2]


def test_the_manifest_counts(corpus, tmp_path):
    task = TASKS["causal"](FileSource({"train": [str(corpus)]}))
    made = make(task, tmp_path)
    tokens = sum(len(BYTES.encode(document(i))) + 1 for i in range(84))
    assert made.manifest.values == {"targets": tokens}
    assert made.manifest.examples == -(-tokens // LENGTHS["targets"])
    assert sum(shard.rows for shard in made.manifest.shards) == 84
    assert made.manifest.skipped.empty == 2
    assert made.kept == 0


class StopError(Exception):
    pass


def stop_after(number):
    shards = []

    def on_shard(shard):
        shards.append(shard.name)
        if len(shards) == number:
            raise StopError

    return on_shard


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("text to text", "own tokenizer")]


@pytest.mark.parametrize("name", ["spans", *SLOW])
def test_what_was_interrupted_is_gone_on_with(corpus, tmp_path, in_memory, name):
    task = TASKS[name](FileSource({"train": [str(corpus)]}))
    with pytest.raises(StopError):
        make(task, tmp_path, on_shard=stop_after(3))
    with pytest.raises(UsageError, match="is not complete: run t2t cache again"):
        load(task, tmp_path)
    written = []
    made = make(task, tmp_path, shard_size=9999, on_shard=lambda shard: written.append(shard.name))
    assert len(written) == len(set(written)) >= len(made.manifest.shards) - 3
    same(load(task, tmp_path).store, in_memory(name))
    again = make(task, tmp_path, on_shard=stop_after(1))
    assert again.manifest == made.manifest
    assert again.kept == len(made.manifest.shards)


def test_finished_groups_are_not_read_again(corpus, tmp_path, monkeypatch):
    task = TASKS["spans"](FileSource({"train": [str(corpus)]}))
    with pytest.raises(StopError):
        make(task, tmp_path, on_shard=stop_after(6))
    read = []
    rows = type(task.source.reader).rows
    monkeypatch.setattr(
        type(task.source.reader),
        "rows",
        lambda self, files, skipped=None: (read.extend(path.name for path in files), rows(self, files, skipped))[1],
    )
    make(task, tmp_path)
    assert "7.txt" in read
    assert "0.txt" not in read


def test_damaged_and_vanished_shards_are_named_and_made_anew(corpus, tmp_path, in_memory, caplog):
    task = TASKS["spans"](FileSource({"train": [str(corpus)]}))
    made = make(task, tmp_path)
    victims = [made.directory / made.manifest.shards[k].file for k in (1, 3)]
    content = bytearray(victims[0].read_bytes())
    content[-3] ^= 4
    victims[0].write_bytes(content)
    with pytest.raises(CorpusError, match=f"{victims[0].name} does not match its SHA-256: make it anew with t2t cache"):
        load(task, tmp_path)
    victims[1].unlink()
    victims[0].unlink()
    with pytest.raises(MissingFileError, match=f"{victims[0].name} has vanished"):
        load(task, tmp_path)
    written = []
    again = make(task, tmp_path, on_shard=lambda shard: written.append(shard.file))
    assert sorted(written) == sorted(victim.name for victim in victims)
    assert f"{victims[1]} has vanished and is made anew" in caplog.text
    assert again.manifest == made.manifest
    same(load(task, tmp_path).store, in_memory("spans"))


def test_a_shard_that_vanishes_while_training_is_named(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("t2t.data.mapped_store.MAX_MAPPED", 1)
    task = TASKS["spans"](FileSource({"train": [str(corpus)]}))
    made = make(task, tmp_path)
    cached = load(task, tmp_path)
    (made.directory / made.manifest.shards[-1].file).unlink()
    assert len(cached.example(0, epoch=0)["inputs"])
    with pytest.raises(MissingFileError, match="a shard of a token cache, has vanished"):
        cached.examples(list(range(len(cached))), epoch=0)


def test_a_cache_of_something_else_is_refused(corpus, tmp_path):
    source = FileSource({"train": [str(corpus)]})
    made = make(TASKS["spans"](source), tmp_path)
    other = ByteVocabulary(sentinels=7)
    with pytest.raises(UsageError, match=rf"{made.directory} was made with another vocabulary\. Make one .* t2t cache"):
        examples.load_examples(
            TASKS["spans"](source), "train", vocabulary=other, lengths=LENGTHS, seed=5, cache_dir=tmp_path
        )
    with pytest.raises(UsageError, match=r"was made with other lengths \({'inputs': 32, 'targets': 14}\)"):
        examples.load_examples(
            TASKS["spans"](source), "train", vocabulary=BYTES, lengths={"inputs": 40, "targets": 14}, seed=5,
            cache_dir=tmp_path,
        )  # fmt: skip
    with pytest.raises(UsageError, match="was made with other preprocessors"):
        load(make_task(SpanCorruption(noise_density=0.2), source), tmp_path)
    with pytest.raises(UsageError, match="was made with another text, or files that have changed since"):
        load(TASKS["spans"](FileSource({"train": [str(corpus / "0.txt")]})), tmp_path)
    part = fit(TASKS["spans"](source).replace(name="another"))
    assert cache.find(tmp_path, part, "train", LENGTHS) is None  # nothing was made of it: it is read into memory


def test_what_cannot_work_is_refused_before_anything_is_read(corpus, tmp_path):
    task = TASKS["spans"](FileSource({"train": [str(corpus)]}))
    with pytest.raises(UsageError, match="'cached' has no split 'test'"):
        examples.fit(task, "test", vocabulary=BYTES, lengths=LENGTHS)
    with pytest.raises(UsageError, match="Task 'cached': .*leave no room"):
        examples.fit(task, "train", vocabulary=BYTES, lengths={"inputs": 1, "targets": 14})
    with pytest.raises(UsageError, match="Task 'cached': .* needs .* sentinels"):
        examples.fit(task, "train", vocabulary=ByteVocabulary(sentinels=1), lengths=LENGTHS)
    with pytest.raises(ValueError, match="workers=0 and shard_size=3 must be positive"):
        Settings(workers=0, shard_size=3)


@pytest.mark.parametrize("name", ["spans", "text to text", pytest.param("own tokenizer", marks=pytest.mark.slow)])
def test_nothing_to_cache_is_an_error(tmp_path, name):
    (tmp_path / "a.jsonl").write_text('{"text": ""}\n')
    task = TASKS[name](FileSource({"train": [str(tmp_path / "a.jsonl")]}))
    with pytest.raises(ValueError, match="has no examples in split 'train'|hold no text"):
        make(task, tmp_path / "cache")
    assert [path.name for path in (tmp_path / "cache").glob("*/MANIFEST.json")] == []


def test_bad_text_stops_or_is_skipped_and_counted(corpus, tmp_path, caplog):
    (tmp_path / "a.txt").write_bytes(b"good\n\nb\xe4d\n\n" + b"fine\n\n" * 30)
    task = TASKS["spans"](FileSource({"train": [str(tmp_path / "a.txt")]}))
    with pytest.raises(CorpusError, match="a.txt is not UTF-8: byte 7 is 0xe4"):
        make(task, tmp_path / "cache")
    task = TASKS["spans"](FileSource({"train": [str(tmp_path / "a.txt")]}, on_error="skip"))
    with caplog.at_level(logging.INFO):
        made = make(task, tmp_path / "other")
    assert made.manifest.skipped.unreadable == 1
    assert "'cached': 1 documents cannot be read and are left out. The first:" in caplog.text
    same(load(task, tmp_path / "other").store, load(task).store)
    assert f"{made.directory.name}.npz" == cache.cache_name(fit(task), "train", LENGTHS)


@pytest.mark.slow
def test_a_worker_that_dies_ends_the_work_and_loses_no_shard(corpus, tmp_path):
    for i in range(6):
        (tmp_path / f"{i}.txt").write_text("fatal" if i == 4 else document(i) * 30)
    task = TASKS["spans"](FileSource({"train": [str(tmp_path)]}))
    part = examples.fit(task, "train", vocabulary=Deadly(), lengths=LENGTHS)[0]
    settings = Settings(workers=2, shard_size=300)
    with pytest.raises(WorkerDiedError, match=r"ended with exit code 9\."):
        token_cache.make(part, "train", lengths=LENGTHS, directory=tmp_path / "cache", settings=settings)
    (path,) = (tmp_path / "cache").iterdir()
    assert len(cache_directory.find_finished(path).shards) >= 2


PROGRAM = """
import pathlib, sys, time

if __name__ == "__main__":
    from tests.data import test_token_cache as tests
    from t2t.data.file_source import FileSource

    task = tests.TASKS["spans"](FileSource({"train": [sys.argv[1]]}))
    tests.make(task, pathlib.Path(sys.argv[2]), workers=2, on_shard=lambda shard: time.sleep(0.3))
"""


@pytest.mark.slow
def test_a_process_that_was_killed_is_gone_on_with(corpus, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, str(tmp_path / "program.py"), str(corpus), str(tmp_path / "cache")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 300
    while len(list(tmp_path.glob("cache/*/g*-*.json"))) < 3 and time.monotonic() < deadline:
        assert process.poll() is None, process.stderr.read().decode()
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stderr.close()
    task = TASKS["spans"](FileSource({"train": [str(corpus)]}))
    (path,) = (tmp_path / "cache").iterdir()
    time.sleep(1)  # workers finish what they have begun
    finished = set(cache_directory.find_finished(path).shards)
    written = []
    made = make(task, tmp_path / "cache", on_shard=lambda shard: written.append(shard.name))
    assert len(finished) >= 3
    assert finished.isdisjoint(written)
    assert finished | set(written) == {shard.name for shard in made.manifest.shards}
    same(load(task, tmp_path / "cache").store, load(task).store)
