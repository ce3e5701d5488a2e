import functools

import pytest
import seqio

from t2t.data import examples, preprocessors, registry, token_work
from t2t.data.file_source import FileSource
from t2t.data.host_tensorflow import tf
from t2t.data.mapped_store import Pieces
from t2t.data.preprocessors import CausalLM, Chunk, SpanCorruption, TextToText, tokenize
from t2t.data.registry import feature
from t2t.data.sentence_formats import NextSentence, TokenizeSentences
from t2t.data.text_files import Skipped
from t2t.data.token_blocks import Cut, Prefix, Rekey, SentenceTokenizer
from t2t.vocabulary import ByteVocabulary

BYTES = ByteVocabulary()
LENGTHS = {"inputs": 32, "targets": 16}
REKEY = functools.partial(seqio.preprocessors.rekey, key_map={"targets": "text"})
PLAIN = functools.partial(tokenize, copy_pretokenized=False)
TEXTS = registry.TextSource(lambda split: [{"text": "some text", "title": "a"}], splits=["train"])


def divide(*steps, source=TEXTS, names=("targets",), size=10, **options):
    features = {name: feature(**options) for name in names}
    task = seqio.Task("work", source, output_features=features, preprocessors=list(steps))
    part, _ = examples.fit(task, "train", vocabulary=BYTES, lengths=LENGTHS)
    return token_work.divide(part, "train", LENGTHS, size=size)


def rows(work, group=0):
    return list(work.rows(work.groups[group][1], Skipped()))


def test_documents_are_cut_by_their_place_in_the_text():
    work = divide(REKEY, PLAIN, Chunk(corruption=CausalLM(), end_documents=True), CausalLM(), add_eos=False)
    assert work.pieces == Pieces(feature="targets", length=16)
    assert work.tokenizer.cut == Cut(feature="targets", eos_id=1, length=16, across_documents=True)
    assert work.tokenizer.steps == (Rekey(names={"targets": "text"}),)
    assert list(work.tokenizer.vocabularies) == ["targets"]
    assert (work.rest, work.can_be_shared) == ([], False)
    assert rows(work) == [{"text": "some text", "title": "a"}]


def test_each_document_by_itself():
    work = divide(REKEY, PLAIN, Chunk(corruption=CausalLM(), across_documents=False), CausalLM())
    assert work.pieces is None
    assert work.tokenizer.cut == Cut(feature="targets", eos_id=None, length=15, across_documents=False)


def test_files_are_read_in_groups(tmp_path):
    for i in range(5):
        (tmp_path / f"{i}.txt").write_text(f"text {i}")
    source = FileSource({"train": [str(tmp_path)]})
    work = divide(REKEY, PLAIN, Chunk(corruption=CausalLM()), CausalLM(), source=source)
    assert [(name, [path.name for path in files]) for name, files in work.groups] == [
        ("g00000", ["0.txt", "1.txt"]), ("g00001", ["2.txt", "3.txt"]), ("g00002", ["4.txt"]),
    ]  # fmt: skip
    assert rows(work, 1) == [{"text": "text 2"}, {"text": "text 3"}]
    assert work.can_be_shared


def test_what_follows_the_tokens_is_left_to_do():
    pairs = TextToText(prefix="p: ", inputs="text", targets="title")
    ending = seqio.preprocessors.append_eos_after_trim
    work = divide(pairs, tokenize, ending, names=("inputs", "targets"))
    assert work.rest == [ending]
    assert work.tokenizer.steps == (Prefix(prefix="p: ", inputs="text", targets="title"),)
    own = lambda dataset: dataset  # noqa: E731
    assert divide(REKEY, PLAIN, own).rest == [own]


def test_sentences_are_a_place_to_cut():
    pairs = NextSentence()
    work = divide(REKEY, TokenizeSentences(wrapped=True), pairs)
    steps = (Rekey(names={"targets": "text"}),)
    assert work.tokenizer == SentenceTokenizer(
        vocabulary=BYTES, feature="targets", wrapped=True, lengths="sentence_lengths", steps=steps
    )
    assert (work.rest, work.pieces) == ([pairs], None)


def test_other_sources_and_steps_are_read_by_tensorflow():
    numbers = lambda dataset: dataset.map(lambda row: {"targets": row["text"], "n": tf.constant(3, tf.int64)})  # noqa: E731
    work = divide(numbers, PLAIN)
    assert rows(work) == [{"targets": b"some text", "n": 3}]
    assert work.dtypes == {"n": tf.int64}
    assert not work.can_be_shared


def to_ragged(dataset):
    return dataset.map(lambda row: {"targets": row["text"], "list": tf.ragged.constant([[1], []])})


def to_doubles(dataset):
    return dataset.map(lambda row: {"targets": row["text"], "n": tf.constant(0.1, tf.float64)})


def to_lists(dataset):
    return dataset.map(lambda row: {"targets": row["text"][None]})


@seqio.map_over_dataset(num_seeds=1)
def at_random(row, seed):
    del seed
    return row


def own_end(dataset):
    return dataset


@pytest.mark.parametrize(
    "steps",
    [
        (REKEY, seqio.preprocessors.tokenize),
        (REKEY, at_random, PLAIN),
        (to_ragged, PLAIN),
        (to_doubles, PLAIN),
        (to_lists, PLAIN),
        (REKEY, tokenize, own_end),  # it may look at targets_pretokenized
        (functools.partial(seqio.preprocessors.rekey, key_map={"targets": "text", "t": "title"}), PLAIN, own_end),
        (REKEY, PLAIN, Chunk(corruption=CausalLM()), own_end),
        (REKEY, seqio.CacheDatasetPlaceholder(), PLAIN),
    ],
)
def test_what_cannot_be_divided_exactly_is_not(steps):
    assert divide(*steps) is None


def test_vocabularies_that_are_not_ours():
    features = {"targets": seqio.Feature(vocabulary=seqio.ByteVocabulary())}
    task = seqio.Task("own", TEXTS, output_features=features, preprocessors=[REKEY, PLAIN])
    assert token_work.divide(task, "train", LENGTHS, size=10) is None


def test_a_source_that_reads_in_its_own_way():
    class Own(registry.TextSource):
        def get_dataset(self, *args, **options):
            return super().get_dataset(*args, **options).take(0)

    source = Own(lambda split: [{"text": "some text"}], splits=["train"])
    work = divide(REKEY, PLAIN, source=source)
    assert rows(work) == []


def test_the_fields_of_chunk_are_those_that_are_known():
    assert token_work.is_chunk(Chunk(corruption=SpanCorruption()))
    assert not token_work.is_chunk(preprocessors.tokenize)
