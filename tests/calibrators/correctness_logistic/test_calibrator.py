"""Rightly's own calibrator: what it learns, and from which rows."""

import warnings

import numpy as np
import pytest
import torch

import rightly
from rightly import Predictions
from rightly.transforms.shifts import STANDARD_SHIFTS
from tests.calibrators.correctness_logistic.data import augmented, draw_noisy
from tests.conftest import make


def overconfidence(fitted, predictions, labels):
    right = predictions.correct(labels).double().mean()
    return float(fitted.confidence(predictions).mean() - right)


def test_augmentation_lowers_overconfidence_under_a_shift_it_has_not_seen():
    plain = rightly.calibrator("rightly").fit(*draw_noisy())
    fitted = rightly.calibrator("rightly").fit(*augmented())
    shifted = draw_noisy(strength=0.9, seed=99)
    assert overconfidence(plain, *shifted) > 0.02
    assert overconfidence(fitted, *shifted) < 0.95 * overconfidence(plain, *shifted)


@pytest.mark.parametrize(
    ("data", "height", "allowance"),
    [(draw_noisy, 4.0, 0.005), (augmented, 4.0, 0.016), (augmented, 6.0, 0.016)],
)
def test_shift_costs_in_distribution_no_more_than_the_allowance(data, height, allowance):
    predictions, labels = data(height=height)
    rows = predictions.unshifted()
    fitted = rightly.calibrator("rightly").fit(predictions, labels)
    error = float((~predictions.correct(labels)[rows]).double().mean())
    allowance *= min(1.0, error / 0.1)  # the classifier hardly errs: nor may much be lost
    lost = -overconfidence(fitted, predictions[rows], labels[rows])
    assert lost == pytest.approx(allowance, abs=2e-4)  # as near as bisection comes
    without = rightly.calibrator("rightly", expected_shift=0.0).fit(predictions, labels)
    assert abs(overconfidence(without, predictions[rows], labels[rows])) < 1e-3


@pytest.mark.parametrize("data", [draw_noisy, augmented])
def test_more_expected_shift_never_raises_confidence_under_shift(data):
    predictions, labels = data()
    shifted, _ = draw_noisy(strength=0.9, seed=99)
    means = [
        float(
            rightly.calibrator("rightly", expected_shift=c)
            .fit(predictions, labels)
            .confidence(shifted)
            .mean()
        )
        for c in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]
    assert means == sorted(means, reverse=True)
    assert means[0] - means[-1] > 0.002


def test_without_views_and_augmentation_nothing_stands_for_shift():
    predictions, labels = make()
    bare = Predictions(predictions.logits)
    low, high = (
        rightly.calibrator("rightly", expected_shift=c).fit(bare, labels).confidence(bare)
        for c in (0.0, 1.0)
    )
    torch.testing.assert_close(low, high)


def test_where_no_shift_is_expected_augmentation_is_not_used():
    fitted = rightly.calibrator("rightly", expected_shift=0.0).fit(*augmented(STANDARD_SHIFTS[:4]))
    plain = rightly.calibrator("rightly", expected_shift=0.0).fit(*draw_noisy())
    shown, _ = draw_noisy(seed=5)
    torch.testing.assert_close(fitted.confidence(shown), plain.confidence(shown))


def test_the_scale_of_logits_does_not_matter():
    predictions, labels = make()
    scaled = Predictions(predictions.logits * 5, predictions.view_logits * 5)
    once = rightly.calibrator("rightly").fit(predictions, labels)
    again = rightly.calibrator("rightly").fit(scaled, labels)
    torch.testing.assert_close(
        once.confidence(predictions), again.confidence(scaled), atol=1e-4, rtol=0
    )


def test_views_that_agree_raise_confidence():
    predictions, labels = draw_noisy()
    fitted = rightly.calibrator("rightly").fit(predictions, labels)
    own = predictions.logits
    agreeing = Predictions(own, own[:, None].expand(-1, 3, -1))
    opposed = Predictions(own, -own[:, None].expand(-1, 3, -1))
    assert fitted.confidence(agreeing).mean() > fitted.confidence(opposed).mean() + 0.2


def without(missing, n=600):
    predictions, labels = draw_noisy(n)
    rows = ~torch.isin(labels, torch.tensor(missing))
    return predictions[rows], labels[rows]


@pytest.mark.parametrize("views", [True, False])
def test_classes_without_samples_have_no_offset_and_are_named(views):
    predictions, labels = without([2, 5])
    if not views:
        predictions = Predictions(predictions.logits)
    with pytest.warns(UserWarning, match="2 of 10 classes have no calibration sample: 2, 5;"):
        fitted = rightly.calibrator("rightly").fit(predictions, labels)
    assert torch.isin(predictions.classes, torch.tensor([2, 5])).any()
    assert fitted.offsets[[2, 5]].tolist() == [0.0, 0.0]
    assert (fitted.offsets != 0).sum() == (8 if views else 0)  # without views nothing is gained


def test_of_many_classes_without_samples_a_handful_is_named():
    predictions, labels = without(list(range(1, 8)))
    named = Predictions(predictions.logits, class_names=tuple("abcdefghij"))
    with pytest.warns(UserWarning, match="7 of 10 .*: 'b', 'c', 'd', 'e', 'f' and 2 more; "):
        rightly.calibrator("rightly").fit(named, labels)


