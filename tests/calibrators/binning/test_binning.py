"""Bins, isotonic regressions and Venn-Abers predictors, against other code."""

import math

import numpy as np
import pytest
import torch
from sklearn.isotonic import IsotonicRegression

import rightly
from rightly import Predictions
from rightly.calibrators.binning.step_confidence import equal_mass_edges
from tests.calibrators.samples import draw_labels, draw_logits


def make_overconfident(n, seed=7, c=5):
    logits = draw_logits(n, c, seed=seed)
    return Predictions(2 * logits), draw_labels(logits, seed)


def bend(confidence):
    """Right half the time below 0.9, and always above."""
    return torch.where(confidence > 0.9, 1.0, 0.5)


def lower(confidence):
    """Less often right than any temperature makes of it: lower by a constant in log-odds."""
    return (torch.logit(confidence) - 2).sigmoid()


def make_curved(curve, n, seed):
    """Four classes, of which the first is predicted, and right as often as the curve says."""
    g = torch.Generator().manual_seed(seed)
    confidence = 0.4 + 0.599 * torch.rand(n, generator=g).double()
    right = torch.rand(n, generator=g) < curve(confidence)
    logits = torch.stack([confidence, *3 * [(1 - confidence) / 3]], 1).log()
    return Predictions(logits), torch.where(right, 0, 1)


def squared_error(fitted, predictions, labels):
    correct = fitted.classes(predictions) == labels
    return float((fitted.confidence(predictions) - correct.double()).square().mean())


@pytest.mark.parametrize(
    ("name", "curve"),
    [
        ("histogram_binning", bend),
        ("scaling_binning", lower),
        ("bbq", bend),
        ("venn_abers", bend),
        ("venn_abers_one_vs_rest", bend),
        ("isotonic_one_vs_rest", bend),
    ],
)
def test_it_beats_temperature_scaling_on_curves_that_no_temperature_has(name, curve):
    data, new = make_curved(curve, 1500, 0), make_curved(curve, 4000, 1)
    losses = [squared_error(rightly.calibrator(one).fit(*data), *new) for one in (name, "ts")]
    assert losses[0] < losses[1] - 0.01


def test_bins_of_equal_width_are_those_of_netcal():
    """Frozen from netcal 1.4.0, all 400 to the bit."""
    predictions, labels = make_overconfident(400)
    fitted = rightly.calibrator("histogram_binning", bins=10, equal="width")
    confidence = fitted.fit(predictions, labels).confidence(predictions)
    expected = [0.651515152, 0.811428571, 0.452830189, 0.811428571, 0.452830189, 0.811428571]
    np.testing.assert_allclose(confidence[:6], expected, atol=1e-9)


def test_bins_of_equal_mass_hold_the_same_number_and_never_part_ties():
    values = np.sort(np.random.default_rng(0).random(300))
    assert np.bincount(np.searchsorted(equal_mass_edges(values, 6), values)).tolist() == 6 * [50]
    tied = np.repeat([0.2, 0.5, 0.9], [10, 200, 90])
    edges = equal_mass_edges(tied, 15)
    assert np.bincount(np.searchsorted(edges, tied)).tolist() == [10, 200, 90]
    assert not len(equal_mass_edges(np.full(7, 0.5), 3)) and not len(equal_mass_edges(values, 1))


def test_an_empty_bin_keeps_the_middle_of_its_range():
    logits = torch.tensor([[0.88, 0.12], [0.95, 0.05]]).log().repeat(3, 1)
    fitted = rightly.calibrator("hb", bins=10, equal="width")
    fitted.fit(Predictions(logits), torch.tensor([0, 0, 1, 0, 0, 0]))
    new = Predictions(torch.tensor([[0.62, 0.38], [0.93, 0.07]]).log())
    np.testing.assert_allclose(fitted.confidence(new), [0.65, 1.0], atol=1e-9)


@pytest.mark.parametrize("arguments", [{"bins": 0}, {"bins": -3}, {"equal": "size"}])
def test_bad_bins_are_refused(arguments):
    with pytest.raises(ValueError, match=f"{next(iter(arguments))} must (be|lie)"):
        rightly.calibrator("histogram_binning", **arguments)


