"""Pickles are read as plain data, and never run."""

import os
import pickle
import struct

import numpy as np
import pytest

from rightly.datasets import open_images
from tests.datasets.example_sets import colour, rows_of


def python_two_batch(pixels, labels):
    """The bytes that Python 2 wrote for CIFAR-10: str keys, old names of NumPy."""
    text = lambda s: b"U" + bytes([len(s)]) + s  # noqa: E731
    raw = pixels.tobytes()
    kind = b"cnumpy\ndtype\n" + text(b"u1") + b"K\x00K\x01\x87R"
    kind += b"(K\x03" + text(b"|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    shape = b"K" + bytes([len(pixels)]) + b"M" + struct.pack("<H", 3072) + b"\x86"
    array = b"cnumpy.core.multiarray\n_reconstruct\n" + b"cnumpy\nndarray\n" + b"K\x00\x85"
    array += text(b"b") + b"\x87R" + b"(K\x01" + shape + kind + b"\x89"
    array += b"T" + struct.pack("<I", len(raw)) + raw + b"tb"
    numbers = b"](" + b"".join(b"K" + bytes([y]) for y in labels) + b"e"
    return b"\x80\x02}(" + text(b"data") + array + text(b"labels") + numbers + b"u."


@pytest.mark.parametrize("writer", ["python 2", 2, 4])
def test_pickled_batches_of_cifar10_are_read_as_plain_data(tmp_path, writer):
    pixels = rows_of(3).transpose(0, 3, 1, 2).reshape(3, 3072)
    stored = {b"data": pixels, b"labels": [4, 5, 6], b"filenames": [b"a.png"] * 3}
    if writer == 4:
        stored = {"data": pixels, "labels": [4, 5, 6]}
    home = tmp_path / "cifar-10-batches-py"
    home.mkdir()
    data = (
        python_two_batch(pixels, [4, 5, 6])
        if writer == "python 2"
        else pickle.dumps(stored, writer)
    )
    (home / "test_batch").write_bytes(data)
    images = open_images(tmp_path)
    assert list(images.labels) == [4, 5, 6]
    assert images.names == ("test_batch/00000", "test_batch/00001", "test_batch/00002")
    assert images.read(2).getpixel((31, 0)) == colour(2)


class Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_that_runs_code_is_refused_and_does_not_run(tmp_path, protocol):
    trap = tmp_path / "made by the pickle"
    stored = {b"data": Evil(trap), b"labels": [1]}
    (tmp_path / "test_batch").write_bytes(pickle.dumps(stored, protocol))
    with pytest.raises(ValueError, match="mkdir, which is not plain data.*binary version"):
        open_images(tmp_path, layout="cifar10")
    assert not trap.exists()


@pytest.mark.parametrize(
    "stored",
    [
        [1, 2],
        {b"labels": [1]},
        {b"data": 3, b"labels": [1]},
        {b"data": np.zeros((1, 3072), np.float32), b"labels": [1]},
        {b"data": np.zeros((1, 3071), np.uint8), b"labels": [1]},
        {b"data": np.zeros((2, 3072), np.uint8), b"labels": [1]},
        {b"data": np.zeros((1, 3072), np.uint8), b"labels": [True]},
        {b"data": np.array([[None] * 3072]), b"labels": [1]},
    ],
)
def test_pickles_of_something_else_are_refused(tmp_path, stored):
    (tmp_path / "test_batch").write_bytes(pickle.dumps(stored, 2))
    with pytest.raises(ValueError, match="test_batch must (hold|be)"):
        open_images(tmp_path, layout="cifar10")


def test_a_truncated_pickle_is_refused(tmp_path):
    pixels = rows_of(2).reshape(2, 3072)
    (tmp_path / "test_batch").write_bytes(python_two_batch(pixels, [1, 2])[:-700])
    with pytest.raises(ValueError, match="must be a batch of CIFAR-10"):
        open_images(tmp_path, layout="cifar10")
