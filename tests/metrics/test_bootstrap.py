"""Intervals and paired tests against what they claim."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

import rightly.registry
from rightly import metrics
from rightly.metrics import METRICS, Metric, Outcomes
from rightly.metrics.bootstrap import (
    FEW,
    holm,
    min_resamples,
    noise_floor,
    paired_p,
    replicate_metrics,
)
from rightly.resampling import draw_resamples, interval
from tests.metrics.synthetic import make_outcomes, measure


@pytest.fixture
def register():
    """Registers metrics for one test."""
    names = []

    def add(metric):
        rightly.registry.register(metric)
        names.append(metric.name)

    yield add
    for name in names:
        METRICS.remove(name)


def test_a_registered_metric_is_resampled_one_by_one_on_the_first_resamples(register):
    register(Metric("plain_ece", lambda *pair: metrics.ece(*pair)))
    register(
        Metric("plain_nll", lambda *pair: metrics.nll(*pair), inputs="probabilities", unit="nats")
    )
    outcomes = make_outcomes(1000)
    resamples = draw_resamples(1000, 2 * FEW)
    values = replicate_metrics(outcomes, ["plain_ece", "ece", "plain_nll", "nll"], resamples)
    for name in ("ece", "nll"):
        assert len(values[name]) == 2 * FEW
        np.testing.assert_allclose(values[f"plain_{name}"], values[name][:FEW], atol=1e-12)
    longer = replicate_metrics(outcomes, ["plain_ece"], resamples, few=FEW + 50)
    assert len(longer["plain_ece"]) == FEW + 50


def test_few_resamples_are_taken_across_blocks(register):
    register(Metric("plain_brier", lambda *pair: metrics.brier(*pair)))
    outcomes, resamples = make_outcomes(60), draw_resamples(60, 30)
    blocks = [resamples[0][:8], resamples[0][8:16], resamples[0][16:]]
    for few in (5, 8, 20):
        values = replicate_metrics(outcomes, ["plain_brier", "brier"], blocks, few)
        np.testing.assert_allclose(values["plain_brier"], values["brier"][:few], atol=1e-12)


def test_only_a_metric_with_a_range_is_clipped(register):
    # Between -20 and 20: in [0, 1], as every range was once taken to be, lies no value of it.
    register(Metric("far", lambda confidence, correct: 20 * (correct.mean() - 1)))
    outcomes = make_outcomes(200)
    far = METRICS["far"]
    values = replicate_metrics(outcomes, ["far"], draw_resamples(200, 100))["far"]
    value = measure("far", outcomes)
    low, high = interval(value, values, far.range)
    assert low < value < high < 0
    assert interval(value, values, far.range) == interval(value, values)


def test_a_metric_that_does_not_exist_is_refused_with_the_closest():
    with pytest.raises(ValueError, match="metric '.*' is not known: did you mean brier"):
        replicate_metrics(make_outcomes(5), ["brierr"], draw_resamples(5, 2))


def test_resamples_are_seeded_and_keep_their_size():
    one, same, other = (np.concatenate(draw_resamples(50, 7, seed)) for seed in (0, 0, 1))
    assert (one.sum(-1) == 50).all() and one.shape == (7, 50)
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    strata = np.arange(50) % 3
    within = np.concatenate(draw_resamples(50, 7, strata=strata))
    for stratum in range(3):
        assert (within[:, strata == stratum].sum(-1) == (strata == stratum).sum()).all()


def test_resamples_are_uniform():
    (counts,) = draw_resamples(20, 5000, seed=3)
    np.testing.assert_allclose(counts.mean(0), 1, atol=0.06)
    np.testing.assert_allclose(counts.var(0), 0.95, atol=0.08)  # (1 - 1/n) of a multinomial


def test_intervals_cover_the_expected_value_and_another_test_sets_less_often():
    rng = np.random.default_rng(0)
    covered, covered_another = {"brier": 0, "ece": 0}, {"brier": 0, "ece": 0}
    runs, n = 150, 400

    def draw():
        confidence = 1 - 0.7 * rng.beta(1, 3, n)
        return Outcomes(confidence, rng.random(n) < 0.92 * confidence)

    expected = {name: np.mean([measure(name, draw()) for _ in range(2000)]) for name in covered}
    for seed in range(runs):
        outcomes, another = draw(), draw()
        resamples = draw_resamples(n, 200, seed)
        for name, values in replicate_metrics(outcomes, list(covered), resamples).items():
            low, high = interval(measure(name, outcomes), values)
            covered[name] += low <= expected[name] <= high
            covered_another[name] += low <= measure(name, another) <= high
    for name in covered:
        assert binomtest(covered[name], runs, 0.95).pvalue > 0.001
        assert covered_another[name] < 0.9 * runs  # both values vary


def test_only_the_debiased_error_of_calibrated_samples_has_intervals_that_reach_zero():
    reached = {"ece": 0, "ece_debiased": 0}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        confidence = 1 - 0.75 * rng.beta(1, 3, 1000)
        outcomes = Outcomes(confidence, rng.random(1000) < confidence)
        resamples = draw_resamples(1000, 200, seed)
        for name, values in replicate_metrics(outcomes, list(reached), resamples).items():
            ends = interval(measure(name, outcomes), values, METRICS[name].range)
            reached[name] += ends.low == 0
    assert reached["ece"] == 0 and reached["ece_debiased"] >= 36


def test_an_interval_holds_its_value_and_stays_in_range():
    outcomes, resamples = make_outcomes(200), draw_resamples(200, 200)
    for name, values in replicate_metrics(outcomes, list(METRICS), resamples).items():
        value = measure(name, outcomes)
        least, largest = METRICS[name].range
        low, high = interval(value, values, METRICS[name].range)
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
        one, other = (
            replicate_metrics(x, ["brier"], draw_resamples(300, 200, seed))["brier"] for x in pair
        )
        difference = np.subtract(*(metrics.brier(x.confidence, x.correct) for x in pair))
        p.append(paired_p(float(difference), one - other))
    assert binomtest(sum(x <= 0.05 for x in p), 200, 0.05).pvalue > 0.001
    assert 0.4 < np.mean(p) < 0.6


def test_pairing_finds_a_difference_that_intervals_hide():
    outcomes = make_outcomes(5000)
    worse = Outcomes(np.clip(outcomes.confidence + 0.05, 0, 1), outcomes.correct)
    resamples = draw_resamples(5000, 500)
    one, other = (replicate_metrics(x, ["brier"], resamples)["brier"] for x in (outcomes, worse))
    gap = metrics.brier(worse.confidence, worse.correct)
    gap -= metrics.brier(outcomes.confidence, outcomes.correct)
    assert gap < 1.5 * np.std(one)  # well inside the other interval
    assert paired_p(gap, other - one) < 0.05 < paired_p(0.0, other - one) == 1
    assert math.isnan(paired_p(math.nan, other - one))
    assert math.isnan(paired_p(gap, one * math.nan))


def test_fewer_resamples_than_the_minimum_can_never_be_significant():
    for tests in (1, 4, 19):
        needed = min_resamples(tests, 0.05)
        smallest = [paired_p(1.0, np.zeros(n)) for n in (needed - 2, needed)]
        passes = [holm({str(k): p for k in range(tests)})["0"] <= 0.05 for p in smallest]
        assert passes == [False, True]


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


def test_few_or_no_samples_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        draw_resamples(0)
    with pytest.raises(ValueError, match="need probabilities"):
        replicate_metrics(
            Outcomes(np.array([0.5]), np.array([True])), ["nll"], draw_resamples(1, 2)
        )
