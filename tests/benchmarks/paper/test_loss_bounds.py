"""The bounds of the CA loss: they hold for every sample, are reached, and the paper's slips."""

import numpy as np
import pytest
import torch
from benchmarks.paper.analyses import loss_bounds
from benchmarks.paper.analyses.confidence_limits import loss_limits, scale_limits
from benchmarks.paper.analyses.loss_bounds import Samples
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import rightly
from rightly.losses import correctness_aware
from tests.conftest import make


def build(logits, labels):
    return Samples.of((rightly.Predictions(torch.tensor(logits)), torch.tensor(labels)))


@given(
    # Few distinct values, so that ties come up; the limits are tight exactly there.
    arrays(np.float64, (6, 5), elements=st.sampled_from([-30.0, -2.0, -1.0, 0.0, 0.1, 3.0])),
    st.lists(st.integers(0, 4), min_size=6, max_size=6),
    st.sampled_from(loss_bounds.TEMPERATURES),
)
def test_every_sample_is_inside(logits, labels, temperature):
    samples = build(logits, labels)
    for row in loss_bounds.describe_scaled(samples):
        assert row["outside"] == row["outside by confidence"] == 0, row
    after = samples.confidence(temperature)
    by_torch = torch.tensor(logits).div(temperature).softmax(-1).amax(-1)
    np.testing.assert_allclose(after, by_torch, rtol=1e-12)
    low, high = loss_limits(float(samples.right.mean()), 5)
    assert low - 1e-12 <= samples.loss(temperature).mean() <= high + 1e-12


@pytest.mark.parametrize("temperature", [0.25, 0.5, 2.0, 8.0])
@pytest.mark.parametrize("confidence", [0.12, 0.2, 0.37, 0.5, 0.9])
def test_limits_given_a_confidence_are_reached(temperature, confidence):
    rest, c = 1 - confidence, 10
    alike = np.full(c - 1, rest / (c - 1))
    few = np.zeros(c - 1)
    full = int(rest / confidence + 1e-9)
    few[:full] = confidence
    few[full : full + 1] = max(rest - full * confidence, 0)
    reached = []
    for others in (alike, few):
        p = np.append(others, confidence) ** (1 / temperature)
        reached.append(p[-1] / p.sum())
    limits = scale_limits(np.array([rest / confidence]), temperature, c)
    np.testing.assert_allclose(np.concatenate(limits), sorted(reached), rtol=1e-5)


def test_bounds_of_a_set_are_reached_and_are_those_of_the_loss():
    far = 1e3  # confidence 1 to the last digit
    logits = np.array([[far, 0, 0, 0], [1e-9, 0, 0, 0]])
    best, worst = build(logits, [0, 1]), build(logits, [1, 0])
    for power in (1, 2):
        low, high = loss_limits(0.5, 4, power)
        assert (best.loss(1.0) ** power).mean() == pytest.approx(low, abs=1e-8)
        assert (worst.loss(1.0) ** power).mean() == pytest.approx(high, abs=1e-8)
    # The paper's lower bound is none of the squared loss that it trains.
    assert (best.loss(1.0) ** 2).mean() < loss_limits(0.5, 4)[0] - 0.05
    predictions, labels = make(n=300, c=5)
    samples = Samples.of((predictions, labels))
    for norm, power in (("l1", 1), ("l2", 2)):
        library = float(correctness_aware(predictions.logits.double(), labels, norm=norm))
        assert (samples.loss(1.0) ** power).mean() == pytest.approx(library, rel=1e-9)


def test_the_split_holds_but_its_limit_is_not_the_papers():
    row = loss_bounds.describe_set(Samples.of(make(n=500, c=5)))
    assert row["accuracy"] > 0.5 and row["split sums to"] == pytest.approx(row["loss"])
    # Nine right samples at 1, one wrong at 1/4: the loss is at its lower bound.
    logits = np.array([[1e3, 0, 0, 0]] * 9 + [[1e-9, 0, 0, 0]])
    row = loss_bounds.describe_set(build(logits, [0] * 9 + [1]))
    assert row["loss"] == pytest.approx(row["loss: lower bound"], abs=1e-8)
    assert row["difference"] == pytest.approx(row["difference at the lower bound"], abs=1e-8)
    assert row["by the paper"] < -1  # no difference of two confidences
    # The same difference with the other right samples at 1/4: far above the lower bound.
    logits = np.array([[1e3, 0, 0, 0]] + [[1e-9, 0, 0, 0]] * 9)
    row = loss_bounds.describe_set(build(logits, [0] * 9 + [1]))
    assert row["difference"] == pytest.approx(-0.75, abs=1e-8) and row["loss"] > 0.6


def test_pulls_are_the_signs_of_the_slopes():
    predictions, labels = make(n=200, c=5)
    samples = Samples.of((predictions, labels))
    inverse = torch.ones(200, dtype=torch.float64, requires_grad=True)
    p = (predictions.logits.double() * inverse[:, None]).softmax(-1)
    truth = torch.nn.functional.one_hot(labels, 5).double()
    right = predictions.correct(labels)
    losses = {
        "CA": torch.where(right, 1 - p.amax(-1), p.amax(-1)),
        "CE": -(p * truth).sum(-1).log(),
        "MSE": (p - truth).square().sum(-1),
    }
    for name, pull in samples.pulls().items():
        (slope,) = torch.autograd.grad(losses[name].sum(), inverse, retain_graph=True)
        np.testing.assert_array_equal(pull, slope.numpy() < 0, err_msg=name)
        assert pull[samples.right].all()
    assert not samples.pulls()["CA"][~samples.right].any()
    assert samples.pulls()["CE"][~samples.right].any()