def test_where_classes_have_no_samples_confidence_stays_near_that_of_temperature_scaling():
    test, labels = draw_noisy(3000, seed=7)
    scores = []
    for method in ("rightly", "temperature_scaling"):
        built = rightly.calibrator(method)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            built.fit(*without([1, 2, 4, 6, 9], 1200))
        squares = (built.confidence(test) - test.correct(labels).double()).square()
        scores.append(float(squares.mean()))
    assert scores[0] < 1.01 * scores[1]


@pytest.mark.filterwarnings("ignore:.*classes have no calibration sample")
def test_rows_of_many_more_classes_than_samples_are_fitted():
    predictions, labels = make(n=80, c=300)
    fitted = rightly.calibrator("rightly").fit(predictions, labels)
    assert torch.isfinite(fitted.confidence(make(n=80, c=300, seed=3)[0])).all()


@pytest.mark.parametrize(("kinds", "used"), [(3, False), (4, True)])
def test_it_takes_several_kinds_of_shift_to_use_random_features(kinds, used):
    fitted = rightly.calibrator("rightly").fit(*augmented(STANDARD_SHIFTS[:kinds]))
    assert bool(fitted.feature_biases.shape[0]) == used
    assert 0 < float(fitted.stored()["shift_weight"]) <= 1


@pytest.mark.parametrize("kinds", [0, 4])
def test_fitted_without_views_it_ignores_them(kinds):
    joined, labels = augmented(STANDARD_SHIFTS[:kinds])
    fitted = rightly.calibrator("rightly").fit(joined.without_views(), labels)
    shown, _ = draw_noisy(seed=5)
    assert bool(fitted.feature_biases.shape[0]) == bool(kinds)
    bare = fitted.confidence(Predictions(shown.logits))
    assert torch.equal(fitted.confidence(shown), bare)


def test_severities_of_one_kind_are_one_kind():
    names = tuple(f"gaussian_noise:{severity}" for severity in range(1, 6))
    fitted = rightly.calibrator("rightly").fit(*augmented(names))
    assert not fitted.feature_biases.shape[0]


def test_random_features_are_saved_and_forgotten_at_the_next_fit(tmp_path):
    data = augmented(STANDARD_SHIFTS[:4])
    fitted = rightly.calibrator("rightly").fit(*data)
    fitted.save(tmp_path / "c.safetensors")
    loaded = rightly.load_calibrator(tmp_path / "c.safetensors")
    shown, _ = draw_noisy(seed=5)
    assert torch.equal(loaded.confidence(shown), fitted.confidence(shown))
    once = rightly.calibrator("rightly").fit(*draw_noisy()).confidence(shown)
    assert torch.equal(fitted.fit(*draw_noisy()).confidence(shown), once)


def test_hundreds_of_classes_are_not_given_a_column_each():
    names = STANDARD_SHIFTS[:4]
    parts, truth = [], []
    for s in range(5):
        predictions, labels = make(n=120, c=100, seed=s)
        marks = {"shift": np.full(120, s), "shift_names": names}
        parts.append(Predictions(predictions.logits, predictions.view_logits, **marks))
        truth.append(labels)
    fitted = rightly.calibrator("rightly").fit(rightly.concatenate(parts), torch.cat(truth))
    used = len(fitted.used_views)
    assert fitted.feature_weights.shape[0] == (4 + used if used else 1)  # evidence alone
    assert torch.isfinite(fitted.confidence(parts[0])).all()


@pytest.fixture
def telling():
    """Features that tell the true class, which logits hardly do."""
    predictions, labels = draw_noisy(600)
    g = torch.Generator().manual_seed(2)
    clear = torch.nn.functional.one_hot(labels, 10) + 0.1 * torch.randn(600, 10, generator=g)
    return Predictions(predictions.logits, predictions.view_logits, clear), labels


@pytest.mark.parametrize("views", [True, False])
def test_lying_among_samples_of_its_class_raises_confidence(telling, views):
    predictions, labels = telling
    if not views:
        predictions = Predictions(predictions.logits, features=predictions.features)
    fitted = rightly.calibrator("rightly", neighbours=300).fit(predictions, labels)
    assert fitted.neighbour_features.shape == (300, 10)
    correct = predictions.correct(labels)
    without = rightly.calibrator("rightly").fit(predictions, labels)
    ranked, unranked = (
        rightly.metrics.auroc(one.confidence(predictions), correct) for one in (fitted, without)
    )
    assert 1 - ranked < 0.7 * (1 - unranked)


def test_neighbours_are_saved(telling, tmp_path):
    fitted = rightly.calibrator("rightly", neighbours=50).fit(*telling)
    fitted.save(tmp_path / "c.safetensors")
    loaded = rightly.load_calibrator(tmp_path / "c.safetensors")
    assert torch.equal(loaded.confidence(telling[0]), fitted.confidence(telling[0]))


def test_features_are_asked_for(telling):
    asked = rightly.calibrator("rightly", neighbours=50)
    with pytest.raises(ValueError, match="needs predictions with features"):
        asked.fit(*draw_noisy())
    asked.fit(*telling)
    with pytest.raises(ValueError, match="needs predictions with features"):
        asked.confidence(draw_noisy()[0])


def test_a_number_below_nought_is_refused():
    with pytest.raises(ValueError, match="neighbours must be 0"):
        rightly.calibrator("rightly", neighbours=-1)
