import functools
import json

import numpy as np
import seqio

from t2t.data import cache, registry, vocabularies
from t2t.data.examples import split_corruption
from t2t.data.preprocessors import Chunk, SpanCorruption, tokenize
from t2t.vocabulary import ByteVocabulary

BYTES = ByteVocabulary()
LENGTHS = {"inputs": 32, "targets": 12}


class Source(registry.TextSource):
    def fingerprint(self, split):
        return [split, *(x["targets"] for x in self._texts(split))]


def task(density=0.15, text="some text"):
    spans = SpanCorruption(noise_density=density)
    return seqio.Task(
        "spans",
        Source(lambda split: [{"targets": text}], splits=["train", "test"]),
        output_features={"inputs": registry.feature(), "targets": registry.feature()},
        preprocessors=[tokenize, Chunk(corruption=spans), spans],
    )


def test_cache_name_covers_what_decides_the_examples():
    def name(chosen=None, vocabulary=BYTES, split="train", lengths=LENGTHS):
        bound = vocabularies.bind_vocabulary(chosen or task(), vocabulary)
        return cache.cache_name(split_corruption(bound)[0], split, lengths)

    assert name() == name()
    different = [
        name(),
        name(vocabulary=ByteVocabulary(sentinels=5)),
        name(split="test"),
        name(task(density=0.2)),
        name(task(text="other")),
    ]
    different.append(name(lengths={"inputs": 33, "targets": 12}))
    assert len(set(different)) == len(different)


def test_descriptions_are_the_same_in_every_process():
    def scale(x, factor):
        return x * factor

    factor = 3
    closure = lambda x: x * factor  # noqa: E731
    things = [functools.partial(scale, factor=2), closure, object(), SpanCorruption(), len, seqio.ByteVocabulary()]
    assert not [thing for thing in things if " at 0x" in json.dumps(cache.describe(thing))]
    assert cache.describe(functools.partial(scale, factor=2)) != cache.describe(functools.partial(scale, factor=3))
    before = cache.describe(closure)
    factor = 4
    assert cache.describe(closure) != before
    assert cache.describe(np.arange(3)) != cache.describe(np.arange(4))


def test_sources_of_seqio_are_told_apart_by_their_files(tmp_path):
    def name(path):
        source = seqio.TextLineDataSource({"train": str(path)})
        bound = vocabularies.bind_vocabulary(task().replace(source=source), BYTES)
        return cache.cache_name(split_corruption(bound)[0], "train", LENGTHS)

    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "b.txt").write_text("one")
    before = name(tmp_path / "a.txt")
    assert before == name(tmp_path / "a.txt") != name(tmp_path / "b.txt")
    (tmp_path / "a.txt").write_text("another")
    assert name(tmp_path / "a.txt") != before
