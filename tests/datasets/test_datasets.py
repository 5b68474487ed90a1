"""Every layout on a few tiny pictures laid out as published, and everything that can be wrong."""

import csv
import importlib.util
import json
import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from rightly.datasets import LAYOUTS, ImageDataset, UnreadableImage, converted_from, open_images
from rightly.datasets import imagenet as imagenet_layouts
from rightly.datasets.cifar import CLASSES
from rightly.datasets.imagenet import wnids
from rightly.datasets.layouts import recognised


def colour(i):
    return (i % 251, (7 * i) % 251, (31 * i) % 251)


def put(path, i=0, mode="RGB", size=(9, 7)):
    """A picture of one colour, by which it is recognised."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour(i)).convert(mode).save(path)


def rows_of(count, first=0):
    pixels = np.empty((count, 32, 32, 3), np.uint8)
    pixels[:] = np.array([colour(first + i) for i in range(count)])[:, None, None]
    return pixels


def make_folders(root):
    for i, name in enumerate(["cat", "dog", "dog", "emu"]):
        put(root / name / f"{i}.png", i)
    return root, {}, [0, 1, 1, 2]


def make_flat(root):
    for i in range(4):
        put(root / f"photo{i}.png", i)
    (root / "labels.csv").write_text(
        "file,label\nphoto1.png,1\nphoto0.png,2\nphoto3.png,0\nphoto2.png,1\n"
    )
    return root, {}, [2, 1, 1, 0]


def make_imagenet_val(root):
    for i, number in enumerate([0, 7, 999]):
        put(root / wnids()[number] / f"ILSVRC2012_val_0000000{i}.JPEG", i)
    return root, {}, [0, 7, 999]


def make_imagenet_subset(root):
    for i, number in enumerate([6, 11, 988]):
        put(root / wnids()[number] / f"0.00{i}_balloon _ parachute_0.9.jpg", i)
    (root / "README.txt").write_text("ImageNet-A")
    return root, {}, [0, 1, 2]


def make_imagenet_sketch(root):
    for i, number in enumerate([3, 500]):
        put(root / wnids()[number] / f"sketch_{i}.JPEG", i)
    return root, {}, [3, 500]


def make_objectnet(root):
    """Mappings in the published form: ids of ImageNet 2012 are another order than torch's."""
    home, order = root / "objectnet-1.0", [(i * 7) % 1000 for i in range(1000)]
    labels = {
        "alarm_clock": "Alarm clock",
        "bicycle": "Bicycle",
        "weight": "Weight (exercise)",
    }
    meanings = {"Alarm clock": "label 409; label 530", "Bicycle": "label 671"}
    (home / "mappings").mkdir(parents=True)
    write = lambda name, value: (home / "mappings" / name).write_text(json.dumps(value))  # noqa: E731
    write("folder_to_objectnet_label.json", labels)
    write("objectnet_to_imagenet_1k.json", meanings)
    write("pytorch_to_imagenet_2012_id.json", {str(i): order[i] for i in range(1000)})
    lines = [""] * 1000
    for i in range(1000):
        lines[order[i]] = f"label {i}"
    (home / "mappings" / "imagenet_to_label_2012_v2").write_text("\n".join(lines) + "\n")
    for i, folder in enumerate(["alarm_clock", "bicycle", "bicycle", "weight"]):
        put(home / "images" / folder / f"{i}abc.png", i, size=(20, 14))
    return root, {}, [0, 1, 1]


def make_cifar10(root):
    home, labels = root / "cifar-10-batches-bin", [3, 9, 0]
    home.mkdir(parents=True)
    for name in ["test_batch", *(f"data_batch_{i}" for i in range(1, 6))]:
        with (home / f"{name}.bin").open("wb") as file:
            for label, row in zip(labels, rows_of(3), strict=True):
                file.write(bytes([label]) + row.transpose(2, 0, 1).tobytes())
    return root, {}, labels


def make_cifar10_1(root):
    root.mkdir(parents=True, exist_ok=True)
    np.save(root / "cifar10.1_v4_data.npy", rows_of(4))
    np.save(root / "cifar10.1_v4_labels.npy", np.array([1, 2, 3, 9], np.int32))
    return root, {}, [1, 2, 3, 9]


def make_cifar10_c(root):
    root.mkdir(parents=True, exist_ok=True)
    # A sparse file: 50,000 rows that take no room but for those written.
    stored = np.lib.format.open_memmap(
        root / "gaussian_noise.npy", "w+", np.uint8, (50_000, 32, 32, 3)
    )
    stored[20_000:20_003] = rows_of(3)
    stored.flush()
    labels = np.arange(50_000) % 10_000 % 10
    np.save(root / "labels.npy", labels.astype(np.uint8))
    return root, {"split": "gaussian_noise", "severity": 3}, labels[:10_000].tolist()


