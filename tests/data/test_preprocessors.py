import functools

import numpy as np
import pytest
import seqio

from t2t import vocabulary as vocabularies
from t2t.data import corruption, preprocessors
from t2t.data import vocabularies as data_vocabularies
from t2t.data.host_tensorflow import tf
from tests.data import toy
from tests.shared_data import shared_data

BYTES = vocabularies.ByteVocabulary()
BOTH = ("inputs", "targets")


def ids(*rows):
    return tf.data.Dataset.from_generator(
        lambda: ({"targets": np.asarray(row, np.int32), "text": "an extra column"} for row in rows),
        output_signature={"targets": tf.TensorSpec([None], tf.int32), "text": tf.TensorSpec([], tf.string)},
    )


def chunks(objective, length, *rows, add_eos=True, **options):
    lengths = {name: length for name in objective.makes} if length else None
    chunk = preprocessors.Chunk(corruption=objective, **options)
    features = toy.features(BYTES, *objective.makes, add_eos=add_eos)
    examples = list(chunk(ids(*rows), lengths, features).as_numpy_iterator())
    assert all(set(example) == {"targets"} for example in examples)
    return [example["targets"].tolist() for example in examples]


# Text.


def test_text_to_text():
    rows = tf.data.Dataset.from_tensor_slices({"text": ["a b", "c"], "label": ["x", "y"], "other": ["1", "2"]})
    made = preprocessors.TextToText(prefix="topic: ", inputs="text", targets="label")(rows)
    assert list(made.as_numpy_iterator()) == [
        {"inputs": b"topic: a b", "targets": b"x"},
        {"inputs": b"topic: c", "targets": b"y"},
    ]


def test_tokenize_encodes_output_features_and_keeps_the_rest():
    rows = tf.data.Dataset.from_tensor_slices({"inputs": ["ab", ""], "targets": ["é", "c"], "number": [3, 4]})
    examples = list(preprocessors.tokenize(rows, toy.features(BYTES, *BOTH)).as_numpy_iterator())
    assert [example["inputs"].tolist() for example in examples] == [[100, 101], []]
    assert [example["targets"].tolist() for example in examples] == [[0xC3 + 3, 0xA9 + 3], [102]]
    assert [example["inputs_pretokenized"] for example in examples] == [b"ab", b""]
    assert [example["number"] for example in examples] == [3, 4]
    assert examples[0]["inputs"].dtype == np.int32


def test_tokenize_without_copies_and_with_sequences_beside():
    rows = ids([5, 6], [7]).map(lambda row: {"inputs": row["text"], "labels": row["targets"]})
    made = preprocessors.tokenize(rows, toy.features(BYTES, "inputs"), copy_pretokenized=False)
    assert made.element_spec["labels"] == tf.TensorSpec([None], tf.int32)
    assert [example["labels"].tolist() for example in made.as_numpy_iterator()] == [[5, 6], [7]]
    assert set(made.element_spec) == {"inputs", "labels"}


def test_tokenize_takes_vocabularies_of_seqio():
    rows = tf.data.Dataset.from_tensor_slices({"inputs": ["ab"]})
    feature = seqio.Feature(seqio.ByteVocabulary())
    example = next(preprocessors.tokenize(rows, {"inputs": feature}).as_numpy_iterator())
    assert example["inputs"].tolist() == [100, 101]


def test_tokenize_more_than_a_batch():
    texts = [f"text {i}" for i in range(1100)]
    rows = tf.data.Dataset.from_tensor_slices({"inputs": texts})
    made = preprocessors.tokenize(rows, toy.features(BYTES, "inputs")).as_numpy_iterator()
    assert [example["inputs"].tolist() for example in made] == BYTES.encode_batch(texts)


def test_tokenize_refuses_lists_of_strings():
    rows = tf.data.Dataset.from_tensor_slices({"inputs": [["a", "b"]]})
    with pytest.raises(ValueError, match="lists of strings"):
        preprocessors.tokenize(rows, toy.features(BYTES, "inputs"))


