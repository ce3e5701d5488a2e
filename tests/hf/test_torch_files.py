"""State dicts that are damaged, or none, are refused when they are opened; no neighbouring byte becomes a number.

The files are written here as torch.save writes them, without torch; tests/hf/test_tensors.py reads those of torch.
"""

import io
import pickle
import zipfile

import numpy as np
import pytest

from t2t.hf import torch_files

NUMBERS = np.arange(6, dtype=np.float32)


def text(value: str) -> bytes:
    return b"X" + len(value).to_bytes(4, "little") + value.encode()


def tuple_of(*items: bytes) -> bytes:
    return b"(" + b"".join(items) + b"t"


def integers(*values: int) -> bytes:
    return tuple_of(*(b"I%d\n" % value for value in values))


def tensor(*, key="0", size=6, offset=0, shape=(2, 3), strides=(3, 1), kind="FloatStorage") -> bytes:
    """The pickle of a tensor."""
    pid = tuple_of(text("storage"), b"ctorch\n%s\n" % kind.encode(), text(key), text("cpu"), b"I%d\n" % size)
    parts = tuple_of(pid + b"Q", b"I%d\n" % offset, integers(*shape), integers(*strides))
    return b"ctorch._utils\n_rebuild_tensor_v2\n" + parts + b"R"


def state(**tensors: bytes) -> bytes:
    return b"\x80\x02}(" + b"".join(text(name) + value for name, value in tensors.items()) + b"u."


def as_zip(pickled: bytes, *, compression: int = zipfile.ZIP_STORED, **storages: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.writestr("archive/data.pkl", pickled)
        for key, content in storages.items():
            archive.writestr(f"archive/data/{key.removeprefix('s')}", content)
        archive.writestr("archive/version", "3\n")
    return file.getvalue()


def as_old(pickled: bytes, storage: bytes) -> bytes:
    head = pickle.dumps(torch_files.MAGIC) + pickle.dumps(1001) + pickle.dumps({})
    return head + pickled + pickle.dumps(["0"]) + (6).to_bytes(8, "little") + storage


WHOLE = as_zip(state(a=tensor()), s0=NUMBERS.tobytes())
OLD = as_old(state(a=tensor()), NUMBERS.tobytes())


def opened(tmp_path, content: bytes):
    file = tmp_path / "pytorch_model.bin"
    file.write_bytes(content)
    return torch_files.open_file(file)


@pytest.mark.parametrize("content", [WHOLE, OLD])
def test_what_is_written_here_is_read(tmp_path, content):
    np.testing.assert_array_equal(opened(tmp_path, content)["a"].read(), NUMBERS.reshape(2, 3))


DAMAGED = {
    "zip without its end": (WHOLE[:-30], "a zip archive that ends before its list of contents"),
    "old without its end": (OLD[:-4], "a cannot be read, of the 24 bytes of its numbers 20 are there"),
    "old without its numbers": (OLD[:-33], "PyTorch state dict"),
    "storage is missing": (as_zip(state(a=tensor())), r"a cannot be read, its numbers \(storage 0\) are missing"),
    "storage is short": (as_zip(state(a=tensor()), s0=b"1234"), "of the 24 bytes of its numbers 4 are there"),
    "tensor is long": (as_zip(state(a=tensor(offset=1)), s0=NUMBERS.tobytes()), "reaches beyond its 6 stored values"),
    "strides are long": (as_zip(state(a=tensor(strides=(4, 1))), s0=NUMBERS.tobytes()), "beyond its 6 stored"),
    "strides go back": (as_zip(state(a=tensor(strides=(-3, 1))), s0=NUMBERS.tobytes()), r"strides \(-3, 1\)"),
    "strides are few": (as_zip(state(a=tensor(strides=(1,))), s0=NUMBERS.tobytes()), r"strides \(1,\)"),
    "two types": (
        as_zip(state(a=tensor(), b=tensor(kind="IntStorage")), s0=NUMBERS.tobytes()),
        "storage 0 is of two types",
    ),
    "no tensor": (as_zip(b"\x80\x02}(" + text("a") + b"ctorch._utils\n_rebuild_tensor_v2\n)Ru."), "state dict"),
    "other zip": (as_zip(b"").replace(b"data.pkl", b"data.txt"), "that torch.save did not write, with 0 files"),
    "no pickle": (as_zip(b"garbage"), "PyTorch state dict"),
    "no memory": (as_zip(b"\x80\x05\x95\xff\xff\xff\xff\xff\xff\xff\x7f."), "PyTorch state dict"),
    "a short persistent id": (as_zip(b"\x80\x02" + tuple_of(text("storage")) + b"Q."), "PyTorch state dict"),
    "html": (b"<!doctype html>" * 20, "does not begin as a file of torch.save does"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_told_at_opening_with_the_way_to_mend_it(tmp_path, name):
    content, message = DAMAGED[name]
    with pytest.raises(ValueError, match=f"pytorch_model.bin .*{message}.*copy or download it again"):
        opened(tmp_path, content)


def test_no_part_of_a_file_is_taken_for_the_whole(tmp_path):
    for content in (WHOLE, OLD):
        for length in range(1, len(content), 7):
            with pytest.raises(ValueError, match="copy or download it again"):
                opened(tmp_path, content[:length])


@pytest.mark.parametrize(
    ("pickled", "what"),
    [
        (pickle.dumps([1]), "a list"),
        (pickle.dumps(5), "a int"),
        (pickle.dumps(None), "a NoneType"),
        (b"\x80\x02" + tensor() + b".", "a StoredTensor"),
        (pickle.dumps({"state_dict": 5}), "a int"),
        (pickle.dumps({3: 4}), "3 is a int"),
        (pickle.dumps({"state_dict": {}, "epoch": 5}), "'state_dict' is a dict"),
        (
            b"\x80\x02ccollections\nOrderedDict\n)R}(" + text("items") + text("x") + b"ubX\x00\x00\x00\x00I1\ns.",
            "'' is a int",
        ),
    ],
)
def test_other_pickles_are_no_state_dict(tmp_path, pickled, what):
    with pytest.raises(ValueError, match=rf"something else than a state dict of tensors \({what}\)\. If it is a whole"):
        opened(tmp_path, as_zip(pickled))


def test_compressed_numbers_are_not_read(tmp_path):
    packed = as_zip(state(a=tensor()), compression=zipfile.ZIP_DEFLATED, s0=NUMBERS.tobytes())
    with pytest.raises(ValueError, match="data/0 is compressed or encrypted; open it with torch"):
        opened(tmp_path, packed)


def test_a_tensor_cannot_be_changed_by_its_pickle(tmp_path):
    changed = b"\x80\x02}(" + text("a") + tensor() + b"}(" + text("offset") + b"I9\nubu."
    with pytest.raises(ValueError, match="PyTorch state dict"):
        opened(tmp_path, as_zip(changed, s0=NUMBERS.tobytes()))
