import io
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rightly
from rightly import Predictions


def test_what_is_saved_is_loaded(tmp_path, sample):
    predictions, labels = sample
    marked = Predictions(
        predictions.logits,
        predictions.view_logits,
        predictions.features,
        predictions.view_names,
        [f"class {i}" for i in range(10)],
        np.arange(300) % 3,
        ["blur", "noise"],
        np.arange(300) // 3 * 10**15,
    )
    rightly.save(tmp_path / "a.npz", marked, labels)
    loaded, found = rightly.load(tmp_path / "a.npz")
    for name in ("logits", "view_logits", "features", "shift", "image"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(marked, name))
    for name in ("view_names", "class_names", "shift_names"):
        assert getattr(loaded, name) == getattr(marked, name)
    np.testing.assert_array_equal(found, labels)
    assert [file.name for file in tmp_path.iterdir()] == ["a.npz"]


def test_what_is_loaded_is_saved_to_the_same_bytes(tmp_path, sample):
    predictions, labels = sample
    odd = Predictions(
        predictions.logits * torch.tensor([-0.0, 1e-44, *[1.0] * 8]),
        predictions.view_logits,
        shift=np.arange(300) % 3,
    )
    rightly.save(tmp_path / "a.npz", odd, labels)
    rightly.save(tmp_path / "b.npz", *rightly.load(tmp_path / "a.npz"))
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_the_version_is_stored_and_others_are_refused(tmp_path, sample):
    rightly.save(tmp_path / "a.npz", sample[0])
    with np.load(tmp_path / "a.npz") as stored:
        assert stored["format_version"] == 1
    for version in (2, "one", [1, 1]):
        path = written(tmp_path / "b.npz", logits=LOGITS, format_version=version)
        with pytest.raises(
            ValueError, match=r"b\.npz has format version .* reads 1: update rightly"
        ):
            rightly.load(path)


def test_images_are_derived_for_files_made_by_hand(tmp_path):
    path = written(tmp_path / "a.npz", logits=LOGITS, shift=[0, 1, 0, 1])
    assert rightly.load(path)[0].image.tolist() == [0, 0, 1, 1]
    path = written(tmp_path / "b.npz", logits=LOGITS, image=[0, 1, -1, 3])
    with pytest.raises(ValueError, match=r"b\.npz: image must not be negative"):
        rightly.load(path)


def test_labels_are_none_where_the_file_has_none(tmp_path, sample):
    rightly.save(tmp_path / "a.npz", sample[0])
    assert rightly.load(tmp_path / "a.npz")[1] is None


def written(path, **arrays):
    np.savez(path, **arrays)
    return path


LOGITS = np.random.default_rng(0).normal(size=(4, 3))


@pytest.mark.parametrize(
    ("arrays", "error", "words"),
    [
        ({"scores": LOGITS}, ValueError, "must hold logits or probabilities, but it holds"),
        ({"probabilities": LOGITS}, ValueError, "probabilities must be non-negative rows"),
        ({"probs": LOGITS}, ValueError, "name the array probabilities"),
        ({"logits": LOGITS, "labels": np.zeros(4)}, TypeError, "labels must be integers"),
        ({"logits": LOGITS, "labels": np.zeros(3, int)}, ValueError, "labels must have shape"),
        ({"logits": LOGITS, "labels": np.full(4, 3)}, ValueError, "labels must lie in"),
        ({"logits": LOGITS[:, :1]}, ValueError, "at least 2 classes"),
        ({"logits": np.array([[1, None]], object)}, ValueError, "pickled"),
        ({"logits": LOGITS, "labels": np.array([None] * 4)}, ValueError, "pickled"),
    ],
)
def test_bad_contents_are_refused_with_the_file_name(tmp_path, arrays, error, words):
    path = written(tmp_path / "bad.npz", **arrays)
    with pytest.raises(error, match=words) as caught:
        rightly.load(path)
    assert "bad.npz" in str(caught.value)


def test_unknown_keys_are_named(tmp_path):
    path = written(tmp_path / "a.npz", logits=LOGITS, view_logit=LOGITS)
    with pytest.warns(UserWarning, match="view_logit"):
        rightly.load(path)


def test_files_that_are_not_whole_archives_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere.npz"):
        rightly.load(tmp_path / "nowhere.npz")
    whole = written(tmp_path / "a.npz", logits=LOGITS).read_bytes()
    for name, content in {
        "empty": b"",
        "text": b"logits,labels\n1,2\n",
        "truncated": whole[: len(whole) // 2],
        "npy": _npy(LOGITS),
    }.items():
        path = tmp_path / f"{name}.npz"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"{name}.npz"):
            rightly.load(path)