def test_a_supervised_task_ends_in_eos():
    def rows(split, shuffle_files=False, seed=None):
        del split, shuffle_files, seed
        return tf.data.Dataset.from_tensor_slices({"question": ["abcdefgh"], "answer": ["xy"]})

    task = seqio.Task(
        "supervised",
        seqio.FunctionDataSource(rows, ["train"]),
        output_features={name: seqio.Feature(data_vocabularies.PlaceholderVocabulary()) for name in BOTH},
        preprocessors=[
            preprocessors.TextToText(prefix="q: ", inputs="question", targets="answer"),
            functools.partial(preprocessors.tokenize, copy_pretokenized=True),
            seqio.preprocessors.append_eos_after_trim,
        ],
    )
    bound = data_vocabularies.bind_vocabulary(task, BYTES)
    example = next(bound.get_dataset({"inputs": 6, "targets": 6}, "train", shuffle=False).as_numpy_iterator())
    assert example["inputs"].tolist() == [*BYTES.encode("q: ab"), 1]
    assert example["targets"].tolist() == [*BYTES.encode("xy"), 1]
    assert example["targets_pretokenized"] == b"xy"


# Chunks.


def test_documents_are_joined_and_cut_to_the_raw_length():
    made = chunks(preprocessors.CausalLM(), 5, [11, 12, 13], [], [14, 15, 16, 17, 18, 19], [20])
    assert made == [[11, 12, 13, 14], [15, 16, 17, 18], [19, 20]]


def test_documents_end_in_eos_when_asked():
    made = chunks(preprocessors.CausalLM(), 4, [11, 12, 13], [14, 15], add_eos=False, end_documents=True)
    assert made == [[11, 12, 13, 1], [14, 15, 1]]


def test_documents_stay_apart_when_asked():
    made = chunks(preprocessors.CausalLM(), 4, [11, 12, 13, 14, 15], [16, 17, 18], across_documents=False)
    assert made == [[11, 12, 13], [14, 15], [16, 17, 18]]


def test_documents_stay_whole_without_lengths():
    made = chunks(preprocessors.CausalLM(), None, [11, 12, 13, 14, 15], [16])
    assert made == [[11, 12, 13, 14, 15], [16]]


def test_chunks_have_no_special_tokens_inside():
    vocabulary = toy.word_vocabulary("[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]", *toy.words(30))
    chunk = preprocessors.Chunk(corruption=preprocessors.MaskedTokens())
    features, lengths = toy.features(vocabulary, *BOTH), {"inputs": 8, "targets": 8}
    documents = ids(range(5, 12), range(12, 20), range(20, 30))
    made = list(
        preprocessors.MaskedTokens()(chunk(documents, lengths, features), lengths, features).as_numpy_iterator()
    )
    assert len(made) == 5
    for example in made:
        targets = example["targets"].tolist()
        assert (targets[0], targets[-1]) == (1, 2)
        assert not set(targets[1:-1]) & {0, 1, 2, 3, 4}


def test_many_documents_lose_nothing():
    rows = [list(range(5, 5 + 1 + i % 7)) for i in range(1500)]
    made = chunks(preprocessors.SpanCorruption(), 33, *rows)
    length = corruption.span_lengths(33, noise_density=0.15, mean_noise_span_length=3.0).tokens
    assert {len(piece) for piece in made[:-1]} == {length}
    assert [token for piece in made for token in piece] == [token for row in rows for token in row]


def test_end_documents_needs_eos():
    vocabulary = toy.word_vocabulary("[PAD]", *toy.words(4))
    chunk = preprocessors.Chunk(corruption=preprocessors.CausalLM(), end_documents=True)
    with pytest.raises(ValueError, match="needs a vocabulary with EOS"):
        chunk(ids([1]), None, toy.features(vocabulary, "targets"))


def test_recorded_language_modelling_of_t5():
    """t5's full_lm: EOS after each document, concatenated, cut to 512."""
    recorded = np.load(shared_data("t5x_golden", "objective_full_lm_512.npz"))
    data = np.load(shared_data("t5x_golden", "c4_500_docs_tokens.npz"))
    documents = np.split(data["flat"], np.cumsum(data["lens"])[:-1])[:128]
    made = chunks(preprocessors.CausalLM(), 512, *documents, add_eos=False, end_documents=True)
    for i in range(40):
        np.testing.assert_array_equal(made[i], recorded[f"{i}_targets"])
