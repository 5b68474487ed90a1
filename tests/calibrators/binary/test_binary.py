"""Calibration of P(y = 1): against independent code, on a skewed task, and in graphs."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from sklearn.isotonic import IsotonicRegression

import rightly
from rightly import Predictions
from rightly.calibrators import CALIBRATORS
from rightly.cli import main
from rightly.evaluation.compare import resolve_methods
from tests.conftest import make

BINARY = [name for name, method in CALIBRATORS.items() if method.fits_classes == 2]


def skewed(n, seed=0):
    """One in ten is of class 1; the scores are twice too sure, and their level is off."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    labels = (rng.random(n) < 1 / (1 + np.exp(2.8 - 1.2 * x))).astype(int)
    return Predictions.from_binary(2 * x - 3), labels


@pytest.fixture(scope="module")
def cal():
    return skewed(800)


def log_odds(predictions):
    return (predictions.logits[:, 1] - predictions.logits[:, 0]).double().numpy()


def platt_targets(labels):
    right, wrong = labels.sum(), (1 - labels).sum()
    return np.where(labels == 1, (right + 1) / (right + 2), 1 / (wrong + 2))


def fit_by_scipy(columns, targets, bounds):
    def loss(w):
        t = columns @ w
        return (np.logaddexp(0, t) - targets * t).sum()

    start = np.zeros(columns.shape[1])
    return minimize(loss, start, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-15}).x


def test_platt_is_the_logistic_regression_on_platts_targets(cal):
    predictions, labels = cal
    s = log_odds(predictions)
    columns = np.stack([s, np.ones_like(s)], -1)
    w = fit_by_scipy(columns, platt_targets(labels), [(0, None), (None, None)])
    fitted = rightly.calibrator("platt").fit(predictions, labels)
    expected = 1 / (1 + np.exp(-columns @ w))
    np.testing.assert_allclose(fitted.probabilities(predictions)[:, 1], expected, atol=1e-5)


@pytest.mark.parametrize("bend", [1.0, -0.5])
def test_beta_is_the_logistic_regression_on_both_logarithms(bend):
    rng = np.random.default_rng(1)
    s = rng.normal(size=600) * 2
    p = 1 / (1 + np.exp(-s))
    columns = np.stack([np.log(p), -np.log(1 - p), np.ones_like(p)], -1)
    # With a falling column the paper's fit leaves that one out.
    labels = (rng.random(600) < 1 / (1 + np.exp(-columns @ [bend, 1.5, 0.3]))).astype(int)
    w = fit_by_scipy(columns, platt_targets(labels), [(0, None), (0, None), (None, None)])
    predictions = Predictions.from_binary(s)
    fitted = rightly.calibrator("beta").fit(predictions, labels)
    assert (w[0] < 1e-6) == (bend < 0) == (fitted.stored()["weights"][0] == 0)
    expected = 1 / (1 + np.exp(-columns @ w))
    np.testing.assert_allclose(fitted.probabilities(predictions)[:, 1], expected, atol=2e-4)


def test_isotonic_is_that_of_scikit_learn(cal):
    predictions, labels = cal
    fitted = rightly.calibrator("isotonic").fit(predictions, labels)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(log_odds(predictions), labels)
    test = skewed(500, seed=3)[0]
    expected = theirs.predict(log_odds(test))
    np.testing.assert_allclose(fitted.probabilities(test)[:, 1], expected, atol=1e-9)


def test_on_a_skewed_task_they_beat_temperature_scaling_by_the_brier_score_of_class_1(cal):
    test, labels = skewed(20_000, seed=1)

    def score(name):
        fitted = rightly.calibrator(name).fit(*cal)
        return float((fitted.probabilities(test)[:, 1] - torch.from_numpy(labels)).square().mean())

    base = min(score("uncalibrated"), score("temperature_scaling"))
    assert all(score(name) < base - 0.005 for name in BINARY)


