"""Rows of the shape of TFDS take the place of the data: nothing here needs a network."""

import importlib
import socket

import pytest

seqio = pytest.importorskip("seqio")

from t2t.data import examples, registry, texts  # noqa: E402
from t2t.vocabulary import ByteVocabulary  # noqa: E402

ROWS = {
    "c4": [
        {
            "text": f"Page number {i}.\nIt has two lines.",
            "url": f"https://example.org/{i}",
            "timestamp": "2019-04-25T12:57:54Z",
            "content-type": "text/html",
            "content-length": "321",
        }
        for i in range(3)
    ],
    "wikipedia": [{"title": f"Article {i}", "text": f"Article {i}\n\nAn article about {i}."} for i in range(3)],
}
LENGTHS = {"inputs": 24, "targets": 24}


@pytest.fixture(params=["c4", "wikipedia"])
def corpus(request, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("registering a task must not use the network")

    with monkeypatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        patch.setattr(socket, "getaddrinfo", refuse)
        importlib.reload(importlib.import_module(f"tasks.{request.param}"))
    return request.param


def on_rows(name, corpus):
    """The registered task, reading three rows instead of TFDS."""
    source = registry.TextSource(lambda split: ROWS[corpus], splits=("train",))
    return seqio.TaskRegistry.get(name).replace(source=source)


def test_four_objectives_are_registered_in_t5s_manner(corpus):
    for objective in ("span_corruption", "mlm", "causal_lm", "prefix_lm"):
        task = seqio.TaskRegistry.get(f"{corpus}_{objective}")
        assert isinstance(task.source, seqio.TfdsDataSource)
        assert set(task.source._splits) == {"train", "validation"}


def test_the_names_are_those_of_tfds(corpus):
    setting, version = {"c4": ("en", "3.1.0"), "wikipedia": ("20230601.en", "1.0.0")}[corpus]
    builder = importlib.import_module("tensorflow_datasets").builder_cls(corpus)
    assert seqio.TaskRegistry.get(f"{corpus}_mlm").source.tfds_dataset.name == f"{corpus}/{setting}:{version}"
    (config,) = [config for config in builder.BUILDER_CONFIGS if config.name == setting]
    assert str(config.version or builder.VERSION) == version


def test_a_vocabulary_is_trained_on_the_texts_alone(corpus):
    task = on_rows(f"{corpus}_span_corruption", corpus)
    assert list(texts.raw_texts(task)) == [row["text"] for row in ROWS[corpus]]


@pytest.mark.parametrize("objective", ["span_corruption", "mlm", "causal_lm", "prefix_lm"])
def test_rows_become_examples(corpus, objective):
    vocabulary = ByteVocabulary(mask=True)
    task = on_rows(f"{corpus}_{objective}", corpus)
    made = examples.load_examples(task, "train", vocabulary=vocabulary, lengths=LENGTHS, seed=0)
    assert len(made) > 1
    example = made.example(0, epoch=0)
    assert set(example) == {"span_corruption": {"inputs", "targets"}, "mlm": {"inputs", "targets", "weights"}}.get(
        objective, set(task.output_features)
    )
    assert all(0 < len(array) <= 24 for array in example.values())
    if objective == "causal_lm":
        assert ROWS[corpus][0]["text"].startswith(vocabulary.decode(example["targets"].tolist()))


def test_t5s_lengths_need_568_tokens_of_text(corpus):
    task = on_rows(f"{corpus}_span_corruption", corpus)
    bound = examples.vocabularies.bind_vocabulary(task, ByteVocabulary(sentinels=100))
    corruption = bound.preprocessors[-1].bind({"inputs": 512, "targets": 114}, bound.output_features)
    assert corruption.raw_length == 568
