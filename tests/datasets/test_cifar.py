"""CIFAR-10 and sets like it."""

import numpy as np
import pytest

from rightly.datasets import open_images
from tests.datasets.example_sets import colour, make_cifar10, make_cifar10_c, make_cinic10, rows_of


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
    with pytest.raises(ValueError, match="cannot be recognised"):
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


def test_cinic10_needs_its_ten_classes(tmp_path):
    root, _, _ = make_cinic10(tmp_path)
    (root / "test" / "dog" / "cifar10-test-5.png").unlink()
    (root / "test" / "dog").rmdir()
    with pytest.raises(ValueError, match="must hold the folders"):
        open_images(root, layout="cinic10")
    with pytest.raises(ValueError, match="'train', 'valid' or 'test'"):
        open_images(root, layout="cinic10", split="val")
    assert len(open_images(root, layout="cinic10", split="valid")) == 10
