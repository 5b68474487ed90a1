"""Small copies of every layout, written to a folder."""

import csv
import json

import numpy as np
from PIL import Image

from rightly.datasets import open_images
from rightly.datasets.cifar import CLASSES
from rightly.datasets.imagenet import read_wnids


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
        put(root / read_wnids()[number] / f"ILSVRC2012_val_0000000{i}.JPEG", i)
    return root, {}, [0, 7, 999]


def make_imagenet_subset(root):
    for i, number in enumerate([6, 11, 988]):
        put(root / read_wnids()[number] / f"0.00{i}_balloon _ parachute_0.9.jpg", i)
    (root / "README.txt").write_text("ImageNet-A")
    return root, {}, [0, 1, 2]


def make_imagenet_sketch(root):
    for i, number in enumerate([3, 500]):
        put(root / read_wnids()[number] / f"sketch_{i}.JPEG", i)
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
