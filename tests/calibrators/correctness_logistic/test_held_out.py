"""Views that are of no use, and fits that a few samples do not bear out."""

import pytest
import torch

import rightly
from rightly import Predictions
from rightly.calibrators.correctness_logistic.held_out import shrink
from rightly.calibrators.solvers.ridge_logistic import Solution
from tests.calibrators.correctness_logistic.data import draw_noisy


def shuffle_views(predictions, seed=0):
    order = torch.randperm(len(predictions), generator=torch.Generator().manual_seed(seed))
    return predictions.view_logits[order]


def draw_noise(predictions, seed=0):
    g = torch.Generator().manual_seed(seed)
    return 4 * torch.randn(predictions.view_logits.shape, generator=g)


def brier(fitted, predictions, labels):
    correct = predictions.correct(labels).double()
    return float((fitted.confidence(predictions) - correct).square().mean())


@pytest.mark.parametrize("make_views", [shuffle_views, draw_noise])
@pytest.mark.parametrize("n", [60, 500, 2000])
def test_views_of_other_images_or_of_noise_cost_nothing(make_views, n):
    (cal, labels), (test, truth) = draw_noisy(n), draw_noisy(4000, seed=1)
    cal, test = (Predictions(p.logits, make_views(p)) for p in (cal, test))
    own, scaled = (
        rightly.calibrator(name).fit(cal, labels) for name in ("rightly", "temperature_scaling")
    )
    assert brier(own, test, truth) < 1.01 * brier(scaled, test, truth)
    assert not len(own.used_views)


def test_a_useless_view_gets_no_weight_beside_useful_ones(tmp_path):
    cal, labels = draw_noisy(800)
    useless = torch.cat([shuffle_views(cal)[:, :1], cal.view_logits], 1)
    fitted = rightly.calibrator("rightly").fit(Predictions(cal.logits, useless), labels)
    assert fitted.used_views.tolist() == [1, 2, 3]
    without = rightly.calibrator("rightly").fit(cal, labels)
    test, _ = draw_noisy(100, seed=1)
    shown = Predictions(test.logits, torch.cat([test.view_logits[:, :1] * -9, test.view_logits], 1))
    assert torch.equal(fitted.confidence(shown), without.confidence(test))
    fitted.save(tmp_path / "c.safetensors")
    loaded = rightly.load_calibrator(tmp_path / "c.safetensors")
    assert torch.equal(loaded.confidence(shown), fitted.confidence(shown))


@pytest.mark.filterwarnings("ignore:.*classes have no calibration sample")
def test_a_few_samples_leave_it_at_temperature_scaling():
    cal, labels = draw_noisy(20)
    own, scaled = (
        rightly.calibrator(name).fit(cal, labels) for name in ("rightly", "temperature_scaling")
    )
    test, _ = draw_noisy(300, seed=1)
    torch.testing.assert_close(own.confidence(test), scaled.confidence(test), atol=1e-5, rtol=0)


def test_views_that_are_of_use_keep_their_whole_weight():
    (cal, labels), (test, truth) = draw_noisy(1500), draw_noisy(4000, seed=1)
    own, scaled = (
        rightly.calibrator(name).fit(cal, labels) for name in ("rightly", "temperature_scaling")
    )
    assert len(own.used_views) == 3
    assert brier(own, test, truth) < 0.95 * brier(scaled, test, truth)


def test_a_share_of_the_way_is_that_share_of_the_log_odds():
    design = torch.randn(9, 3).double()
    solution = Solution(
        torch.tensor(0.5).double(), torch.randn(3).double(), torch.randn(4).double()
    )
    classes = torch.arange(9) % 4
    found = shrink(solution, 0.25).logits(design, classes)
    expected = 0.25 * solution.logits(design, classes) + 0.75 * design[:, 0]
    torch.testing.assert_close(found, expected)
