"""Logits and features are found in whatever a classifier returns, or refused."""

import types

import pytest
import torch
from torch import nn

from rightly.classifiers import open_model
from tests.classifiers.example_models import NORMALISED, said


def test_a_module_gives_logits_after_normalisation(small, images):
    classifier = open_model(small, preprocessing=NORMALISED)
    logits, features = said(classifier, images)
    with torch.no_grad():
        by_hand = (images - torch.tensor([0.4, 0.5, 0.6])[:, None, None]) / torch.tensor(
            [0.2, 0.3, 0.4]
        )[:, None, None]
        assert torch.allclose(logits, small(by_hand), atol=1e-6)
    assert features is None and not logits.requires_grad
    assert classifier.class_count == 5 and classifier.name.endswith("Small")


@pytest.mark.parametrize(
    ("wrap", "output"),
    [
        (lambda logits: logits, None),
        (lambda logits: types.SimpleNamespace(logits=logits, loss=None), None),
        (lambda logits: {"logits": logits, "other": 0}, None),
        (lambda logits: {"scores": logits}, None),
        (lambda logits: {"scores": logits, "features": logits}, None),
        (lambda logits: (logits, "auxiliary"), None),
        (lambda logits: [logits], None),
        (lambda logits: logits.numpy(), None),
        (lambda logits: logits.double(), None),
        (lambda logits: ("auxiliary", logits), 1),
        (lambda logits: {"logits": 0, "main": logits}, "main"),
        (lambda logits: types.SimpleNamespace(logits=0, main=logits), "main"),
    ],
)
def test_logits_are_found_in_whatever_a_callable_returns(small, images, wrap, output):
    classifier = open_model(lambda x: wrap(small(x)), output=output)
    logits, _ = said(classifier, images)
    with torch.no_grad():
        assert torch.equal(logits, small(images)) and logits.dtype == torch.float32


def test_a_module_that_returns_an_object_is_understood(small, images):
    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = small

        def forward(self, x):
            return {"logits": self.inner(x)}

    logits, features = said(open_model(Wrapped()), images, features=True)
    with torch.no_grad():
        assert torch.equal(logits, small(images))
        assert torch.equal(features, small.penultimate(images))


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda x: x, ValueError, r"shape \(4, classes\) for 4 images, got .* \(4, 3, 12, 12\)"),
        (lambda x: x.mean((2, 3))[:2], ValueError, r"got torch.float32 of shape \(2, 3\)"),
        (lambda x: x.mean((2, 3)).argmax(1), ValueError, "got torch.int64"),
        (lambda x: x.mean((2, 3)).long(), ValueError, "float logits"),
        (lambda x: "cat", TypeError, "must return logits.*got str"),
        (lambda x: None, TypeError, "got NoneType"),
        (lambda x: {"a": x, "b": x}, ValueError, r"gives \['a', 'b'\]: choose .* output="),
    ],
)
def test_outputs_that_are_no_logits_are_refused(images, function, error, message):
    with pytest.raises(error, match=message):
        said(open_model(function), images)


def test_an_output_that_is_not_there_is_refused(small, images):
    for wanted in ("main", 3):
        with pytest.raises(ValueError, match="output must name a part"):
            said(open_model(small, output=wanted), images)


def test_the_number_of_classes_may_not_change_between_batches(images):
    classifier = open_model(lambda x: torch.zeros(len(x), len(x)))
    with classifier.prepare():
        classifier.forward(images)
        with pytest.raises(ValueError, match="earlier batches had 4, got 3"):
            classifier.forward(images[:3])


def test_forward_outside_prepare_is_refused(small, images):
    classifier = open_model(small)
    with pytest.raises(RuntimeError, match=r"with classifier.prepare\(\)"):
        classifier.forward(images)
    said(classifier, images)
    with pytest.raises(RuntimeError):
        classifier.forward(images)


def test_features_may_come_with_the_output(images):
    def function(x):
        return {"logits": x.mean((2, 3)), "features": x[:, 0]}

    _, features = said(open_model(function, features=True), images, features=True)
    assert torch.equal(features, images[:, 0].flatten(1))


def test_features_that_cannot_be_had_are_refused(images):
    class Excited(nn.Module):
        """Its only linear layer is not the head."""

        def __init__(self):
            super().__init__()
            self.gate, self.head = nn.Linear(3, 7), nn.Conv2d(3, 5, 1)

        def forward(self, x):
            self.gate(x.mean((2, 3)))
            return self.head(x).mean((2, 3))

    with pytest.raises(ValueError, match="last nn.Linear that ran gives 7 values"):
        said(open_model(Excited()), images, features=True)
    with pytest.raises(ValueError, match="no nn.Linear ran"):
        said(open_model(lambda x: x.mean((2, 3))), images, features=True)
    with pytest.raises(ValueError, match="4 rows like logits"):
        wrong = open_model(lambda x: {"logits": x.mean((2, 3)), "features": x[:2]})
        said(wrong, images, features=True)