def test_scaling_binning_is_its_authors_but_for_platts_targets():
    """Frozen from uncertainty-calibration 0.1.4, whose targets are 0 and 1."""
    predictions, labels = make_overconfident(400)
    fitted = rightly.calibrator("scaling_binning", bins=10).fit(predictions, labels)
    expected = [0.668677031, 0.724602275, 0.554714489, 0.782037913, 0.500965874, 0.782037913]
    confidence = fitted.confidence(predictions)
    np.testing.assert_allclose(confidence[:6], expected, atol=5e-3)
    assert len(confidence.unique()) == 10


def test_bbq_is_the_average_of_the_paper():
    """Gamma functions and midpoints as printed, one sample at a time."""
    predictions, labels = make_overconfident(60)
    fitted = rightly.calibrator("bbq").fit(predictions, labels)
    order = predictions.confidence.argsort()
    scores = predictions.confidence[order].tolist()
    right = (predictions.classes == labels)[order].tolist()
    models = []
    for bins in range(1, math.ceil(10 * 60 ** (1 / 3)) + 1):
        edges = [0.0, *equal_mass_edges(np.array(scores), bins).tolist(), 1.0]
        log_score, means = 0.0, []
        for low, high in zip(edges, edges[1:], strict=False):
            inside = [r for s, r in zip(scores, right, strict=True) if low < s <= high]
            n, m, share = len(inside), sum(inside), 2 / (len(edges) - 1)
            a, b = share * (low + high) / 2, share * (1 - (low + high) / 2)
            log_score += math.lgamma(share) - math.lgamma(n + share)
            log_score += math.lgamma(m + a) - math.lgamma(a)
            log_score += math.lgamma(n - m + b) - math.lgamma(b)
            means.append((low, high, (m + a) / (n + share)))
        models.append((log_score, means))
    best = max(score for score, _ in models)
    for i in (0, 17, 59):
        weights = [math.exp(score - best) for score, _ in models]
        answers = [
            next(mean for low, high, mean in means if low < scores[i] <= high)
            for _, means in models
        ]
        expected = np.average(answers, weights=weights)
        assert float(fitted.confidence(predictions[order[i : i + 1]])) == pytest.approx(expected)


@pytest.mark.parametrize("ties", [1, 4])
def test_venn_abers_is_two_isotonic_regressions_with_the_sample_in(ties):
    logits = draw_logits(60 // ties, 3, seed=3).repeat(ties, 1)
    labels = draw_labels(logits / 2)
    predictions, new = Predictions(logits), Predictions(draw_logits(30, 3, scale=3, seed=4))
    fitted = rightly.calibrator("venn_abers").fit(predictions, labels)
    scores, correct = predictions.confidence.numpy(), predictions.correct(labels).numpy()
    for one in (predictions, new):
        answers = fitted.confidence(one).tolist()
        for score, answer in zip(one.confidence.tolist(), answers, strict=True):
            p0, p1 = (
                IsotonicRegression()
                .fit(np.append(scores, score), np.append(correct, added))
                .predict([score])[0]
                for added in (0.0, 1.0)
            )
            assert answer == pytest.approx(p1 / (1 - p0 + p1), abs=1e-7)


def test_isotonic_one_vs_rest_is_scikit_learns():
    predictions, labels = make_overconfident(300)
    new, _ = make_overconfident(200, seed=8)
    p, q = (one.logits.double().softmax(-1).numpy() for one in (predictions, new))
    columns = [
        IsotonicRegression(out_of_bounds="clip").fit(p[:, j], labels.numpy() == j).predict(q[:, j])
        for j in range(5)
    ]
    mapped = np.stack(columns, 1)
    rows = rightly.calibrator("isotonic_one_vs_rest").fit(predictions, labels).probabilities(new)
    known = mapped.sum(1) > 1e-9
    expected = mapped[known] / mapped[known].sum(1, keepdims=True)
    assert known.mean() > 0.9
    np.testing.assert_allclose(rows[known], expected, atol=1e-6)
