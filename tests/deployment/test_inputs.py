"""Images, views and classifiers that a calibrated classifier takes."""

import numpy as np
import pytest
import torch
from PIL import Image

import rightly
from rightly import CalibratedClassifier
from tests.deployment.tiny_models import PREPROCESSING, Small, fitted, pictures, predictions


def test_images_of_any_kind_are_shown_as_the_classifier_wants_them():
    model = CalibratedClassifier(Small(), fitted())
    grey = Image.fromarray(pictures(1, size=40)[0]).convert("L")
    outputs = model.predict([grey, Image.fromarray(pictures(1, size=64)[0]).convert("RGBA")])
    assert len(outputs) == 2
    assert len(model.predict(grey)) == 1


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (torch.zeros(0, 3, 16, 16), "empty batch"),
        ([], "at least one image"),
        (torch.zeros(2, 1, 16, 16), r"must have shape \(n, 3, h, w\)"),
        (torch.full((1, 3, 16, 16), 7.0), r"must lie in \[0, 1\]"),
        (torch.zeros(1, 3, 20, 20), r"must have the size \(16, 16\)"),
        (np.zeros((2, 16, 16, 3), np.uint8), r"list\(array\)"),
        ([np.zeros((16, 16, 5), np.uint8)], "1, 3 or 4 channels"),
        (["photo.jpg"], "must be a Pillow image"),
    ],
)
def test_what_shows_no_images_is_refused(images, message):
    model = CalibratedClassifier(Small(), fitted("temperature_scaling"))
    with pytest.raises((ValueError, TypeError), match=message):
        model.predict(images)


def test_other_views_are_refused():
    with pytest.raises(ValueError, match="views must be those"):
        CalibratedClassifier(Small(), fitted(), views=("hflip", "zoom"))


def test_views_of_ones_own_come_with_their_functions():
    collected, labels = predictions()
    own = rightly.Predictions(
        collected.logits, collected.view_logits[:, :1], view_names=["upside_down"]
    )
    calibrator = rightly.fit(own, labels, "ca_views")
    with pytest.raises(ValueError, match="mapping from each name to a function"):
        CalibratedClassifier(Small(), calibrator, preprocessing=PREPROCESSING)
    views = {"upside_down": lambda images: images.flip(2)}
    model = CalibratedClassifier(Small(), calibrator, views, preprocessing=PREPROCESSING)
    assert model.predict(list(pictures(2))).view_classes.shape == (2, 1)
