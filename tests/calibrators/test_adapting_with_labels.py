"""A few labels correct level and slope, and nothing else; decision and sets are dropped."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

import rightly
from rightly.calibrators.shift_fitting import (
    LEVEL_SD,
    SLOPE_SD,
    fit_intercept_and_slope,
)
from rightly.demo_data import load_demo_set


@pytest.fixture(scope="module")
def fitted():
    return rightly.fit(*load_demo_set("cal"), "temperature_scaling")


@pytest.fixture(scope="module")
def shifted():
    return load_demo_set("pixelate")


def draw(n, seed=0, level=-1.0, slope=0.7):
    rng = np.random.default_rng(seed)
    s = rng.normal(2, 2, n)
    return s, rng.random(n) < 1 / (1 + np.exp(-(level + slope * s)))


@pytest.mark.parametrize("n", [1, 40, 3000])
def test_it_is_the_mode_of_the_posterior(n):
    s, correct = draw(n)
    p = 1 / (1 + np.exp(-s))
    centre = np.average(s, weights=p * (1 - p))

    def loss(values):
        bias, slope = values
        t = bias + slope * s
        level = bias + (slope - 1) * centre
        prior = (level / LEVEL_SD) ** 2 + ((slope - 1) / SLOPE_SD) ** 2
        return np.logaddexp(0, np.where(correct, -t, t)).sum() + prior / 2

    found = fit_intercept_and_slope(s, correct)
    best = minimize(loss, (0, 1), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10})
    assert found == pytest.approx(best.x, abs=1e-4)
    assert loss(found) <= best.fun + 1e-8


def test_few_labels_change_little_and_many_decide():
    changes = [abs(fit_intercept_and_slope(*draw(n))[1] - 1) for n in (5, 100, 20_000)]
    assert changes[0] < 0.1 < changes[2]
    assert fit_intercept_and_slope(*draw(20_000)) == pytest.approx((-1, 0.7), abs=0.08)


def test_labels_against_the_ranking_do_not_turn_it_around(fitted, shifted):
    predictions, _ = shifted
    order = fitted.confidence(predictions).argsort()
    wrong = (predictions.classes + 1) % 10
    labels = wrong.clone()
    labels[order[:1500]] = predictions.classes[order[:1500]]  # right where confidence is low
    turned = fitted.adapt(predictions, labels)
    assert turned.record["adapted"]["slope"] == pytest.approx(0.1)
    assert (turned.confidence(predictions)[order].diff() >= 0).all()


@pytest.mark.parametrize("method", ["temperature_scaling", "vector_scaling", "spline"])
def test_class_and_ranking_stay_and_all_answers_agree(method, shifted):
    before = rightly.fit(*load_demo_set("cal"), method)
    predictions, labels = shifted
    after = before.adapt(predictions[:300], labels[:300])
    assert torch.equal(before.classes(predictions), after.classes(predictions))
    old, new = before.confidence(predictions), after.confidence(predictions)
    order = old.argsort()
    assert (new[order].diff() >= 0).all() and (old - new).abs().max() > 0.02
    probabilities = after.probabilities(predictions)
    assert torch.equal(probabilities.argmax(-1), after.classes(predictions))
    assert torch.allclose(probabilities.sum(-1).double(), torch.ones(len(labels)).double())
    if before.keeps_class:
        assert (probabilities.amax(-1) - new).abs().max() < 1e-6


def test_it_is_saved_and_says_on_how_many_labels(fitted, shifted, tmp_path):
    predictions, labels = shifted
    after = fitted.adapt(predictions[:200], labels[:200])
    after.save(tmp_path / "c.safetensors")
    loaded = rightly.load_calibrator(tmp_path / "c.safetensors")
    assert torch.equal(loaded.confidence(predictions), after.confidence(predictions))
    assert loaded.record["adapted"]["samples"] == 200 and "adapted with labels" in repr(loaded)
    with pytest.raises(ValueError, match="cannot be adapted: it was adapted with labels"):
        loaded.adapt(predictions)
    with pytest.raises(ValueError, match="same logits as calibration rows"):
        rightly.evaluate(loaded, {"new": (predictions[:200], labels[:200])})
    # Once more replaces the first correction.
    again = loaded.adapt(predictions, labels)
    directly = fitted.adapt(predictions, labels)
    assert torch.equal(again.confidence(predictions), directly.confidence(predictions))
    assert again.fit(*load_demo_set("cal")).correction is None


def test_the_decision_for_the_old_data_is_dropped(shifted):
    before = rightly.fit(*load_demo_set("cal"), "temperature_scaling", threshold=0.9)
    with pytest.warns(UserWarning, match="drops its decision, made for the data"):
        after = before.adapt(*shifted)
    assert after.threshold is None and after.decision is None and after.sets is None


def test_fifty_labels_help_under_shift_and_do_no_harm_without(fitted, shifted):
    rng = np.random.default_rng(0)
    gains = {}
    for name, (predictions, labels) in {"shift": shifted, "ind": load_demo_set("ind")}.items():
        correct = (predictions.classes == labels).numpy()
        gain = []
        for _ in range(20):
            rows = torch.from_numpy(rng.permutation(len(labels)))
            few, rest = rows[:50], rows[50:]
            after = fitted.adapt(predictions[few], labels[few])
            scores = [
                rightly.metrics.brier(one.confidence(predictions[rest]).numpy(), correct[rest])
                for one in (fitted, after)
            ]
            gain.append(scores[0] - scores[1])
        gains[name] = float(np.mean(gain))
    assert gains["shift"] > 0.003 and gains["ind"] > -0.001


def test_what_it_cannot_be_adapted_to_is_refused(fitted, shifted):
    predictions, labels = shifted
    with pytest.raises(ValueError, match=r"labels must have shape \(2500,\)"):
        fitted.adapt(predictions, labels[:-1])
    with pytest.raises(ValueError, match="every row is shifted"):
        marked = rightly.Predictions(predictions.logits, shift=np.ones(2500, int))
        fitted.adapt(marked, labels)
