import numpy as np
import pytest
import seqio

from t2t import vocabulary as vocabularies
from t2t.data import preprocessors
from t2t.data import vocabularies as data_vocabularies
from t2t.data.host_tensorflow import tf
from tests.data import toy
from tests.shared_data import shared_data

BYTES = vocabularies.ByteVocabulary()


def placeholders(*names):
    return {name: seqio.Feature(data_vocabularies.PlaceholderVocabulary()) for name in names}


def task(name, features):
    def rows(split, shuffle_files=False, seed=None):
        del split, shuffle_files, seed
        return tf.data.Dataset.from_tensor_slices({"targets": ["ab", "c"]})

    return seqio.Task(
        name,
        seqio.FunctionDataSource(rows, ["train"]),
        output_features=features,
        preprocessors=[preprocessors.tokenize, preprocessors.CausalLM()],
    )


def test_seqio_sees_our_vocabulary():
    wrapped = data_vocabularies.SeqioVocabulary(BYTES)
    assert (wrapped.pad_id, wrapped.bos_id, wrapped.eos_id, wrapped.unk_id) == (0, None, 1, 2)
    assert (wrapped.vocab_size, wrapped.extra_ids) == (360, 100)
    assert wrapped.encode("é") == BYTES.encode("é")
    assert wrapped.decode([100, 101, 1, 102, 0]) == "ab"
    assert wrapped == data_vocabularies.SeqioVocabulary(vocabularies.ByteVocabulary())
    assert wrapped != data_vocabularies.SeqioVocabulary(vocabularies.ByteVocabulary(mask=False))
    assert "360" in str(wrapped)


def test_seqio_tensors():
    wrapped = data_vocabularies.SeqioVocabulary(BYTES)
    ids = wrapped.encode_tf(tf.constant("aé"))
    assert ids.numpy().tolist() == BYTES.encode("aé")
    assert wrapped.decode_tf(ids).numpy().decode() == "aé"
    assert wrapped.decode_tf(tf.constant([[100, 1, 0], [101, 102, 1]])).numpy().tolist() == [b"a", b"bc"]


def test_the_same_special_tokens_as_seqio():
    path = str(shared_data("tokenizers", "t5", "spiece.model"))
    theirs = data_vocabularies.special_tokens(seqio.SentencePieceVocabulary(path, extra_ids=100))
    ours = data_vocabularies.special_tokens(data_vocabularies.SeqioVocabulary(vocabularies.Vocabulary.load(path)))
    assert theirs == ours
    assert ours.sentinels[:2] == (32099, 32098)
    assert data_vocabularies.special_tokens(seqio.ByteVocabulary(extra_ids=3)).sentinels == (261, 260, 259)


def test_a_task_gets_its_vocabulary_late():
    unbound = task("late", placeholders("targets"))
    with pytest.raises(ValueError, match="no vocabulary yet"):
        unbound.get_dataset(None, "train", shuffle=False)
    bound = data_vocabularies.bind_vocabulary(unbound, BYTES)
    examples = [
        example["targets"].tolist() for example in bound.get_dataset(None, "train", shuffle=False).as_numpy_iterator()
    ]
    assert examples == [[100, 101, 1], [102, 1]]
    assert bound.name not in seqio.TaskRegistry.names()
    assert data_vocabularies.bind_vocabulary(unbound, BYTES).name == bound.name


def test_a_mixture_gets_its_vocabulary_late():
    names = ["t2t_test_late_one", "t2t_test_late_two"]
    for name in names:
        seqio.TaskRegistry.add_provider(name, task(name, placeholders("targets")))
    try:
        mixture = seqio.Mixture("t2t_test_late_mixture", [(name, 1.0) for name in names])
        bound = data_vocabularies.bind_vocabulary(mixture, BYTES)
        dataset = bound.get_dataset({"targets": 8}, "train", shuffle=False, num_epochs=1, seed=0)
        assert next(dataset.as_numpy_iterator())["targets"].tolist() == [100, 101, 1]
    finally:
        for name in names:
            seqio.TaskRegistry.remove(name)


def test_other_vocabularies_stay_or_are_refused():
    labels = seqio.PassThroughVocabulary(3)
    features = {**placeholders("targets"), "labels": seqio.Feature(labels, add_eos=False, required=False)}
    bound = data_vocabularies.bind_vocabulary(task("labelled", features), BYTES)
    assert bound.output_features["labels"].vocabulary is labels
    with pytest.raises(ValueError, match="uses ByteVocabulary"):
        data_vocabularies.bind_vocabulary(
            task("own", toy.features(BYTES, "targets")), vocabularies.ByteVocabulary(mask=False)
        )
    with pytest.raises(ValueError, match="vocabulary of 259 ids"):
        data_vocabularies.bind_vocabulary(task("other", {"targets": seqio.Feature(seqio.ByteVocabulary())}), BYTES)


def test_encode_batch_takes_bytes_and_strings():
    assert data_vocabularies.encode_batch(data_vocabularies.SeqioVocabulary(BYTES), [b"a", "b"]) == [[100], [101]]
    assert data_vocabularies.encode_batch(seqio.ByteVocabulary(), [b"\xff", "b"])[1] == [101]
    assert data_vocabularies.as_text(b"\xffa") == "\ufffda"


def test_decoding_does_not_need_padding_to_be_zero():
    vocabulary = toy.word_vocabulary("<s>", "<pad>", "</s>", *toy.words(3))
    wrapped = data_vocabularies.SeqioVocabulary(vocabulary)
    assert wrapped.pad_id == 1
    assert wrapped.decode(np.array([0, 3, 4, 2, 1])) == "w0 w1"


def test_words_of_our_vocabularies_alone():
    marks = data_vocabularies.word_marks(data_vocabularies.SeqioVocabulary(vocabularies.ByteVocabulary()))
    assert np.flatnonzero(marks.begins[3:259]).tolist() == [9, 10, 11, 12, 13, 32]
    for other in (seqio.ByteVocabulary(), data_vocabularies.PlaceholderVocabulary(), None):
        with pytest.raises(ValueError, match="cannot tell where words begin: bind one of t2t.vocabulary"):
            data_vocabularies.word_marks(other)