def make_cinic10(root):
    for split in ("train", "valid", "test"):
        for i, name in enumerate(CLASSES):
            put(root / split / name / f"cifar10-{split}-{i}.png", i)
    return root, {}, list(range(10))


def make_iwildcam(root):
    home = root / "iwildcam_v2.0"
    rows = [("id_val", "a.jpg", 0), ("test", "b.jpg", 181), ("id_val", "c.jpg", 5)]
    for i, (_, name, _) in enumerate(rows):
        put(home / "train" / name, i)
    with (home / "metadata.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["", "split", "location_remapped", "filename", "y"])
        table.writerows([k, split, 4, name, y] for k, (split, name, y) in enumerate(rows))
    (home / "categories.csv").write_text(
        "y,category_id,name\n0,0,empty\n5,31,puma concolor\n99999,8,x\n"
    )
    return root, {"split": "id_val"}, [0, 5]


MAKERS = {
    "folders": make_folders,
    "flat": make_flat,
    "imagenet-val": make_imagenet_val,
    "imagenet-a": make_imagenet_subset,
    "imagenet-r": make_imagenet_subset,
    "imagenet-sketch": make_imagenet_sketch,
    "objectnet": make_objectnet,
    "cifar10": make_cifar10,
    "cifar10.1": make_cifar10_1,
    "cifar10-c": make_cifar10_c,
    "cinic10": make_cinic10,
    "iwildcam": make_iwildcam,
}
# Three ImageNet classes may be a part of any of its sets, or a set of their own.
UNMARKED = {"imagenet-val", "imagenet-a", "imagenet-r", "imagenet-sketch"}


def opened(root, name):
    root, options, labels = MAKERS[name](root / name)
    return open_images(root, layout=name, **options), labels


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_gives_names_labels_and_pictures(tmp_path, name):
    images, labels = opened(tmp_path, name)
    assert len(images) == len(images.names) == len(labels) == len(set(images.names))
    assert list(images.labels) == labels
    picture = images.read(1)
    assert picture.mode == "RGB" and converted_from(picture) is None
    expected = colour(2 if name == "iwildcam" else 1)
    jpeg = images.names[1].endswith(("jpg", "JPEG"))
    assert np.allclose(picture.getpixel((4, 3)), expected, atol=8 if jpeg else 0)


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_survives_the_way_to_a_worker(tmp_path, name):
    images, _ = opened(tmp_path, name)
    sent = pickle.dumps(images)
    assert len(sent) < 2_000_000  # paths and names, never pixels
    copy = pickle.loads(sent)
    assert copy.fingerprint == images.fingerprint
    assert copy.read(0).tobytes() == images.read(0).tobytes()


@pytest.mark.parametrize("name", LAYOUTS)
def test_missing_data_names_the_place_to_get_it(tmp_path, name):
    place = LAYOUTS[name].where
    with pytest.raises(FileNotFoundError, match="no folder") as error:
        open_images(tmp_path / "nowhere", layout=name)
    assert place in str(error.value)
    if place:
        (tmp_path / "empty").mkdir()
        with pytest.raises(FileNotFoundError) as error:
            open_images(tmp_path / "empty", layout=name)
        assert place in str(error.value)
        (tmp_path / "empty" / "stray.txt").write_text("")
        with pytest.raises((FileNotFoundError, ValueError)):
            open_images(tmp_path / "empty", layout=name)


@pytest.mark.parametrize("name", sorted(set(LAYOUTS) - UNMARKED))
def test_unmistakable_layouts_are_recognised(tmp_path, name):
    root, options, labels = MAKERS[name](tmp_path / name)
    assert recognised(root) == name
    assert list(open_images(root, **options).labels) == labels


def test_all_classes_of_imagenet_are_recognised(tmp_path):
    put(tmp_path / "picture.png")
    for kind, names in {"val": wnids(), "numbers": [f"{i:04d}" for i in range(1000)]}.items():
        for name in names:
            (tmp_path / kind / name).mkdir(parents=True)
            os.link(tmp_path / "picture.png", tmp_path / kind / name / "x.png")
        assert recognised(tmp_path / kind) == "imagenet-val"
        images = open_images(tmp_path / kind)
        assert list(images.labels) == list(range(1000)) and images.kept_classes is None
    (tmp_path / "val" / wnids()[0] / "x.png").rename(tmp_path / "val" / wnids()[0] / "sketch_1.png")
    assert recognised(tmp_path / "val") == "imagenet-sketch"


def test_a_published_subset_is_recognised_by_its_classes(tmp_path, monkeypatch):
    root, _, _ = make_imagenet_subset(tmp_path)
    with pytest.raises(ValueError, match="cannot be told.*README") as error:
        open_images(root)
    assert all(name in str(error.value) for name in LAYOUTS)
    names = sorted(wnids()[i] for i in (6, 11, 988))
    digest = imagenet_layouts.hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
    monkeypatch.setitem(imagenet_layouts.DIGESTS, digest, "imagenet-a")
    assert recognised(root) == "imagenet-a"


@pytest.mark.slow
def test_digests_of_the_published_subsets_are_right():
    timm = importlib.util.find_spec("timm")  # found, not loaded: it may lack its torchvision
    if timm is None:
        pytest.skip("timm is not installed")
    info = Path(timm.origin).parent / "data" / "_info"
    assert (info / "imagenet_synsets.txt").read_text().split() == list(wnids())
    for letter in "ar":
        found = sorted((info / f"imagenet_{letter}_synsets.txt").read_text().split())
        digest = imagenet_layouts.hashlib.sha256("\n".join(found).encode()).hexdigest()[:16]
        assert imagenet_layouts.DIGESTS[digest] == f"imagenet-{letter}"


def test_parts_of_a_set_are_not_taken_for_classes(tmp_path):
    for split in ("train", "val"):
        put(tmp_path / split / "x.png")
    with pytest.raises(ValueError, match="cannot be told"):
        open_images(tmp_path)
    assert list(open_images(tmp_path, layout="folders").labels) == [0, 1]


def test_logits_are_restricted_to_the_shared_classes(tmp_path):
    images, _ = opened(tmp_path, "imagenet-a")
    assert images.kept_classes == ((6,), (11,), (988,))
    assert images.class_names == tuple(wnids()[i] for i in (6, 11, 988))
    assert "not the 200 published" in images.notes[0]
    views = torch.arange(2 * 3 * 1000.0).reshape(2, 3, 1000)
    assert torch.equal(images.restrict(views), views[..., [6, 11, 988]])


def test_several_classes_of_imagenet_may_mean_one_of_objectnet(tmp_path):
    images, _ = opened(tmp_path, "objectnet")
    assert images.kept_classes == ((409, 530), (671,))
    assert images.class_names == ("alarm_clock", "bicycle")
    assert images.notes == ("1 pictures of 1 classes that ImageNet does not have are left out",)
    logits = torch.zeros(2, 1000)
    logits[0, 409], logits[0, 530], logits[1, 671] = 1, 5, 3
    logits[:, 0] = 99
    assert images.restrict(logits).tolist() == [[5, 0], [0, 3]]


def test_the_red_border_of_objectnet_is_cut_off(tmp_path):
    root, _, _ = make_objectnet(tmp_path)
    path = root / "objectnet-1.0" / "images" / "bicycle" / "1abc.png"
    picture = Image.new("RGB", (20, 14), (255, 0, 0))
    picture.paste((0, 0, 255), (2, 2, 18, 12))
    picture.save(path)
    read = open_images(root).read(1)
    assert read.size == (16, 10) and read.getcolors() == [(160, (0, 0, 255))]


def test_mappings_of_objectnet_that_count_lines_from_1_are_understood(tmp_path):
    root, _, _ = make_objectnet(tmp_path)
    path = root / "objectnet-1.0" / "mappings" / "pytorch_to_imagenet_2012_id.json"
    path.write_text(json.dumps({k: v + 1 for k, v in json.loads(path.read_text()).items()}))
    assert open_images(root).kept_classes == ((409, 530), (671,))
    path.write_text(json.dumps({"0": 1}))
    with pytest.raises(ValueError, match="lead to each of the 1000 lines"):
        open_images(root)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="pytorch_to_imagenet.*objectnet.dev"):
        open_images(root)


