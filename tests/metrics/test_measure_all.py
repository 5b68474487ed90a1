"""One sort shared by several metrics, against the metrics themselves and against counting."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rightly.metrics import METRICS, measure_all

TOGETHER = ["ece", "brier", "ace", "mce", "ks", "auroc", "ece_l2", "augrc"]
SPECIAL = [0.0, -0.0, 5e-324, 1e-45, 0.04, 0.28, 1 / 3, 0.5, 0.6, 1 - 2**-24, 1 - 2**-53, 1.0]


@pytest.fixture(params=[np.float32, np.float64])
def dtype(request):
    return request.param


def draw(n, decimals, dtype, seed=0):
    rng = np.random.default_rng(seed)
    confidence = 1 - 0.75 * rng.beta(1, 3, n)
    confidence = confidence if decimals is None else confidence.round(decimals)
    return confidence.astype(dtype), rng.random(n) < 0.95 * confidence


def measure_plainly(confidence, correct):
    """By definitions that share nothing with the sorted keys: of each level, and of each bin."""
    c, n = confidence.astype(np.float64), len(confidence)
    levels, level = np.unique(c, return_inverse=True)
    excess = np.bincount(level, c - correct)
    right, wrong = (np.bincount(level, side, len(levels)) for side in (correct, ~correct))
    won = (wrong * (right[::-1].cumsum()[::-1] - right / 2)).sum()
    pairs = right.sum() * wrong.sum()
    edges = np.quantile(c, np.arange(26) / 25)[1:-1]
    by_width = np.digitize(c, np.arange(1, 25) / 25, right=True)
    by_count = np.digitize(c, edges)
    gaps = np.abs(np.bincount(by_width, c - correct, 25))
    count = np.bincount(by_width, minlength=25)
    return {
        "ece": gaps.sum() / n,
        "brier": ((c - correct) ** 2).mean(),
        "ace": np.abs(np.bincount(by_count, c - correct)).sum() / n,
        "mce": (gaps[count > 0] / count[count > 0]).max(),
        "ks": np.abs(excess.cumsum()).max() / n,
        "auroc": won / pairs if pairs else math.nan,
        "ece_l2": math.sqrt((gaps**2 / np.maximum(count, 1)).sum() / n),
        "augrc": (pairs - won + wrong.sum() ** 2 / 2) / n**2,
    }


@pytest.mark.parametrize("n", [1, 2, 1000, 70_000])
def test_together_metrics_are_what_they_are_alone_and_by_definition(n, dtype):
    for decimals in (None, 4, 1, 0):
        confidence, correct = draw(n, decimals, dtype, seed=n)
        together = measure_all(confidence, correct, TOGETHER)
        plain = measure_plainly(confidence, correct)
        assert list(together) == TOGETHER == list(plain)
        for name in TOGETHER:
            case = name, decimals
            alone = METRICS[name].measure(confidence, correct)
            assert together[name] == pytest.approx(alone, abs=1e-12, nan_ok=True), case
            assert together[name] == pytest.approx(plain[name], abs=1e-12, nan_ok=True), case


@given(
    st.lists(st.tuples(st.sampled_from(SPECIAL), st.booleans()), min_size=1, max_size=200),
    st.sampled_from([np.float32, np.float64]),
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_ties_zeros_ones_and_edges_of_bins_count_as_they_do_alone(pairs, dtype):
    confidence = np.array([c for c, _ in pairs]).astype(dtype)
    correct = np.array([a for _, a in pairs])
    together = measure_all(confidence, correct, TOGETHER)
    for name, value in measure_plainly(np.abs(confidence), correct).items():
        assert together[name] == pytest.approx(value, abs=1e-12, nan_ok=True)


def test_pairs_are_counted_exactly(dtype):
    # One level of 50,000 samples between others.
    rng = np.random.default_rng(0)
    confidence = np.concatenate([np.full(50_000, 0.5), rng.random(5000)]).astype(dtype)
    correct = rng.random(len(confidence)) < 0.5
    levels, level = np.unique(confidence, return_inverse=True)
    right, wrong = (np.bincount(level[side], minlength=len(levels)) for side in (correct, ~correct))
    won = int((2 * wrong * (right.sum() - right.cumsum()) + wrong * right).sum())
    expected = float(Fraction(won, 2 * int(right.sum()) * int(wrong.sum())))
    assert measure_all(confidence, correct, ["auroc", "ks"])["auroc"] == expected


def test_all_metrics_of_confidence_are_measured_by_default_in_the_order_of_the_registry():
    confidence, correct = draw(300, None, np.float64)
    expected = {
        name: metric.measure(confidence, correct)
        for name, metric in METRICS.items()
        if metric.inputs == "confidence"
    }
    values = measure_all(confidence.tolist(), correct.tolist())
    assert list(values) == list(expected) and values == pytest.approx(expected, abs=1e-12)
    for name in expected:
        assert measure_all(confidence, correct, [name]) == {name: values[name]}
    assert measure_all(confidence, correct, []) == {}


def test_metrics_of_probabilities_and_bad_pairs_are_refused():
    with pytest.raises(ValueError, match="got nll of"):
        measure_all([0.5], [True], ["ece", "nll"])
    with pytest.raises(TypeError, match="swapped"):
        measure_all([True], [0.5])
    with pytest.raises(ValueError, match=r"confidence must lie in \[0, 1\], got values from 0.5"):
        measure_all([0.5, 1.5], [True, False])
    with pytest.raises(ValueError, match="must be finite, got 1 of 2"):
        measure_all(np.array([0.5, np.nan], dtype=np.float32), [True, False])
    slightly_above = measure_all([1 + 5e-10, 0.5], [True, False], ["brier", "ece"])
    assert slightly_above == {"brier": 0.125, "ece": 0.25}


def test_inputs_are_left_untouched(dtype):
    confidence, correct = draw(500, None, dtype)
    before = confidence.copy(), correct.copy()
    measure_all(confidence, correct)
    assert (confidence == before[0]).all() and (correct == before[1]).all()
