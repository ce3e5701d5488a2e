import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t.data import example_proto
from t2t.data.example_proto import Kind
from t2t.data.host_tensorflow import tf


def feature(value):
    if isinstance(value[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=value))
    if isinstance(value[0], int):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=value))
    return tf.train.Feature(float_list=tf.train.FloatList(value=value))


def serialise(features):
    made = {name: feature(value) for name, value in features.items()}
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString()


VALUES = st.one_of(
    st.lists(st.binary(max_size=300), min_size=1, max_size=3),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=3),
    st.lists(st.floats(width=32), min_size=1, max_size=3),
)


@settings(max_examples=20)
@given(features=st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=9), VALUES, max_size=4))
def test_reads_what_tensorflow_writes(features):
    read = example_proto.parse(serialise(features), list(features))
    kinds = {int: Kind.INTEGERS, float: Kind.FLOATS}
    assert read == {name: kinds.get(type(value[0]), value) for name, value in features.items()}


def test_only_wanted_features_are_read():
    data = serialise({"text": [b"one"], "other": [b"two"]})
    assert example_proto.parse(data, ["text"]) == {"text": [b"one"], "other": Kind.BYTES}
    assert example_proto.parse(b"", ["text"]) == {}
    empty = tf.train.Example(features=tf.train.Features(feature={"text": tf.train.Feature()})).SerializeToString()
    assert example_proto.parse(empty, ["text"]) == {"text": Kind.NOTHING}


@pytest.mark.parametrize("size", [1, 5, 20])
def test_a_message_that_was_cut_off_is_refused(size):
    data = serialise({"text": [b"a rather long text"]})
    with pytest.raises(ValueError, match="it ends in the middle"):
        example_proto.parse(data[:size], ["text"])


@given(data=st.binary(max_size=40))
def test_any_other_bytes_are_refused_or_hold_no_text(data):
    try:
        read = example_proto.parse(data, ["text"])
    except ValueError:
        return
    assert all(isinstance(name, str) for name in read)


def test_checksums_are_those_of_tfrecord(tmp_path):
    path = str(tmp_path / "a.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        writer.write(b"123456789")
    data = (tmp_path / "a.tfrecord").read_bytes()
    assert example_proto.masked_crc(data[:8]) == np.frombuffer(data[8:12], "<u4")[0]
    assert example_proto.masked_crc(data[12:21]) == np.frombuffer(data[21:], "<u4")[0]
