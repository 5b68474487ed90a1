"""Specs, modules and functions become classifiers."""

import pytest

from rightly import classifiers
from rightly.classifiers import open_model


def test_unknown_specs_are_answered_with_the_known_ones():
    for spec in ("resnet50", "timm:", "C:\\model.onnx"):
        with pytest.raises(
            ValueError, match="timm:NAME, hf:NAME_OR_DIR, torchvision:NAME"
        ) as error:
            open_model(spec)
        assert repr(spec) in str(error.value)


def test_an_open_classifier_is_taken_as_it_is(small):
    classifier = open_model(small)
    assert open_model(classifier) is classifier
    with pytest.raises(ValueError, match="already open"):
        open_model(classifier, device="cpu")


@pytest.mark.parametrize(("spec", "kind"), [("timn:resnet50", "timm"), ("onx:a.onnx", "onnx")])
def test_a_misspelt_source_is_answered_with_the_one_meant(spec, kind):
    with pytest.raises(ValueError, match=f"model '{spec}' is not known: did you mean {kind}:"):
        open_model(spec)


def test_names_of_the_package_load_when_they_are_used():
    assert classifiers.open_model is open_model
    with pytest.raises(AttributeError, match="no attribute 'open_models'"):
        _ = classifiers.open_models
