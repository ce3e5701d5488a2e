import collections
import logging

import numpy as np
import pytest

from t2t.data import segment_pairs, sentence_formats
from t2t.data.cache import describe
from t2t.data.documents import Documents, FormatStatistics, SequenceFrame
from t2t.data.host_tensorflow import tf
from t2t.data.sentence_formats import (
    DocSentences,
    ElectraSegments,
    FullSentences,
    NextSentence,
    SentenceOrder,
    SentencePairs,
    TokenizeSentences,
)
from t2t.errors import UsageError
from t2t.vocabulary import ByteVocabulary
from tests.data import toy

WORDS = toy.word_vocabulary("[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]", *toy.words(200))
FEATURES = toy.features(WORDS, "inputs", "targets", add_eos=False)
LENGTHS = {"inputs": 12, "targets": 12}
CLS, SEP = 1, 2
FRAME = SequenceFrame(length=12, bos_id=CLS, eos_id=SEP)


def texts(*documents):
    return tf.data.Dataset.from_tensor_slices({"targets": list(documents), "title": ["dropped"] * len(documents)})


def lines(*sizes):
    """A document of lines of different words for each tuple of their sizes; its ids are 5, 6, 7, ..."""
    numbers = iter(range(200))
    return ["\n".join(" ".join(f"w{next(numbers)}" for _ in range(size)) for size in document) for document in sizes]


def of_sizes(*sizes):
    """The same documents tokenised."""
    lengths = np.array([size for document in sizes for size in document], np.int64)
    counts = np.array([len(document) for document in sizes], np.int64)
    return Documents.of(np.arange(5, 5 + lengths.sum()), lengths, counts)


def make(form, *sizes, frame=FRAME):
    """The examples of documents of sentences of these sizes, without TensorFlow, and what is said of them."""
    examples, total = [], FormatStatistics(length=frame.length)
    for made, counted in form.sequences(of_sizes(*sizes), frame):
        total += counted
        columns = form.features(made)
        ends = np.cumsum(columns.pop("lengths"))
        parts = {name: np.split(x, ends[:-1]) if len(x) == ends[-1] else x for name, x in columns.items()}
        examples += [dict(zip(parts, row, strict=True)) for row in zip(*parts.values(), strict=True)]
    return examples, total


def tokenized(*documents, **options):
    return TokenizeSentences(**options)(texts(*documents), None, FEATURES)


def read(preprocessor, *documents, lengths=LENGTHS, features=FEATURES):
    return list(preprocessor(tokenized(*documents), lengths, features).as_numpy_iterator())


def split_at_ends(tokens):
    """The segments between the special tokens."""
    segments, current = [], []
    for token in tokens.tolist():
        if token == SEP:
            segments.append(current)
            current = []
        elif token != CLS:
            current.append(token)
    assert not current
    return segments


# Tokenising.


def test_documents_are_tokenised_sentence_by_sentence():
    rows = list(tokenized("w0 w1. W2\nw3 w4", "", "w5").as_numpy_iterator())
    assert [row["targets"].tolist() for row in rows] == [[5, 4, 4, 8, 9], [], [10]]  # [UNK] for "w1." and "W2"
    assert [row["sentence_lengths"].tolist() for row in rows] == [[2, 1, 2], [], [1]]
    assert set(rows[0]) == {"targets", "sentence_lengths"}
    assert rows[0]["targets"].dtype == rows[0]["sentence_lengths"].dtype == np.int32


def test_sentences_that_are_given_stay_as_they_are():
    rows = [["w0 w1. w2", "w3"], [], ["w4\nw5"]]
    dataset = tf.data.Dataset.from_generator(
        lambda: ({"targets": row} for row in rows), output_signature={"targets": tf.TensorSpec([None], tf.string)}
    )
    made = list(TokenizeSentences()(dataset, None, FEATURES).as_numpy_iterator())
    assert [row["sentence_lengths"].tolist() for row in made] == [[3, 1], [], [2]]
    assert [row["targets"].tolist() for row in made] == [[5, 4, 7, 8], [], [9, 10]]


def test_wrapped_lines_are_one_sentence():
    (row,) = tokenized("w0\nw1\n\nw2", wrapped=True).as_numpy_iterator()
    assert row["sentence_lengths"].tolist() == [2, 1]