def test_objectnet_folders_that_the_mapping_does_not_know_are_refused(tmp_path):
    root, _, _ = make_objectnet(tmp_path)
    put(root / "objectnet-1.0" / "images" / "unicorn" / "a.png")
    with pytest.raises(ValueError, match="name every folder.*unicorn"):
        open_images(root)


def test_imagenet_folders_may_be_named_by_class_number(tmp_path):
    for name in ("0010", "0002", "7"):
        put(tmp_path / name / "a.png")
    images = open_images(tmp_path, layout="imagenet-val")
    assert dict(zip(images.names, images.labels, strict=True)) == {
        "0010/a.png": 10,
        "0002/a.png": 2,
        "7/a.png": 7,
    }
    put(tmp_path / "1000" / "a.png")
    with pytest.raises(ValueError, match="class numbers 0..999"):
        open_images(tmp_path, layout="imagenet-val")


def test_folders_of_no_imagenet_class_are_refused(tmp_path):
    make_imagenet_val(tmp_path)
    put(tmp_path / "n99999999" / "a.png")
    for name in ("imagenet-val", "imagenet-a", "imagenet-sketch"):
        with pytest.raises(ValueError, match="ids of ImageNet classes.*n99999999"):
            open_images(tmp_path, layout=name)


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


def test_training_images_of_cifar10_come_from_five_batches(tmp_path):
    root, _, labels = make_cifar10(tmp_path)
    images = open_images(root, split="train")
    assert len(images) == 15 and list(images.labels) == labels * 5
    assert images.names[3] == "data_batch_2/00000" and images.read(4).getpixel((0, 0)) == colour(1)
    with pytest.raises(IndexError):
        images.read(15)
    with pytest.raises(ValueError, match="'train' or 'test', got 'val'"):
        open_images(root, split="val")
    (root / "cifar-10-batches-bin" / "data_batch_3.bin").unlink()
    with pytest.raises(FileNotFoundError, match=r"data_batch_3.*kriz/cifar"):
        open_images(root, split="train")


