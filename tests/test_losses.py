import math

import pytest
import torch
from scipy.optimize import minimize_scalar
from torch.nn import functional

from rightly import losses
from rightly.losses import LOSSES
from rightly.metrics import METRICS

P = torch.tensor([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]).double()
Y = torch.tensor([0, 1, 1, 2])


@pytest.mark.parametrize("name", [*LOSSES, "cross_entropy+correctness_aware", "mdca+dca"])
class TestEveryLoss:
    def test_it_is_a_finite_scalar_with_a_gradient(self, name, sample):
        logits = sample[0].logits.clone().requires_grad_()
        value = losses.loss(name)(logits, sample[1])
        value.backward()
        assert value.shape == () and torch.isfinite(value)
        assert torch.isfinite(logits.grad).all() and logits.grad.abs().sum() > 0

    def test_the_order_of_samples_is_irrelevant(self, name, sample):
        predictions, labels = sample
        order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(3))
        there = losses.loss(name)(predictions.logits.double(), labels)
        again = losses.loss(name)(predictions.logits[order].double(), labels[order])
        torch.testing.assert_close(there, again)

    @pytest.mark.parametrize("side", ["right", "wrong"])
    def test_one_sided_batches_give_numbers(self, name, side, sample):
        predictions, labels = sample
        rows = (predictions.classes == labels) == (side == "right")
        value = losses.loss(name)(predictions.logits[rows], labels[rows])
        assert torch.isfinite(value)


def test_the_published_example():
    logits = P.log()
    assert float(losses.cross_entropy(logits, Y)) == pytest.approx(0.61923, abs=1e-5)
    assert float(losses.dca(logits, Y)) == pytest.approx(0.61923 + 0.10, abs=1e-5)
    assert float(losses.mdca(logits, Y)) == pytest.approx(0.61923 + 0.15, abs=1e-5)
    assert float(losses.dca(logits, Y, weight=10.0)) == pytest.approx(0.61923 + 1.0, abs=1e-5)


def of_confidence(confidence, correct):
    """Binary logits with the given confidences, labelled so that they are right or wrong."""
    c = torch.tensor(confidence).double()
    flip = (c < 0.5)[:, None]
    assert not flip.any()
    logits = torch.stack([c.log(), (1 - c).log()], 1)
    return logits, torch.where(torch.tensor(correct), 0, 1)


def test_correctness_aware_values():
    confidence = [0.95, 0.9, 0.85, 0.8, 0.6, 0.55]
    correct = [True, True, False, True, False, True]
    logits, labels = of_confidence(confidence, correct)
    c, a = torch.tensor(confidence).double(), torch.tensor(correct).double()
    expected = (c - a).square().mean()
    assert float(losses.correctness_aware(logits, labels)) == pytest.approx(float(expected))
    l1 = losses.correctness_aware(logits, labels, norm="l1")
    assert float(l1) == pytest.approx(float((c - a).abs().mean()))
    balanced = 0.5 * ((1 - c[a == 1]).square().mean() + c[a == 0].square().mean())
    assert float(losses.balanced_correctness_aware(logits, labels)) == pytest.approx(
        float(balanced)
    )
    with pytest.raises(ValueError, match="norm must be"):
        losses.correctness_aware(logits, labels, norm="l3")


def test_balanced_loss_of_the_published_vector():
    class Given(losses.Scores):
        confidence = torch.tensor([0.95, 0.9, 0.85, 0.8, 0.6, 0.55, 0.4, 0.3]).double()
        correct = torch.tensor([1, 1, 0, 1, 1, 1, 0, 1]).bool()
        true_log_probability = squared_norm = class_gaps = confidence

    assert float(losses.correctness_aware.of(Given())) == pytest.approx(0.2234375)
    balanced = losses.balanced_correctness_aware.of(Given())
    assert float(balanced) == pytest.approx(0.2960417, abs=1e-7)


def test_correctness_aware_loss_is_the_brier_score(sample):
    predictions, labels = sample
    expected = METRICS["brier"].measure(predictions.confidence, predictions.correct(labels))
    value = losses.correctness_aware(predictions.logits.double(), labels)
    assert float(value) == pytest.approx(expected)


