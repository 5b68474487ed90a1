"""The packaged predictions."""

import pytest

from rightly.demo_data import CALIBRATION, TESTS, load_demo_set


@pytest.mark.parametrize("name", [CALIBRATION, *TESTS])
def test_every_set_has_views_and_labels_that_are_mostly_right(name):
    predictions, labels = load_demo_set(name)
    assert predictions.class_count == 10 and predictions.view_logits is not None
    assert predictions.correct(labels).double().mean() > 0.5


def test_other_names_are_refused():
    with pytest.raises(ValueError, match="name must be one of cal, ind, .*got 'imagenet'"):
        load_demo_set("imagenet")