@pytest.mark.slow
def test_more_documents_than_a_batch():
    rows = list(tokenized(*[f"w{i % 200}\nw1 w2" for i in range(1100)]).as_numpy_iterator())
    assert [row["targets"].tolist() for row in rows] == [[5 + i % 200, 6, 7] for i in range(1100)]


def test_what_is_no_text_is_refused():
    numbers = tf.data.Dataset.from_tensor_slices({"targets": [1, 2]})
    with pytest.raises(ValueError, match="reads a text or a list of sentences in 'targets'"):
        TokenizeSentences()(numbers, None, FEATURES)
    with pytest.raises(ValueError, match="in 'other', not None"):
        TokenizeSentences(feature="other")(texts("a"), None, toy.features(WORDS, "other"))


# Formats.


def test_pairs_of_next_sentences():
    sizes = [(3, 2, 4, 3, 2)] * 12
    owners = {5 + token: token // 14 for token in range(14 * 12)}
    examples = read(NextSentence(seed=3, duplicates=3), *lines(*sizes))
    plain, _ = make(NextSentence(seed=3, duplicates=3), *sizes)
    assert len(examples) == len(plain) > 60
    for example, other in zip(examples, plain, strict=True):
        assert {name: values.tolist() for name, values in example.items()} == {
            name: values.tolist() for name, values in other.items()
        }
        tokens, types = example["targets"], example["token_types"]
        assert tokens[0] == CLS and tokens[-1] == SEP and len(tokens) <= 12
        first, second = split_at_ends(tokens)
        assert types.tolist() == [0] * (len(first) + 2) + [1] * (len(second) + 1)
        follows = example["next_sentence_labels"] == 0
        assert follows == (example["pair_kinds"] == segment_pairs.Kind.FOLLOWS)
        assert (owners[first[0]] == owners[second[0]]) == follows
        if follows:
            assert second[0] > first[-1]
        assert {value.dtype for value in example.values()} == {np.dtype(np.int32)}
    assert len({tuple(example["targets"]) for example in examples}) > len(examples) // 2


def test_pairs_are_a_function_of_seed_and_copy():
    def tokens(**options):
        return [example["targets"].tolist() for example in make(NextSentence(**options), *[(3, 2, 4, 3, 2)] * 8)[0]]

    once = tokens(seed=1)
    assert tokens(seed=1) == once != tokens(seed=2)
    twice = tokens(seed=1, duplicates=2)
    assert twice[: len(once)] == once != twice[len(once) :]


def test_pairs_of_a_document_do_not_depend_on_empty_ones():
    """The number of a document in its source is its own, whatever the others hold."""
    seen = []

    class Recorded(NextSentence):
        def pairs(self, documents, index, rng, frame):
            seen.append((index, rng.random()))
            return super().pairs(documents, index, rng, frame)

    make(Recorded(), (1, 1, 1), (), (1, 1, 1))
    first, second = (sentence_formats.corruption.example_rng(0, 0, number).random() for number in (0, 2))
    assert seen == [(0, first), (1, second)]


def test_orders_and_single_sentences():
    examples, total = make(SentenceOrder(single="skip"), *[(2, 3, 2, 2)] * 10, (4,))
    assert total.kinds["skipped"] >= 1
    kinds = collections.Counter(int(example["pair_kinds"]) for example in examples)
    assert set(kinds) == {segment_pairs.Kind.FOLLOWS, segment_pairs.Kind.SWAPPED}
    for example in examples:
        first, second = split_at_ends(example["targets"])
        assert (first[0] > second[0]) == example["next_sentence_labels"]


def test_single_sentences_make_pairs():
    sizes = [(3, 2, 4)] * 10
    sentences = {
        tuple(range(start, start + size))
        for number in range(10)
        for start, size in zip((5 + 9 * number, 8 + 9 * number, 10 + 9 * number), (3, 2, 4), strict=True)
    }
    for example in make(SentencePairs(), *sizes)[0]:
        assert {tuple(segment) for segment in split_at_ends(example["targets"])} <= sentences


def test_electra_has_types_and_no_labels():
    examples, _ = make(ElectraSegments(), *[(2, 2, 2, 2, 2)] * 10)
    assert set(examples[0]) == {"targets", "token_types", "pair_kinds"}
    for example in examples:
        segments = split_at_ends(example["targets"])
        assert (len(segments) == 1) == (example["pair_kinds"] == segment_pairs.Kind.SINGLE)
        assert example["token_types"].sum() == (len(segments[1]) + 1 if len(segments) > 1 else 0)


def test_full_and_doc_sentences():
    sizes = [(4, 3), (2, 6), (1,)]
    full = [example["targets"].tolist() for example in read(FullSentences(), *lines(*sizes))]
    assert full == [
        [CLS, *range(5, 12), SEP, 12, 13, SEP],
        [CLS, *range(14, 20), SEP, 20, SEP],
    ]
    made, total = make(DocSentences(), *sizes)
    doc = [example["targets"].tolist() for example in made]
    assert doc == [[CLS, *range(5, 12), SEP], [CLS, *range(12, 20), SEP], [CLS, 20, SEP]]
    assert (total.examples, total.tokens, total.kinds) == (3, 9 + 10 + 3, {})
    assert set(made[0]) == {"targets"}


def test_the_formats_differ_in_padding():
    padding = {}
    for form in (SentencePairs(), NextSentence(short_rate=0.0), DocSentences(), FullSentences()):
        examples, total = make(form, *[(2, 3, 1, 3), (4, 2), (3,), (2, 2, 3)] * 4)
        tokens = sum(len(example["targets"]) for example in examples)
        assert (total.examples, total.tokens) == (len(examples), tokens)
        assert total.padding == pytest.approx(1 - tokens / (12 * len(examples)))
        padding[type(form).__name__] = total.padding
    assert padding["SentencePairs"] > padding["NextSentence"] > padding["FullSentences"]
    assert padding["DocSentences"] > padding["FullSentences"]


@pytest.mark.slow
def test_what_was_made_is_said_in_the_log(caplog):
    with caplog.at_level(logging.INFO, logger=sentence_formats.__name__):
        examples = read(ElectraSegments(), *lines((3, 2, 4), (3, 3)))
    _, total = make(ElectraSegments(), (3, 2, 4), (3, 3))
    assert caplog.records[-1].getMessage().endswith(str(total))
    assert total.examples == len(examples)


def test_a_vocabulary_without_bos():
    features = toy.features(ByteVocabulary(mask=True), "inputs", "targets", add_eos=False)
    frame = NextSentence().frame(LENGTHS, features)
    assert frame == SequenceFrame(length=12, bos_id=None, eos_id=1)
    for example in make(NextSentence(), (2, 3), (4, 2), frame=frame)[0]:
        tokens = example["targets"].tolist()
        assert tokens.count(1) == 2 and tokens[-1] == 1 and tokens[0] != 1


# What cannot work.


@pytest.mark.parametrize(
    ("lengths", "features", "error", "message"),
    [
        (None, FEATURES, UsageError, "give lengths, such as inputs=128"),
        ({"inputs": 4, "targets": 9}, FEATURES, UsageError, "of 4 tokens have no room .* at least 5"),
        (LENGTHS, toy.features(WORDS, "inputs", "targets"), ValueError, r"\['inputs', 'targets'\] with add_eos=False"),
        (
            LENGTHS,
            toy.features(toy.word_vocabulary("[PAD]", "w0"), "targets", add_eos=False),
            UsageError,
            "a token that ends a segment",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused(lengths, features, error, message):
    with pytest.raises(error, match=message):
        NextSentence().frame(lengths, features)


def test_documents_without_end_and_without_sentences_are_refused():
    with pytest.raises(ValueError, match="repeated without end"):
        endless = TokenizeSentences()(texts("w0").repeat(), None, FEATURES)
        NextSentence()(endless, LENGTHS, FEATURES)
    with pytest.raises(ValueError, match=r"put TokenizeSentences\(\) before"):
        NextSentence()(texts("w0"), LENGTHS, FEATURES)
    with pytest.raises(ValueError, match="duplicates=0"):
        NextSentence(duplicates=0)
    with pytest.raises(ValueError, match="short_rate=1.5"):
        SentenceOrder(short_rate=1.5)


def test_no_documents_are_no_examples():
    assert read(NextSentence(), "", " \n") == []
    assert make(FullSentences())[0] == make(FullSentences(), ())[0] == []


def test_tokens_on_disk_are_known_by_the_modules_that_decide_them():
    described = str(describe(NextSentence()))
    assert "t2t.data.segment_pairs" in described and "t2t.data.documents" in described
    assert describe(NextSentence()) == describe(NextSentence()) != describe(NextSentence(seed=1))