def test_squared_error_and_cross_entropy_agree_with_torch(sample):
    logits, labels = sample[0].logits.double(), sample[1]
    torch.testing.assert_close(
        losses.cross_entropy(logits, labels), functional.cross_entropy(logits, labels)
    )
    one_hot = functional.one_hot(labels, 10)
    direct = (logits.softmax(-1) - one_hot).square().sum(-1).mean()
    torch.testing.assert_close(losses.squared_error(logits, labels), direct)


def test_sums_add_up(sample):
    logits, labels = sample[0].logits, sample[1]
    both = losses.loss("dca+correctness_aware")
    expected = losses.dca(logits, labels) + losses.correctness_aware(logits, labels)
    torch.testing.assert_close(both(logits, labels), expected)
    assert both.name == "dca+correctness_aware"


def test_an_unknown_loss_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="correctness_aware.*got 'focal'"):
        losses.loss("focal")


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_the_loss_stays_within_the_papers_bounds(norm, sample):
    logits, labels = sample[0].logits.double(), sample[1]
    c, rho = 10, float((logits.argmax(-1) == labels).double().mean())
    power = 1 if norm == "l1" else 2
    low = (1 - rho) / c**power
    high = rho * (1 - 1 / c) ** power + 1 - rho
    for temperature in (1e-3, 0.1, 1, 10, 1e4):
        value = float(losses.correctness_aware(logits / temperature, labels, norm=norm))
        assert low - 1e-9 <= value <= high + 1e-9
    # Each bound is reached where all confidences are as they should be, or the opposite.
    right = logits.argmax(-1) == labels
    ideal = torch.where(right[:, None], logits * 1e4, logits * 1e-9)
    assert float(losses.correctness_aware(ideal, labels, norm=norm)) == pytest.approx(low, abs=1e-6)
    worst = torch.where(right[:, None], logits * 1e-9, logits * 1e4)
    assert float(losses.correctness_aware(worst, labels, norm=norm)) == pytest.approx(
        high, rel=1e-4
    )


def best_temperature(loss, a):
    logits = torch.tensor([[a, 2.0, 0.1, 0.05]]).double()

    def value(log_t):
        return float(loss(logits / math.exp(log_t), torch.tensor([0])))

    return math.exp(minimize_scalar(value, bounds=(-3, 6), method="bounded").x)


class TestTheLossSurface:
    """The paper's Fig. 1 and loss-surface figure: logits [a, 2, .1, .05], the true class is 0."""

    def test_the_example_of_the_first_figure(self):
        p = torch.tensor([1.9, 2.0, 0.1, 0.05]).softmax(-1)
        assert float(p[0]) == pytest.approx(0.412, abs=5e-4)
        assert float(p[1]) == pytest.approx(0.455, abs=5e-4)

    @pytest.mark.parametrize(
        ("a", "ce", "mse"), [(1.9, 0.535, 0.994), (1.7, 0.808, 1.538), (1.5, 1.106, 2.145)]
    )
    def test_where_cross_entropy_and_squared_error_settle(self, a, ce, mse):
        assert best_temperature(losses.cross_entropy, a) == pytest.approx(ce, abs=1e-3)
        assert best_temperature(losses.squared_error, a) == pytest.approx(mse, abs=1e-3)

    def test_a_narrowly_wrong_prediction_is_made_surer_by_cross_entropy(self):
        t = best_temperature(losses.cross_entropy, 1.9)
        logits = torch.tensor([1.9, 2.0, 0.1, 0.05])
        assert float((logits / t).softmax(-1).max()) == pytest.approx(0.531, abs=1e-3)

    def test_an_absolutely_wrong_prediction_is_flattened_by_all(self):
        for loss in (losses.cross_entropy, losses.squared_error, losses.correctness_aware):
            assert best_temperature(loss, 0.5) > 100

    @pytest.mark.parametrize("a", [1.9, 1.7, 1.5, 0.5])
    def test_correctness_awareness_always_lowers_a_wrong_confidence(self, a):
        logits = torch.tensor([[a, 2.0, 0.1, 0.05]]).double()
        values = [
            float(losses.correctness_aware(logits / t, torch.tensor([0])))
            for t in torch.logspace(-1, 2, 50).tolist()
        ]
        assert all(later < earlier for earlier, later in zip(values, values[1:], strict=False))

    def test_the_slope_of_confidence(self):
        inverse = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
        logits = torch.tensor([1.9, 2.0, 0.1, 0.05]).double()
        (logits * inverse).softmax(-1).max().backward()
        assert float(inverse.grad) == pytest.approx(0.13514, abs=1e-5)
