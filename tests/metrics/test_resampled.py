"""Resampled metrics against the metrics themselves, called on copies of the samples."""

from itertools import product

import numpy as np
import pytest

from rightly.metrics import METRICS, Outcomes, Replicates
from rightly.metrics.bootstrap import replicate_metrics
from rightly.resampling import draw_resamples
from tests.metrics.synthetic import make_outcomes, measure


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_resamples_as_if_samples_were_copied(name):
    for n, decimals in product((1, 2, 40, 400), (None, 1, 2)):
        outcomes = make_outcomes(n, decimals=decimals)
        ones = np.ones((1, n), dtype=np.uint8)
        counts = np.concatenate([ones, *draw_resamples(n, 5, seed=n)])
        expected = [measure(name, outcomes, np.repeat(np.arange(n), row)) for row in counts]
        values = replicate_metrics(outcomes, [name], [counts])[name]
        np.testing.assert_allclose(values, expected, atol=1e-8)


@pytest.mark.parametrize("name", METRICS)
def test_saturated_confidence_resamples_too(name):
    rng = np.random.default_rng(0)
    confidence = rng.choice([0.0, 0.5, 1.0], 60)
    probabilities = np.stack([confidence, 1 - confidence], -1)
    labels = rng.integers(0, 2, 60)
    outcomes = Outcomes(confidence, labels == 0, probabilities, labels)
    (counts,) = draw_resamples(60, 20)
    expected = [measure(name, outcomes, np.repeat(np.arange(60), row)) for row in counts]
    np.testing.assert_allclose(
        replicate_metrics(outcomes, [name], [counts])[name], expected, atol=1e-8
    )


def test_fixed_point_sums_stay_exact_for_many_samples():
    outcomes = make_outcomes(200_000)
    ones = Replicates(outcomes, np.ones((1, 200_000), dtype=np.uint8))
    for name in ("ece", "ks", "ace"):
        expected = METRICS[name].measure(outcomes.confidence, outcomes.correct)
        assert METRICS[name].resampled(ones)[0] == pytest.approx(expected, abs=1e-10)
