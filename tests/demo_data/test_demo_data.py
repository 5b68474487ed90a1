"""The packaged predictions."""

from importlib.resources import files

import pytest

import rightly
from rightly.collection.plan import DEFAULT_VIEWS
from rightly.demo_data import AUGMENTED, CALIBRATION, TESTS, load_demo_set
from rightly.transforms.shifts import STANDARD_SHIFTS, kind


@pytest.mark.parametrize("name", [CALIBRATION, *TESTS])
def test_every_set_has_the_default_views_and_labels_that_are_mostly_right(name):
    predictions, labels = load_demo_set(name)
    assert predictions.class_count == 10 and predictions.view_names == DEFAULT_VIEWS
    assert predictions.shift is None and predictions.correct(labels).double().mean() > 0.5


def test_calibration_images_are_augmented_by_the_standard_shifts_and_tested_under_others():
    predictions, labels = load_demo_set(AUGMENTED)
    plain, truth = load_demo_set(CALIBRATION)
    rows = predictions.unshifted()
    assert predictions[rows].logits.equal(plain.logits) and labels[rows].equal(truth)
    assert predictions.shift_names == STANDARD_SHIFTS
    assert labels.equal(truth[predictions.images()])
    assert not {kind(name) for name in STANDARD_SHIFTS} & set(TESTS)
    assert int((~rows).sum()) == 8000


def test_the_files_stay_small():
    stored = [file for file in files("rightly.demo_data").iterdir() if file.name.endswith(".npz")]
    assert sum(len(file.read_bytes()) for file in stored) < 4_000_000


def test_our_own_calibrator_is_the_better_one_under_shifts_that_it_has_not_seen():
    base = rightly.calibrator("temperature_scaling").fit(*load_demo_set(CALIBRATION))
    own = rightly.calibrator("rightly").fit(*load_demo_set(AUGMENTED))
    for name in TESTS:
        test, labels = load_demo_set(name)
        correct = test.correct(labels)
        errors = [rightly.metrics.brier(one.confidence(test), correct) for one in (base, own)]
        assert errors[1] < 0.96 * errors[0]


def test_other_names_are_refused():
    with pytest.raises(ValueError, match="name must be one of cal, cal_augmented, ind, .*imagenet"):
        load_demo_set("imagenet")
