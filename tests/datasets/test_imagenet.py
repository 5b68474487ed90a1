"""ImageNet and its subsets are numbered as published classifiers have it."""

import importlib.util
import os
from pathlib import Path

import pytest
import torch

from rightly.datasets import LAYOUTS, open_images
from rightly.datasets import imagenet as imagenet_layouts
from rightly.datasets.imagenet import read_imagenet_names, read_wnids
from rightly.datasets.registry import recognise_layout
from tests.datasets.example_sets import make_imagenet_subset, make_imagenet_val, opened, put


def test_all_classes_of_imagenet_are_recognised(tmp_path):
    put(tmp_path / "picture.png")
    for kind, names in {"val": read_wnids(), "numbers": [f"{i:04d}" for i in range(1000)]}.items():
        for name in names:
            (tmp_path / kind / name).mkdir(parents=True)
            os.link(tmp_path / "picture.png", tmp_path / kind / name / "x.png")
        assert recognise_layout(tmp_path / kind) == "imagenet-val"
        images = open_images(tmp_path / kind)
        assert list(images.labels) == list(range(1000)) and images.kept_classes is None
    (tmp_path / "val" / read_wnids()[0] / "x.png").rename(
        tmp_path / "val" / read_wnids()[0] / "sketch_1.png"
    )
    assert recognise_layout(tmp_path / "val") == "imagenet-sketch"


def test_a_published_subset_is_recognised_by_its_classes(tmp_path, monkeypatch):
    root, _, _ = make_imagenet_subset(tmp_path)
    with pytest.raises(ValueError, match="cannot be recognised.*README") as error:
        open_images(root)
    assert all(name in str(error.value) for name in LAYOUTS)
    names = sorted(read_wnids()[i] for i in (6, 11, 988))
    digest = imagenet_layouts.hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
    monkeypatch.setitem(imagenet_layouts.DIGESTS, digest, "imagenet-a")
    assert recognise_layout(root) == "imagenet-a"


def test_digests_of_the_published_subsets_and_names_are_right():
    timm = importlib.util.find_spec("timm")  # found, not loaded: it may lack its torchvision
    if timm is None:
        pytest.skip("timm is not installed")
    info = Path(timm.origin).parent / "data" / "_info"
    assert (info / "imagenet_synsets.txt").read_text().split() == list(read_wnids())
    lines = (info / "imagenet_synset_to_lemma.txt").read_text().splitlines()
    lemmas = dict(line.split("\t", 1) for line in lines)
    for wnid, name in zip(read_wnids(), read_imagenet_names(), strict=True):
        assert lemmas[wnid].split(", ")[0] == name.partition(" (")[0]
    for letter in "ar":
        found = sorted((info / f"imagenet_{letter}_synsets.txt").read_text().split())
        digest = imagenet_layouts.hashlib.sha256("\n".join(found).encode()).hexdigest()[:16]
        assert imagenet_layouts.DIGESTS[digest] == f"imagenet-{letter}"


def test_every_class_has_a_name_of_its_own():
    names = read_imagenet_names()
    assert len({name.lower() for name in names}) == len(read_wnids()) == 1000


def test_logits_are_restricted_to_the_shared_classes(tmp_path):
    images, _ = opened(tmp_path, "imagenet-a")
    assert images.kept_classes == ((6,), (11,), (988,))
    assert images.class_names == ("stingray", "goldfinch", "acorn")
    assert "not the 200 published" in images.notes[0]
    views = torch.arange(2 * 3 * 1000.0).reshape(2, 3, 1000)
    assert torch.equal(images.restrict(views), views[..., [6, 11, 988]])


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