def test_a_truncated_binary_batch_is_refused(tmp_path):
    (tmp_path / "test_batch.bin").write_bytes(bytes(3072))
    with pytest.raises(ValueError, match="records of 3073 bytes, got 3072"):
        open_images(tmp_path)


def test_severities_of_cifar10_c_are_blocks_of_rows(tmp_path):
    root, _, labels = make_cifar10_c(tmp_path)
    third = open_images(root, split="gaussian_noise", severity=3)
    assert len(third) == 10_000 and third.names[1] == "gaussian_noise/3/00001"
    assert third.read(2).getpixel((0, 0)) == colour(2)
    everything = open_images(root, split="gaussian_noise")
    assert len(everything) == 50_000
    assert everything.read(20_002).getpixel((0, 0)) == colour(2)
    assert third.fingerprint != open_images(root, split="gaussian_noise", severity=4).fingerprint
    with pytest.raises(ValueError, match="severity must be 1, 2, 3, 4 or 5"):
        open_images(root, split="gaussian_noise", severity=0)
    with pytest.raises(ValueError, match=r"one of \['gaussian_noise'\].*got 'fog'"):
        open_images(root, split="fog")


def test_labels_of_cifar100_c_are_not_taken_for_cifar10_c(tmp_path):
    root, _, _ = make_cifar10_c(tmp_path)
    np.save(root / "labels.npy", np.arange(50_000) % 100)
    with pytest.raises(ValueError, match="cannot be told"):
        open_images(root, split="gaussian_noise")
    with pytest.raises(ValueError, match="is this CIFAR-100"):
        open_images(root, layout="cifar10-c", split="gaussian_noise")