def _npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def test_an_archive_of_something_else_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("logits.npy", "hello")
    with pytest.raises(ValueError, match="cannot be read|damaged|pickled"):
        rightly.load(path)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_damaged_file_never_gives_silence_or_a_strange_error(tmp_path, data):
    whole = bytearray(written(tmp_path / "a.npz", logits=LOGITS).read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "damaged.npz"
    path.write_bytes(whole[: data.draw(st.integers(1, len(whole)))])
    try:
        predictions, _ = rightly.load(path)
    except (ValueError, TypeError, UserWarning):
        return
    assert np.isfinite(predictions.logits).all()


def patch_members(path, change):
    """Changes the 46 fixed bytes of every entry of an archive's directory."""
    content = bytearray(path.read_bytes())
    place = content.find(b"PK\x01\x02")
    while place >= 0:
        change(memoryview(content)[place : place + 46])
        place = content.find(b"PK\x01\x02", place + 46)
    path.write_bytes(content)


def encrypt(entry):
    entry[8] |= 1


def compress_by(method):
    def change(entry):
        entry[10:12] = method.to_bytes(2, "little")

    return change


def claim(size):
    def change(entry):
        entry[24:28] = size.to_bytes(4, "little")

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (encrypt, "logits is encrypted: decrypt"),
        (compress_by(14), "logits is compressed by method 14, which numpy never uses"),
        (compress_by(99), "logits is compressed by method 99, which numpy never uses"),
        (claim(2**32 - 2), "logits claims 4,294,967,294 bytes, more than .* can hold"),
    ],
)
def test_members_that_numpy_would_not_write_are_refused(tmp_path, change, words):
    path = written(tmp_path / "a.npz", logits=LOGITS)
    patch_members(path, change)
    with pytest.raises(ValueError, match=f"a.npz .*{words}"):
        rightly.load(path)


def forge_header(shape, dtype="<f8", content=b"x" * 100, version=1):
    """A member in numpy's format that claims this shape."""
    text = repr({"descr": dtype, "fortran_order": False, "shape": shape}) + "\n"
    size = len(text).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + size + text.encode() + content


@pytest.mark.parametrize(
    ("member", "words"),
    [
        (forge_header((5_000_000, 1000)), "claims the shape .* 40,000,000,000 bytes, but holds"),
        (forge_header((2**40, 2**40)), "claims the shape"),
        (forge_header((5, 2), content=b"x" * 100), "holds more than its 80 bytes"),
        (forge_header((5, 2), content=b"x" * 70), "claims the shape|ends too early"),
        (forge_header((-1, 2)), "cannot be read|damaged"),
        (forge_header("(" * 3000), "cannot be read|damaged"),
        (forge_header((4, 2), version=3), "version"),
        (b"\x93NUMPY\x01\0\x10\x27" + b"[" * 10_000, "cannot be read"),
        (forge_header((4, 2), dtype="|O"), "pickled Python objects"),
    ],
)
def test_shapes_beyond_the_bytes_of_a_member_are_refused_before_they_are_made(
    tmp_path, member, words
):
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        path = tmp_path / "a.npz"
        with zipfile.ZipFile(path, "w", compression) as archive:
            archive.writestr("logits.npy", member)
        with pytest.raises(ValueError, match=f"a.npz .*({words})"):
            rightly.load(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("second", ["logits.npy", "logits"])
def test_doubled_members_are_refused(tmp_path, second):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("logits.npy", _npy(LOGITS))
        archive.writestr(second, _npy(LOGITS + 1))
    with pytest.raises(ValueError, match="logits is there twice"):
        rightly.load(path)


def test_all_layouts_of_arrays_are_read(tmp_path):
    names = np.array(["a", "bb", "c"])
    path = written(tmp_path / "a.npz", logits=np.asfortranarray(LOGITS), class_names=names)
    loaded, _ = rightly.load(path)
    np.testing.assert_array_equal(loaded.logits, LOGITS)
    assert loaded.class_names == ("a", "bb", "c")
    path = written(tmp_path / "b.npz", logits=LOGITS.astype(">f4"))
    np.testing.assert_array_equal(rightly.load(path)[0].logits, LOGITS.astype("f4"))


def test_nothing_is_written_when_writing_fails(tmp_path, sample):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        rightly.save(tmp_path / "no folder" / "a.npz", sample[0])
    (tmp_path / "a.npz").write_text("before")
    with pytest.raises(TypeError):
        rightly.save(tmp_path / "a.npz", sample[0], sample[1].double())
    assert (tmp_path / "a.npz").read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_single_array_is_told_from_a_truncated_archive(tmp_path):
    np.save(tmp_path / "logits.npy", np.zeros((3, 2)))
    (tmp_path / "logits.npy").rename(tmp_path / "logits.npz")
    with pytest.raises(ValueError, match=r"is one array as numpy.save writes it.*numpy.savez"):
        rightly.load(tmp_path / "logits.npz")
