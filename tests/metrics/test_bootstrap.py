"""Resampled metrics against the metrics themselves; intervals and tests against what they claim."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import binomtest

from rightly import metrics
from rightly.metrics import METRICS
from rightly.metrics import kernel_smoothing as smoothing
from rightly.metrics.bootstrap import (
    draw,
    holm,
    interval,
    noise_floor,
    paired_p,
    range_of,
    replicates,
)
from rightly.metrics.resampled import WEIGHTED, Outcomes, Replicates


def said(n=300, c=6, decimals=None, seed=0):
    """Over-confident probabilities; rounded confidences have ties."""
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.full(c, 0.4), n)
    labels = (rng.random((n, 1)) > probabilities.cumsum(-1)).sum(-1)
    confidence = probabilities.max(-1)
    if decimals is not None:
        confidence = confidence.round(decimals)
    return Outcomes(confidence, probabilities.argmax(-1) == labels, probabilities, labels)


def measured(name, scored, rows):
    takes = (scored.confidence, scored.correct)
    if METRICS[name].takes == "probabilities":
        takes = (scored.probabilities, scored.labels)
    return METRICS[name].measure(takes[0][rows], takes[1][rows])


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_resamples_as_if_samples_were_copied(name):
    for n, decimals in product((1, 2, 40, 400), (None, 1, 2)):
        scored = said(n, decimals=decimals)
        ones = np.ones((1, n), dtype=np.uint8)
        counts = np.concatenate([ones, *draw(n, 5, seed=n)])
        expected = [measured(name, scored, np.repeat(np.arange(n), row)) for row in counts]
        found = replicates(scored, [name], [counts])[name]
        np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("name", METRICS)
def test_saturated_confidence_resamples_too(name):
    rng = np.random.default_rng(0)
    confidence = rng.choice([0.0, 0.5, 1.0], 60)
    probabilities = np.stack([confidence, 1 - confidence], -1)
    labels = rng.integers(0, 2, 60)
    scored = Outcomes(confidence, labels == 0, probabilities, labels)
    (counts,) = draw(60, 20)
    expected = [measured(name, scored, np.repeat(np.arange(60), row)) for row in counts]
    np.testing.assert_allclose(replicates(scored, [name], [counts])[name], expected, atol=1e-8)


def test_a_metric_without_a_weighted_form_is_resampled_one_by_one(monkeypatch):
    scored, resamples = said(100), draw(100, 30)
    expected = replicates(scored, ["ece"], resamples)["ece"]
    monkeypatch.setattr("rightly.metrics.bootstrap.WEIGHTED", {})
    np.testing.assert_allclose(replicates(scored, ["ece"], resamples)["ece"], expected, atol=1e-12)


def test_fixed_point_sums_stay_exact_for_many_samples():
    scored = said(200_000)
    ones = Replicates(scored, np.ones((1, 200_000), dtype=np.uint8))
    for name in ("ece", "ks", "ace"):
        expected = METRICS[name].measure(scored.confidence, scored.correct)
        assert WEIGHTED[name](ones)[0] == pytest.approx(expected, abs=1e-10)


def test_resamples_are_seeded_and_keep_their_size():
    one, same, other = (np.concatenate(draw(50, 7, seed)) for seed in (0, 0, 1))
    assert (one.sum(-1) == 50).all() and one.shape == (7, 50)
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    strata = np.arange(50) % 3
    within = np.concatenate(draw(50, 7, strata=strata))
    for stratum in range(3):
        assert (within[:, strata == stratum].sum(-1) == (strata == stratum).sum()).all()


def test_resamples_are_uniform():
    (counts,) = draw(20, 5000, seed=3)
    np.testing.assert_allclose(counts.mean(0), 1, atol=0.06)
    np.testing.assert_allclose(counts.var(0), 0.95, atol=0.08)  # (1 - 1/n) of a multinomial


def test_intervals_cover_what_they_should():
    rng = np.random.default_rng(0)
    held = {"brier": 0, "ece": 0}
    runs, n = 150, 400

    def drawn():
        confidence = 1 - 0.7 * rng.beta(1, 3, n)
        return Outcomes(confidence, rng.random(n) < 0.92 * confidence)

    expected = {
        name: np.mean([measured(name, drawn(), slice(None)) for _ in range(2000)]) for name in held
    }
    for seed in range(runs):
        scored = drawn()
        for name, values in replicates(scored, list(held), draw(n, 200, seed)).items():
            low, high = interval(measured(name, scored, slice(None)), values)
            held[name] += low <= expected[name] <= high
    for count in held.values():
        assert binomtest(count, runs, 0.95).pvalue > 0.001


def test_an_interval_holds_its_value_and_stays_in_range():
    scored = said(200)
    for name, values in replicates(scored, list(METRICS), draw(200, 200)).items():
        value = measured(name, scored, slice(None))
        least, largest = range_of(name)
        low, high = interval(value, values, range_of(name))
        assert least <= low <= value <= high <= largest
    assert interval(0.01, np.array([0.0, 0.1, 0.2]), (0.0, 1.0)).low == 0
    assert math.isnan(interval(math.nan, values).low)
    assert math.isnan(interval(0.5, np.full(9, np.nan)).high)


def test_the_paired_test_is_uniform_where_nothing_differs():
    rng = np.random.default_rng(1)
    p = []
    for seed in range(200):
        right = rng.random(300) < 0.7
        pair = [Outcomes(np.clip(0.7 + 0.1 * rng.normal(size=300), 0, 1), right) for _ in "ab"]
        one, other = (replicates(x, ["brier"], draw(300, 200, seed))["brier"] for x in pair)
        difference = np.subtract(*(metrics.brier(x.confidence, x.correct) for x in pair))
        p.append(paired_p(float(difference), one - other))
    assert binomtest(sum(x <= 0.05 for x in p), 200, 0.05).pvalue > 0.001
    assert 0.4 < np.mean(p) < 0.6


def test_pairing_finds_a_difference_that_intervals_hide():
    scored = said(5000)
    worse = Outcomes(np.clip(scored.confidence + 0.05, 0, 1), scored.correct)
    resamples = draw(5000, 500)
    one, other = (replicates(x, ["brier"], resamples)["brier"] for x in (scored, worse))
    gap = metrics.brier(worse.confidence, worse.correct)
    gap -= metrics.brier(scored.confidence, scored.correct)
    assert gap < 1.5 * np.std(one)  # well inside the other interval
    assert paired_p(gap, other - one) < 0.05 < paired_p(0.0, other - one) == 1


def test_holm_is_the_worked_example():
    p = {"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005, "none": math.nan}
    corrected = holm(p)
    assert math.isnan(corrected.pop("none"))
    assert corrected == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06, "d": 0.02})
    assert holm({"a": 0.9, "b": 0.8}) == {"a": 1.0, "b": 1.0}


def test_the_noise_floor_is_the_ece_of_labels_that_follow_confidence():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.3, 1, 500)
    plain = [metrics.ece(confidence, rng.random(500) < confidence) for _ in range(600)]
    floor = noise_floor(confidence, draws=600)
    assert floor.mean == pytest.approx(np.mean(plain), rel=0.03)
    assert floor.high == pytest.approx(np.quantile(plain, 0.95), rel=0.06)
    assert noise_floor(np.ones(10)).high == 0


def test_smoothing_keeps_mass_and_matches_a_filter_that_mirrors():
    from scipy.ndimage import gaussian_filter1d

    rng = np.random.default_rng(0)
    mass = rng.random((3, smoothing.CELLS))
    widths = np.array([0.01, 0.05, 0.3])
    found = smoothing.smooth(mass, widths)
    np.testing.assert_allclose(found.sum(-1), mass.sum(-1))
    for row, width, expected in zip(mass, widths, found, strict=True):
        filtered = gaussian_filter1d(row, width * smoothing.CELLS, mode="reflect", truncate=8)
        np.testing.assert_allclose(filtered, expected, atol=1e-10)


def test_few_or_no_samples_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        draw(0)
    with pytest.raises(ValueError, match="need probabilities"):
        replicates(Outcomes(np.array([0.5]), np.array([True])), ["nll"], draw(1, 2))