def test_arrays_that_are_not_pictures_are_refused(tmp_path):
    data, labels = tmp_path / "cifar10.1_v4_data.npy", tmp_path / "cifar10.1_v4_labels.npy"
    np.save(labels, np.array([1, 2]))
    np.save(data, np.array([{}, {}], object), allow_pickle=True)
    with pytest.raises(ValueError, match="pickles are never loaded"):
        open_images(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    np.save(other / data.name, rows_of(2).astype(np.float32))
    np.save(other / labels.name, np.array([1, 2]))
    with pytest.raises(ValueError, match=r"uint8 of shape \(n, 32, 32, 3\), got float32"):
        open_images(other)
    third = tmp_path / "third"
    third.mkdir()
    np.save(third / data.name, rows_of(2))
    np.save(third / labels.name, np.array([1, 2, 3]))
    with pytest.raises(ValueError, match="has 2 images but its labels are 3"):
        open_images(third)
    with pytest.raises(FileNotFoundError, match=r"v6_data.*modestyachts"):
        open_images(third, split="v6")


def test_iwildcam_asks_for_a_split_and_names_species(tmp_path):
    root, _, _ = make_iwildcam(tmp_path)
    with pytest.raises(ValueError, match=r"\{'id_val': 2, 'test': 1\}.*got None"):
        open_images(root)
    images = open_images(root, split="test")
    assert list(images.labels) == [181] and len(images.class_names) == 182
    assert images.class_names[5] == "puma concolor" and images.class_names[7] == "class 7"


def test_iwildcam_tables_that_do_not_fit_are_refused(tmp_path):
    root, _, _ = make_iwildcam(tmp_path)
    table = root / "iwildcam_v2.0" / "metadata.csv"
    table.write_text(table.read_text().replace("181", "182"))
    with pytest.raises(ValueError, match="y in .* must lie in 0..181, got '182'"):
        open_images(root, split="test")
    (root / "iwildcam_v2.0" / "train" / "c.jpg").unlink()
    with pytest.raises(FileNotFoundError, match=r"1 of 2 pictures.*c.jpg.*wilds.stanford"):
        open_images(root, split="id_val")
    table.write_text("split,filename\n")
    with pytest.raises(ValueError, match=r"\['y'\] are missing"):
        open_images(root, layout="iwildcam", split="test")


def test_cinic10_needs_its_ten_classes(tmp_path):
    root, _, _ = make_cinic10(tmp_path)
    (root / "test" / "dog" / "cifar10-test-5.png").unlink()
    (root / "test" / "dog").rmdir()
    with pytest.raises(ValueError, match="must hold the folders"):
        open_images(root, layout="cinic10")
    with pytest.raises(ValueError, match="'train', 'valid' or 'test'"):
        open_images(root, layout="cinic10", split="val")
    assert len(open_images(root, layout="cinic10", split="valid")) == 10


@pytest.mark.parametrize(
    ("table", "names", "labels"),
    [
        ("b.png,1\na.png,0\n", None, [0, 1]),
        ("filename,label\nb.png,1\na.png,0\n", None, [0, 1]),
        ("id,split,class_name\nb.png,x,dog\na.png,x,cat\n", None, [0, 1]),
        ("\ufeffpicture,what\nb.png,dog\na.png,cat\n\n", ("dog", "cow", "cat"), [2, 0]),
        ("b.png, 1\na.png, 0\n", ("cat", "dog"), [0, 1]),
        ("b.png,10\na.png,2\n", ("2", "10"), [0, 1]),
    ],
)
def test_tables_of_labels_may_have_headings_numbers_or_names(tmp_path, table, names, labels):
    for i, name in enumerate(("a.png", "b.png")):
        put(tmp_path / "photos" / name, i)
    path = tmp_path / "truth.csv"
    path.write_text(table, encoding="utf-8")
    images = open_images(tmp_path / "photos", labels=path, class_names=names)
    assert images.names == ("a.png", "b.png") and list(images.labels) == labels


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", "it is empty"),
        ("a.png,1\n", "1 pictures have no row: b.png"),
        ("a.png,1\nb.png,0\nc.png,2\n", "1 rows have no picture: c.png"),
        ("a.png,1\nb.png,0\na.png,1\n", "a.png occurs twice"),
        ("a.png,1\nb.png\n", "a label in each row"),
        ("a.png,1\nb.png,dog\n", "all class numbers from 0 or all class names"),
        ("a.png,-1\nb.png,2\n", "negative numbers: -1"),
        ("x,y,z\na.png,1,2\nb.png,1,2\n", "one column of file names"),
    ],
)
def test_tables_of_labels_that_do_not_fit_are_refused(tmp_path, table, message):
    for name in ("a.png", "b.png"):
        put(tmp_path / "photos" / name)
    path = tmp_path / "truth.csv"
    path.write_text(table)
    with pytest.raises(ValueError, match=message):
        open_images(tmp_path / "photos", labels=path)


def test_labels_outside_the_class_names_are_refused(tmp_path):
    put(tmp_path / "a.png")
    (tmp_path / "labels.csv").write_text("a.png,emu\n")
    with pytest.raises(ValueError, match="must be among class_names, but not: emu"):
        open_images(tmp_path, class_names=("cat", "dog"))
    (tmp_path / "labels.csv").write_text("a.png,2\n")
    with pytest.raises(ValueError, match=r"must lie in 0..1 .*got 2..2: do they count from 1"):
        open_images(tmp_path, class_names=("cat", "dog"))
    with pytest.raises(FileNotFoundError, match="no table of labels"):
        open_images(tmp_path, labels=tmp_path / "other.csv")


def test_a_flat_folder_without_a_table_has_no_labels(tmp_path):
    put(tmp_path / "a.png")
    (tmp_path / "notes.txt").write_text("")
    images = open_images(tmp_path)
    assert images.labels is None and images.notes == ("1 files are no pictures: notes.txt",)
    images.check_classes(10)


def test_folders_follow_the_order_of_class_names(tmp_path):
    make_folders(tmp_path)
    images = open_images(tmp_path, class_names=("emu", "dog", "yak", "cat"))
    assert list(images.labels) == [3, 1, 1, 0]
    with pytest.raises(ValueError, match="name every folder.*emu"):
        open_images(tmp_path, class_names=("dog", "cat"))


def test_folders_may_lie_in_a_split_and_below_each_other(tmp_path):
    put(tmp_path / "val" / "cat" / "deep" / "a.png")
    put(tmp_path / "val" / "dog" / "b.PNG")
    put(tmp_path / "val" / "dog" / ".hidden.png")
    images = open_images(tmp_path, layout="folders", split="val")
    assert images.names == ("cat/deep/a.png", "dog/b.PNG")
    with pytest.raises(ValueError, match=r"split must be one of \['val'\].*got 'test'"):
        open_images(tmp_path, layout="folders", split="test")


