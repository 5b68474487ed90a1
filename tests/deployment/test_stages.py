"""The parts of a calibrated classifier, each by itself."""

import pytest
import torch
from torch import nn

from rightly.calibrators.cascade import EMPTY_BAND
from rightly.classifiers import Preprocessing
from rightly.deployment.stages import ClassifierStage, DeferralStage, ViewStage
from tests.deployment.tiny_models import PREPROCESSING, Small, fitted, predictions


def test_the_batch_holds_images_first_then_view_by_view():
    images = torch.rand(2, 3, 16, 16)
    stage = ViewStage([lambda x: x.flip(3), lambda x: 1 - x], PREPROCESSING)
    batch = stage(images)
    parts = [images, images.flip(3), 1 - images]
    assert torch.equal(batch, torch.cat([PREPROCESSING.normalise(part) for part in parts]))


def test_views_of_some_rows_come_without_the_images_themselves():
    images = torch.rand(4, 3, 16, 16)
    stage = ViewStage([lambda x: x.flip(3)], Preprocessing(), with_original=False)
    assert torch.equal(stage(images, torch.tensor([2, 0])), images[[2, 0]].flip(3))


def test_a_batch_is_laid_out_as_the_classifier_wants_it():
    images = torch.rand(2, 3, 16, 16)
    stage = ViewStage([], Preprocessing(), channels_last=True, dtype=torch.float16)
    assert torch.equal(stage(images), images.permute(0, 2, 3, 1).half())


def test_a_classifier_gets_batches_of_the_type_of_its_weights():
    double = ClassifierStage(Small().double().eval(), None, False)
    assert double(torch.rand(2, 3, 16, 16))[0].dtype == torch.float32
    means = ClassifierStage(nn.AdaptiveAvgPool2d(1), None, False)  # without weights
    assert means(torch.rand(2, 3, 16, 16))[0].shape == (2, 3, 1, 1)


def test_features_are_the_input_of_the_last_linear_layer():
    module = Small().eval()
    images = torch.rand(2, 3, 16, 16)
    logits, features = ClassifierStage(module, None, True)(images)
    assert torch.allclose(module.head(features), logits, atol=1e-5)
    with pytest.raises(ValueError, match="use a method that needs no features"):
        ClassifierStage(nn.Flatten(), None, True)(images)


def test_an_empty_band_defers_nothing():
    cascade = fitted(budget=1.8)
    logits = predictions()[0].logits
    assert 0 < len(DeferralStage(cascade)(logits)) < len(logits)
    cascade.store(band=torch.tensor(EMPTY_BAND, dtype=torch.float64))
    assert len(DeferralStage(cascade)(logits)) == 0
