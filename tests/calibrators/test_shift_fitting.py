"""What weights of a shift are learned from pseudo-batches."""

import numpy as np
import pytest
from scipy.special import expit

from rightly.calibrators.drift_reference import ScoredRows
from rightly.calibrators.shift_fitting import PseudoBatch, _adapt, _fit_weights


def make_batch(shift: float, count: int, rng: np.random.Generator) -> PseudoBatch:
    """Scores that fell by a shift; accuracy falls with its square more than they say."""
    score = rng.normal(2.5 + shift, 1.5, count)
    is_right = rng.random(count) < expit(score + 0.15 * shift * abs(shift))
    zeros = np.zeros(count, int)
    return PseudoBatch("", ScoredRows(score, zeros, np.where(is_right, 0, 1), zeros, zeros + 1.0))


def test_mild_shifts_tell_what_stronger_ones_do():
    rng = np.random.default_rng(0)
    shifts = [0.0, -0.4, -0.8, -1.2, -1.6]
    weights = _fit_weights([make_batch(c, 20_000, rng) for c in shifts], shifts, 0.0)
    assert weights.curve > 0.05 and weights.slope == 0
    far = make_batch(-3.5, 20_000, rng).rows
    expected = expit(_adapt(far.score, -3.5, weights)).mean()
    assert expected == pytest.approx(far.correct.mean(), abs=0.04)
    assert abs(expit(far.score).mean() - far.correct.mean()) > 0.2  # as it is without a shift