def test_folders_numbered_without_leading_zeros_are_not_sorted_as_text(tmp_path):
    for i in range(12):
        put(tmp_path / str(i) / "a.png", i)
    with pytest.raises(ValueError, match="do not count up one by one"):
        open_images(tmp_path)
    images = open_images(tmp_path, class_names=[str(i) for i in range(12)])
    assert dict(zip(images.names, images.labels, strict=True))["10/a.png"] == 10


def test_numbered_folders_with_a_gap_are_refused(tmp_path):
    for name in ("0003", "0004", "0006"):
        put(tmp_path / name / "a.png")
    with pytest.raises(ValueError, match="layout='imagenet-val'"):
        open_images(tmp_path)
    assert list(open_images(tmp_path, layout="imagenet-val").labels) == [3, 4, 6]
    put(tmp_path / "0005" / "a.png")
    assert list(open_images(tmp_path).labels) == [0, 1, 2, 3]


def test_empty_folders_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="is empty"):
        open_images(tmp_path)
    put(tmp_path / "cat" / "a.png")
    (tmp_path / "dog").mkdir()
    with pytest.raises(ValueError, match="dog holds no pictures"):
        open_images(tmp_path, layout="folders")
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "a.txt").write_text("")
    with pytest.raises(ValueError, match="holds no pictures"):
        open_images(tmp_path / "text", layout="flat")
    with pytest.raises(ValueError, match="holds no folder"):
        open_images(tmp_path / "text", layout="folders")


def test_an_unknown_layout_is_answered_with_the_known_ones(tmp_path):
    with pytest.raises(ValueError, match="got 'imagenet'") as error:
        open_images(tmp_path, layout="imagenet")
    assert all(name in str(error.value) for name in LAYOUTS)


def test_options_without_meaning_are_refused(tmp_path):
    root, _, _ = make_folders(tmp_path)
    with pytest.raises(ValueError, match="severity has no meaning for layout 'folders'"):
        open_images(root, severity=3)
    with pytest.raises(ValueError, match="layout is for folders"):
        open_images([(Image.new("RGB", (4, 4)), 0)], layout="flat")


