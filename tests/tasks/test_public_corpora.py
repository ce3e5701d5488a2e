"""Corpora that others keep: their names, and rows of their shape in place of the data. Nothing needs a network."""

import importlib
import socket

import pytest

seqio = pytest.importorskip("seqio")

from t2t.data import corpora, examples, public_sources, registry, texts  # noqa: E402
from t2t.vocabulary import ByteVocabulary  # noqa: E402
from tests.shared_data import shared_data  # noqa: E402

ARTICLE = (
    "\n_START_ARTICLE_\n1882 Island election\n_START_PARAGRAPH_\nIt was held on May 8._NEWLINE_Nobody won."
    "\n_START_SECTION_\nResults\n_START_PARAGRAPH_\nNone."
)
LINES = ["", " = First = \n", "", " A text . \n", " = = A section = = \n", "", " = Second = \n", " \n", " Another . \n"]
PAGE = {
    "text": "Habari ya dunia.\nNi siku nzuri.",
    "url": "https://example.org/sw",
    "timestamp": "2022-04-25T12:57:54Z",
    "content-type": "text/html",
    "content-length": "321",
}
BOOK = {
    "book_text": "CHAPTER I\n\nIt was a dark\nand stormy night.",
    "book_title": "Paul Clifford",
    "publication_date": "1830",
    "book_link": "http://www.gutenberg.org/ebooks/7735",
}

# Module and part of the task's name: TFDS name, what TFDS calls the splits, rows, and their text as tasks read it.
CORPORA = {
    ("mc4", "mc4_sw"): ("c4/multilingual:3.1.0", ["sw", "sw-validation"], [PAGE], [PAGE["text"]]),
    ("wiki40b", "wiki40b_zh_cn"): (
        "wiki40b/zh-cn:1.3.0",
        ["train", "validation", "test"],
        [{"text": ARTICLE, "wikidata_id": "Q1", "version_id": "1"}],
        ["1882 Island election\n\nIt was held on May 8.\nNobody won.\n\nResults\n\nNone."],
    ),
    ("lm1b", "lm1b"): ("lm1b:1.1.0", ["train", "test", "test"], [{"text": "It rains ."}] * 2, ["It rains ."] * 2),
    ("tiny_shakespeare", "tiny_shakespeare"): (
        "tiny_shakespeare:1.0.0",
        ["train", "validation", "test"],
        [{"text": "First Citizen:\nBefore we proceed any further, hear me speak."}],
        ["First Citizen:\nBefore we proceed any further, hear me speak."],
    ),
    ("books", "books"): ("pg19:0.1.1", ["train", "validation", "test"], [BOOK], [BOOK["book_text"]]),
    ("wikitext", "wikitext103"): (
        None,
        ["train", "validation", "test"],
        [{"text": line} for line in LINES],
        ["= First =\nA text .\n= = A section = =", "= Second =\nAnother ."],
    ),
}


@pytest.fixture(scope="module")
def modules():
    """All of them, imported where the network cannot be reached."""

    def refuse(*args, **kwargs):
        raise AssertionError("registering a task must not use the network")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        patch.setattr(socket, "getaddrinfo", refuse)
        return {name: importlib.reload(importlib.import_module(f"tasks.{name}")) for name, _ in CORPORA}


def on_rows(name, rows):
    """The registered task, reading rows instead of the corpus."""
    task = seqio.TaskRegistry.get(name)
    source = registry.TextSource(lambda split: rows, splits=("train",))
    prepared = isinstance(task.source, public_sources.PreparedSource)
    return task.replace(source=task.source.on(source) if prepared else source)


@pytest.mark.parametrize("corpus", CORPORA, ids=lambda corpus: corpus[0])
def test_the_source_is_that_of_tfds(modules, corpus):
    expected, splits, _, _ = CORPORA[corpus]
    source = seqio.TaskRegistry.get(f"{corpus[1]}_mlm").source
    assert {"train", "validation"} <= set(source.splits)
    assert len(source.splits) == len(splits)
    if expected is None:
        return
    if isinstance(source, public_sources.PreparedSource):
        source = source.source
    assert source.tfds_dataset.name == expected
    assert list(source.tfds_dataset._split_map.values()) == splits
    name, _, version = expected.partition(":")
    builder = importlib.import_module("tensorflow_datasets").builder_cls(name.partition("/")[0])
    configs = {config.name: config.version for config in builder.BUILDER_CONFIGS}
    assert str(configs.get(name.partition("/")[2]) or builder.VERSION) == version
    assert not configs or name.partition("/")[2] in configs


