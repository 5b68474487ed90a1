"""Outputs of the classifier become rows, or are refused with the image."""

import itertools
from dataclasses import replace

import pytest
import torch
from PIL import Image

from rightly.classifiers import Preprocessing, open_model
from rightly.collection import Plan, collect
from rightly.collection.forward import compute_blocks
from rightly.datasets import open_images
from rightly.datasets.imagenet import read_imagenet_names, read_wnids
from tests.collection.tiny_model import (
    SMALL,
    Pairs,
    Tiny,
    by_hand,
    class_folders,
    close,
    flat,
    picture,
)


def test_logits_and_views_are_restricted_to_the_classes_of_the_set(tmp_path):
    root, kept, model = tmp_path / "imagenet-a", [6, 11, 988], Tiny(1000)
    for i, number in enumerate([988, 6, 11, 988]):
        place = root / read_wnids()[number]
        place.mkdir(parents=True, exist_ok=True)
        picture(i).save(place / f"{i}.png")
    opened = replace(open_images(root, layout="imagenet-a"), notes=())
    for out in (None, tmp_path / "preds"):
        found, labels = collect(
            model, opened, views=("hflip",), shifts=("contrast:1",), preprocessing=SMALL, out=out
        )
        files = [root / name for name in opened.names]
        logits, view_logits, _ = by_hand(model, files, ("hflip",), (("contrast", 1),))
        close(found.logits, logits[:, kept])
        close(found.view_logits, view_logits[:, :, kept])
        assert found.class_names == tuple(read_imagenet_names()[number] for number in kept)
        assert labels.tolist() == [0, 1, 2, 2] * 2


def test_features_of_a_dictionary_are_taken_as_given(tmp_path):
    def model(images):
        return {"logits": images.mean((2, 3)) * 9, "features": images[:, :, 0, :2].flatten(1)}

    found, _ = collect(
        model,
        flat(tmp_path / "images", 3),
        views=(),
        features=True,
        preprocessing=Preprocessing((8, 8)),
    )
    assert found.features.shape == (3, 6)


def test_taking_blocks_one_by_one_leaves_gradients_on(tmp_path):
    classifier = open_model(Tiny(), preprocessing=SMALL)
    images = open_images(flat(tmp_path / "images", 6))
    for _ in compute_blocks(classifier, images, Plan((), shard_size=2), range(3)):
        assert torch.is_grad_enabled()


def flip_flop():
    widths = itertools.cycle([3, 4])
    return lambda images: torch.rand(len(images), next(widths))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lambda images: images, r"must give float logits of shape \(5, classes\)"),
        (lambda images: images.mean((1, 2, 3)), r"must give float logits.*got .* shape \(5,\)"),
        (lambda images: images.mean((2, 3))[:2], r"must give float logits.*shape \(2, 3\)"),
        (lambda images: images.mean((2, 3)).long(), "must give float logits.*int64"),
        (flip_flop(), "same number of classes in every batch: earlier batches had 3, got 4"),
    ],
)
def test_a_model_that_gives_no_logits_is_refused(tmp_path, model, words):
    with pytest.raises(ValueError, match=words):
        collect(model, flat(tmp_path / "images", 5), preprocessing=SMALL)


def test_a_model_that_changes_its_classes_between_batches_is_refused(tmp_path):
    with pytest.raises(ValueError, match="earlier batches had 3, got 4"):
        collect(
            flip_flop(), flat(tmp_path / "images", 5), views=(), batch_size=3, preprocessing=SMALL
        )


@pytest.mark.parametrize("where", ["logits", "logits of views", "features"])
def test_values_that_are_no_numbers_are_refused_with_the_image(tmp_path, where):
    root, out = flat(tmp_path / "images", 7), tmp_path / "preds"
    Image.new("RGB", (16, 12), (255, 0, 0)).save(root / "0005.png")

    def model(images):
        red = (images[:, 0] > 0.99).flatten(1).all(1) & (images[:, 1] < 0.01).flatten(1).all(1)
        grey = (images[:, 0] == images[:, 1]).flatten(1).all(1)
        nothing = torch.where(red, torch.nan, 0.0)[:, None]
        logits, features = images.mean((2, 3)) * 9, images.mean((2, 3))
        if where == "logits":
            logits = logits + nothing
        elif where == "features":
            features = features + nothing
        else:
            dark = images.mean((1, 2, 3)) < 0.35  # the red picture in grey; noise is lighter
            logits = torch.where((grey & dark)[:, None], torch.inf, logits)
        return {"logits": logits, "features": features}

    with pytest.raises(
        ValueError,
        match=rf"NaN or infinite {where} for 1 images, the first is 0005\.png: .*float32",
    ):
        collect(
            model,
            root,
            views=("grayscale",),
            batch_size=4,
            features=True,
            preprocessing=Preprocessing((8, 8)),
            out=out,
        )
    assert not list(out.iterdir())


def test_labels_that_do_not_match_the_classes_are_refused(tmp_path):
    root = class_folders(tmp_path / "folders", 6)
    with pytest.raises(ValueError, match="the set has 3 classes but the classifier 4"):
        collect(Tiny(4), root, preprocessing=SMALL)
    root, table = flat(tmp_path / "flat", 2), tmp_path / "labels.csv"
    table.write_text("0000.png,1\n0001.png,3\n")
    with pytest.raises(ValueError, match=r"labels must lie in 0\.\.2 .*got 3"):
        collect(Tiny(), root, preprocessing=SMALL, labels=table)


@pytest.mark.parametrize("stored", [True, False])
def test_labels_found_too_large_while_reading_are_refused(tmp_path, stored):
    out = tmp_path / "preds" if stored else None
    with pytest.raises(ValueError, match=r"labels must lie in 0\.\.2 .*got 3 for 4: do they count"):
        collect(Tiny(), Pairs([1, 2, 1, 2, 3, 2]), preprocessing=SMALL, out=out)