@pytest.mark.parametrize("mode", ["L", "LA", "RGBA", "P", "1", "CMYK", "I;16"])
def test_other_channel_counts_are_converted_and_said_so(tmp_path, mode):
    suffix = "tif" if mode == "CMYK" else "png"
    if mode == "I;16":
        Image.fromarray(np.full((4, 4), 65535 // 2, np.uint16)).save(tmp_path / "a.png")
    else:
        put(tmp_path / f"a.{suffix}", 100, mode)
    picture = open_images(tmp_path).read(0)
    assert picture.mode == "RGB" and converted_from(picture) == mode
    if mode == "I;16":
        assert picture.getpixel((0, 0)) == (127, 127, 127)


def test_a_palette_with_transparency_is_converted_without_a_warning(tmp_path):
    picture = Image.new("P", (4, 4))
    picture.putpalette([10, 20, 30] * 256)
    picture.save(tmp_path / "a.png", transparency=bytes([0] * 256))
    assert open_images(tmp_path).read(0).getpixel((1, 1)) == (10, 20, 30)


def test_unreadable_pictures_are_reported_by_name(tmp_path):
    put(tmp_path / "cat" / "good.png")
    (tmp_path / "cat" / "bad.jpg").write_bytes(b"no picture")
    (tmp_path / "cat" / "cut.png").write_bytes((tmp_path / "cat" / "good.png").read_bytes()[:45])
    Image.fromarray(np.zeros((4, 4), np.float32)).save(tmp_path / "cat" / "float.tif")
    images = open_images(tmp_path)
    for i, name in enumerate(images.names):
        if "good" in name:
            assert images.read(i).size == (9, 7)
            continue
        with pytest.raises(UnreadableImage, match=f"{name} cannot be decoded") as error:
            images.read(i)
        assert error.value.name == name and str(tmp_path) not in error.value.reason
        copy = pickle.loads(pickle.dumps(error.value))
        assert (copy.name, copy.reason) == (error.value.name, error.value.reason)


def test_the_fingerprint_tells_sets_apart(tmp_path):
    root, _, _ = make_folders(tmp_path)
    first = open_images(root).fingerprint
    assert open_images(root).fingerprint == first
    others = {
        open_images(root, class_names=("dog", "emu", "cat")).fingerprint,
        open_images(root, layout="flat").fingerprint,
    }
    put(root / "cat" / "0.png", 5, size=(90, 70))
    others.add(open_images(root).fingerprint)
    (root / "cat" / "0.png").rename(root / "cat" / "9.png")
    others.add(open_images(root).fingerprint)
    assert first not in others and len(others) == 4


def test_labels_that_do_not_fit_the_classifier_are_refused(tmp_path):
    root, _, _ = make_folders(tmp_path)
    images = open_images(root)
    images.check_classes(3)
    with pytest.raises(ValueError, match="the set has 3 classes but the classifier 10"):
        images.check_classes(10)
    numbered, _ = opened(tmp_path, "flat")
    numbered.check_classes(10)
    with pytest.raises(ValueError, match=r"0..1 for the 2 classes of the classifier, got 2"):
        numbered.check_classes(2)
    subset, _ = opened(tmp_path, "imagenet-r")
    subset.check_classes(1000)
    with pytest.raises(ValueError, match="up to number 988"):
        subset.check_classes(200)


def test_an_image_set_checks_itself():
    def read(i):
        return Image.new("RGB", (4, 4))

    with pytest.raises(ValueError, match="occur twice: a"):
        ImageDataset(("a", "a"), read)
    with pytest.raises(ValueError, match="one for each of the 2 images, got 1"):
        ImageDataset(("a", "b"), read, [1])
    with pytest.raises(ValueError, match="at least one image"):
        ImageDataset((), read)
    with pytest.raises(ValueError, match="got -1..0"):
        ImageDataset(("a", "b"), read, [-1, 0])


class Pairs(torch.utils.data.Dataset):
    def __init__(self, pictures, labels):
        self.pictures, self.own, self.reads = pictures, labels, 0

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, i):
        self.reads += 1
        return self.pictures[i], self.own[i]


@pytest.mark.parametrize("kind", ["pillow", "bytes", "floats", "array", "grey", "grey plane"])
def test_torch_data_sets_may_yield_any_usual_picture(kind):
    bytes_ = torch.tensor(rows_of(3)).permute(0, 3, 1, 2)
    pictures = {
        "pillow": [Image.fromarray(row) for row in rows_of(3)],
        "bytes": bytes_,
        "floats": bytes_ / 255,
        "array": rows_of(3),
        "grey": bytes_[:, :1],
        "grey plane": bytes_[:, 0],
    }[kind]
    images = open_images(Pairs(pictures, [2, torch.tensor(1), np.int64(0)]))
    assert list(images.labels) == [2, 1, 0] and images.names == ("0", "1", "2")
    picture = images.read(2)
    red, green, blue = colour(2)
    expected = (red,) * 3 if "grey" in kind else (red, green, blue)
    assert tuple(np.asarray(picture)[0, 0]) == expected
    assert converted_from(picture) == ("L" if "grey" in kind else None)


def test_labels_that_come_with_pictures_are_free_after_reading():
    source = Pairs([Image.new("RGB", (4, 4))] * 5, [4, 3, 2, 1, 0])
    images = open_images(source)
    images.read(1)
    before = source.reads
    assert images.labels[1] == 3 and source.reads == before
    assert images.labels[2] == 2
    assert list(images.labels) == [4, 3, 2, 1, 0]
    with pytest.raises(IndexError):
        images.labels[5]


def test_labels_that_a_data_set_holds_ready_are_used():
    pixels = torch.zeros(6, 3, 4, 4)
    source = torch.utils.data.TensorDataset(pixels, torch.arange(6))
    assert open_images(source).labels == list(range(6))
    subset = torch.utils.data.Subset(source, [5, 3])
    assert open_images(subset).labels == [5, 3]
    held = Pairs(pixels, [1, 1, 0, 0, 1, 0])
    held.targets, held.classes = [1, 1, 0, 0, 1, 0], ["cat", "dog"]
    images = open_images(held)
    assert images.labels == [1, 1, 0, 0, 1, 0] and images.class_names == ("cat", "dog")
    held.targets = [0] * 6  # disagrees with what it yields
    assert list(open_images(held).labels) == [1, 1, 0, 0, 1, 0]


def test_images_without_labels_may_be_given_some():
    pictures = [Image.new("RGB", (4, 4))] * 2
    assert open_images(pictures).labels is None
    assert open_images(pictures, labels=[1, 0]).labels == [1, 0]
    with pytest.raises(ValueError, match="must be left out"):
        open_images(Pairs(pictures, [0, 1]), labels=[1, 0])


def test_the_fingerprint_of_a_data_set_sees_its_pictures():
    black, white = (Image.new("RGB", (4, 4), c) for c in ("black", "white"))
    assert open_images([black, white]).fingerprint != open_images([white, black]).fingerprint
    assert open_images([black, white]).fingerprint == open_images([black, white]).fingerprint


@pytest.mark.parametrize(
    ("item", "error", "message"),
    [
        (
            torch.full((3, 4, 4), 1.5),
            ValueError,
            r"in \[0, 1\] as float, got values from 1.5",
        ),
        (torch.full((3, 4, 4), float("nan")), ValueError, r"must lie in \[0, 1\]"),
        (torch.zeros(3, 4, 4, dtype=torch.int64), TypeError, "uint8 or float"),
        (torch.zeros(5, 4, 4), ValueError, "1, 3 or 4 channels"),
        (np.zeros((3, 4, 4), np.uint8)[:, :, :2], ValueError, "arrays"),
        ("a.png", TypeError, "must be a Pillow image"),
        ({"image": 1}, TypeError, "dictionary"),
        ((torch.zeros(3, 4, 4), 1, 2), TypeError, "got 3 values"),
        ((torch.zeros(3, 4, 4), 0.5), TypeError, "label 0 must be a whole number"),
        ((torch.zeros(3, 4, 4), -1), ValueError, "label 0 must be a class number from 0"),
    ],
)
def test_items_that_are_no_pictures_are_refused(item, error, message):
    with pytest.raises(error, match=message):
        open_images([item]).read(0)


def test_data_sets_without_length_or_content_are_refused():
    with pytest.raises(TypeError, match="data set with a length, got generator"):
        open_images(iter_ for iter_ in [])
    with pytest.raises(ValueError, match="empty data set"):
        open_images([])


def test_a_picture_that_a_data_set_cannot_open_is_unreadable():
    class Broken(Pairs):
        def __getitem__(self, i):
            if i == 1:
                raise OSError("broken data stream")
            return super().__getitem__(i)

    images = open_images(Broken([Image.new("RGB", (4, 4))] * 3, [0, 1, 0]))
    with pytest.raises(UnreadableImage, match="1 cannot be decoded: broken data stream"):
        images.read(1)


class Feature:
    names = ("cat", "dog")


class FakeHuggingFace:
    """The part of datasets.Dataset that is used."""

    def __init__(self, **columns):
        self.columns, self.column_names = columns, list(columns)
        self.features = {"label": Feature()}

    def __len__(self):
        return len(next(iter(self.columns.values())))

    def __getitem__(self, key):
        if isinstance(key, str):
            return self.columns[key]
        return {name: values[key] for name, values in self.columns.items()}


def test_hugging_face_data_sets_are_read_by_column(tmp_path):
    put(tmp_path / "a.png", 3)
    stored = {"bytes": (tmp_path / "a.png").read_bytes(), "path": None}
    pictures = [Image.new("L", (4, 4), 7), stored, {"bytes": None, "path": str(tmp_path / "a.png")}]
    source = FakeHuggingFace(image=pictures, label=[1, 0, 1])
    images = open_images(source)
    assert list(images.labels) == [1, 0, 1] and images.class_names == ("cat", "dog")
    assert converted_from(images.read(0)) == "L" and images.read(1).getpixel((0, 0)) == colour(3)
    assert images.read(2).getpixel((0, 0)) == colour(3)
    assert open_images({"test": source}["test"]).fingerprint == images.fingerprint


def test_hugging_face_columns_that_do_not_fit_are_refused():
    picture = [Image.new("RGB", (4, 4))]
    assert open_images(FakeHuggingFace(img=picture)).labels is None
    with pytest.raises(ValueError, match=r"column image or img, got \['photo'\].*rename_column"):
        open_images(FakeHuggingFace(photo=picture))
    with pytest.raises(ValueError, match="got both"):
        open_images(FakeHuggingFace(img=picture, image=picture))
    with pytest.raises(ValueError, match="remove the labels"):
        open_images(FakeHuggingFace(img=picture, label=[-1]))
    with pytest.raises(ValueError, match="split must be left out"):
        open_images(FakeHuggingFace(img=picture), split="test")
    broken = FakeHuggingFace(img=[{"bytes": b"nothing", "path": None}])
    with pytest.raises(UnreadableImage):
        open_images(broken).read(0)


def test_hugging_face_splits_are_chosen_by_name():
    class Splits(dict):
        column_names = {"test": ["img"]}

    splits = Splits(test=FakeHuggingFace(img=[Image.new("RGB", (4, 4))]))
    assert len(open_images(splits, split="test")) == 1
    with pytest.raises(ValueError, match=r"one of \['test'\], got None"):
        open_images(splits)


@pytest.mark.slow
def test_real_hugging_face_data_sets_are_read():
    datasets = pytest.importorskip("datasets")
    pictures = [Image.new("RGB", (8, 8), colour(i)) for i in range(4)]
    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])}
    )
    source = datasets.Dataset.from_dict({"image": pictures, "label": [0, 1, 1, 0]}, features)
    for given in (source, source.cast_column("image", datasets.Image(decode=False))):
        images = open_images(given)
        assert list(images.labels) == [0, 1, 1, 0] and images.class_names == ("cat", "dog")
        assert images.read(3).getpixel((0, 0)) == colour(3)
    splits = datasets.DatasetDict({"test": source})
    assert open_images(splits, split="test").fingerprint == open_images(source).fingerprint