@pytest.mark.parametrize("corpus", CORPORA, ids=lambda corpus: corpus[0])
def test_rows_become_examples(modules, corpus):
    _, _, rows, expected = CORPORA[corpus]
    task, vocabulary = on_rows(f"{corpus[1]}_causal_lm", rows), ByteVocabulary()
    assert list(texts.raw_texts(task)) == expected
    made = examples.load_examples(task, "train", vocabulary=vocabulary, lengths={"targets": 500}, seed=0)
    ids = made.example(0, epoch=0)["targets"].tolist()
    assert ids == [token for text in expected for token in (*vocabulary.encode(text), vocabulary.eos_id)]


def test_languages_are_those_of_tfds(modules):
    c4 = importlib.import_module("tensorflow_datasets.text.c4")
    wiki40b = importlib.import_module("tensorflow_datasets.text.wiki40b")
    assert list(modules["mc4"].LANGUAGES) == c4.MC4_LANGUAGES
    assert list(modules["wiki40b"].LANGUAGES) == wiki40b.WIKIPEDIA_LANGUAGES


@pytest.mark.parametrize(("name", "number", "exponent"), [("mc4", 107, 0.3), ("wiki40b", 41, 0.7)])
def test_languages_are_mixed_by_their_exponent(modules, name, number, exponent):
    for objective in ("span_corruption", "mlm", "causal_lm", "prefix_lm"):
        mixture = seqio.MixtureRegistry.get(f"{name}_{objective}")
        assert len(mixture.tasks) == number
        rates = set(mixture.rate_per_task_name.values())
        assert [rate.temperature for rate in rates] == [pytest.approx(1 / exponent)]


def test_books_are_mixed_with_wikipedia(modules):
    for objective in ("mlm", "mlm_nsp", "mlm_sop", "permutation_lm"):
        mixture = seqio.MixtureRegistry.get(f"wikipedia_books_{objective}")
        assert {task.name for task in mixture.tasks} == {f"wikipedia_{objective}", f"books_{objective}"}
    assert {"wikipedia_books_bart", "wikipedia_books_mlm_span"} <= set(seqio.MixtureRegistry.names())
    assert "wikipedia_books_permutation_lm_bidirectional" not in seqio.MixtureRegistry.names()


def test_wrapped_lines_of_books_are_one_sentence(modules):
    task = on_rows("books_sentence_pairs", [BOOK])
    lengths = {"inputs": 64, "targets": 64}
    made = examples.load_examples(task, "train", vocabulary=ByteVocabulary(mask=True), lengths=lengths, seed=0)
    shown = [ByteVocabulary(mask=True).decode(made.example(i, epoch=0)["targets"]) for i in range(len(made))]
    assert any("dark\nand stormy night." in text for text in shown)


def test_a_corpus_that_was_not_fetched_says_how(modules, tmp_path, monkeypatch):
    monkeypatch.setenv(public_sources.CORPORA, str(tmp_path))
    task = seqio.TaskRegistry.get("wikitext2_mlm").replace(source=modules["wikitext"].source("wikitext-2-raw-v1"))
    with pytest.raises(corpora.MissingFileError, match="hf download Salesforce/wikitext .*wikitext-2-raw-v1"):
        examples.load_examples(
            task, "train", vocabulary=ByteVocabulary(mask=True), lengths={"inputs": 8, "targets": 8}, seed=0
        )


@pytest.mark.parametrize("split", ["valid", "test"])
def test_articles_of_the_real_files(modules, split):
    """Both have 60, and lines that look like titles but stand in the middle of a text."""
    with shared_data("wikitext2_heldout", f"{split}.txt").open(encoding="utf-8") as lines:
        found = list(modules["wikitext"].articles(lines))
    assert len(found) == 60
    assert all(article.startswith("= ") and "\n" in article for article in found)