def test_the_example_on_their_page_gives_the_figures_there(capsys):
    """Raw scores, then temperature scaling a little worse, and isotonic better than both."""
    page = (Path(__file__).parents[3] / "docs/methods/platt.md").read_text(encoding="utf8")
    code = re.search(r"^```python\n(.*?)^```", page, re.M | re.S)[1]
    exec(compile(code, "platt.md", "exec"), {})  # noqa: S102
    shown = capsys.readouterr().out
    brier = {name: float(value) for name, value in map(str.split, shown.splitlines())}
    expected = re.search(r"^```text\nuncalibrated .*?^```", page, re.M | re.S)[0]
    for name, value in brier.items():
        stated = float(re.search(rf"^{name} +([\d.]+)$", expected, re.M)[1])
        assert value == pytest.approx(stated, abs=2e-4), name
    assert brier["temperature_scaling"] > brier["uncalibrated"] + 5e-4
    assert max(brier["isotonic"], brier["beta"]) < brier["uncalibrated"] - 1e-3


@pytest.mark.parametrize("name", BINARY)
def test_the_class_may_change_and_the_confidence_is_its_own(name):
    predictions, labels = skewed(2000)
    high = Predictions.from_binary(log_odds(predictions) + 6)  # calls nearly all of class 1
    fitted = rightly.calibrator(name).fit(high, labels)
    classes = fitted.classes(high)
    assert not fitted.keeps_class and (classes != high.classes).double().mean() > 0.5
    correct = (classes == torch.from_numpy(labels)).double()
    assert float(fitted.confidence(high).mean()) == pytest.approx(float(correct.mean()), abs=0.02)
    assert (fitted.confidence(high) >= 0.5).all()


@pytest.mark.parametrize("name", BINARY)
def test_more_classes_are_refused_by_name_and_skipped_in_a_group(name, sample):
    with pytest.raises(ValueError, match=f"{name} needs predictions of 2 classes.* have 10"):
        rightly.calibrator(name).fit(*sample)
    resolved = resolve_methods(["binary", "ts"], sample, {"a": sample})
    assert resolved.skipped[name] == ("2 classes",)
    assert list(resolved.methods) == ["temperature_scaling"]


def test_two_classes_are_compared_with_them_by_default():
    resolved = resolve_methods(None, make(c=2), {"a": make(c=2, seed=1)})
    assert set(BINARY) <= set(resolved.methods) and not resolved.skipped


def test_the_list_of_methods_says_what_they_are_for(capsys):
    assert main(["fit", "--list"]) == 0
    assert capsys.readouterr().out.count("logits of 2 classes") == len(BINARY)


@pytest.mark.parametrize("name", BINARY)
def test_masked_classes_stay_impossible(name, cal):
    predictions, labels = cal
    logits = predictions.logits.clone()
    logits[::5, 1] = -torch.inf
    labels = np.where(np.arange(800) % 5 == 0, 0, labels)
    masked = Predictions(logits)
    fitted = rightly.calibrator(name).fit(masked, labels)
    assert (fitted.probabilities(masked)[::5, 1] == 0).all()
    assert (fitted.confidence(masked)[::5] == 1).all()
    assert torch.isfinite(fitted.confidence(masked)).all()


@pytest.mark.parametrize("name", BINARY)
def test_one_column_of_scores_is_fitted_and_applied_from_the_command_line(name, cal, tmp_path):
    np.save(tmp_path / "s.npy", log_odds(cal[0])[:, None].astype(np.float32))
    np.save(tmp_path / "y.npy", cal[1])
    scores, labels, out = (str(tmp_path / x) for x in ("s.npy", "y.npy", "c.safetensors"))
    assert main(["fit", scores, "--labels", labels, "--method", name, "--out", out]) == 0
    assert main(["predict", out, scores, "--out", str(tmp_path / "a.csv")]) == 0
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 801
