"""Mixtures, order-preserving maps, density and perturbation: what temperature scaling cannot do."""

import numpy as np
import pytest
import torch
from torch.nn.functional import nll_loss

import rightly
from rightly import Predictions
from tests.calibrators.samples import draw_labels, draw_logits


def measure_nll(name, data, new, **arguments):
    fitted = rightly.calibrator(name, **arguments).fit(*data)
    return float(nll_loss(fitted.probabilities(new[0]).log(), new[1]))


def make_mixed(n, seed):
    """One label in four is drawn as if nearly nothing were known, the others as if nearly all."""
    logits = draw_logits(n, 5, 2.0, seed)
    unknown = torch.rand(n, generator=torch.Generator().manual_seed(seed + 9)) < 0.25
    scale = torch.where(unknown, 0.05, 4.0)[:, None]
    return Predictions(logits), draw_labels(logits * scale, seed)


def make_bent(n, seed):
    """Logits far below the largest are shown ten times too close to it."""
    true = draw_logits(n, 8, 2.5, seed)
    depth = true.amax(-1, keepdim=True) - true
    return Predictions(-depth.clamp(max=3.0) - 0.1 * (depth - 3).clamp_min(0)), draw_labels(true)


def make_far(n, seed):
    """Features of a third of the samples point elsewhere, and these are much too sure."""
    true = draw_logits(n, 5, 2.0, seed)
    is_far = torch.arange(n) % 3 == 0
    g = torch.Generator().manual_seed(seed + 1)
    features = torch.randn(n, 12, generator=g) * torch.where(is_far, 3.0, 0.3)[:, None]
    features[:, 0] += 3
    shown = torch.where(is_far[:, None], 4.0, 1.0) * true
    return Predictions(shown, features=features), draw_labels(true, seed)


@pytest.mark.parametrize(
    ("name", "make_data", "gain"),
    [
        ("logistic_mixture", make_mixed, 0.02),
        ("order_preserving", make_bent, 0.005),
        ("density_aware", make_far, 0.05),
    ],
)
def test_it_beats_temperature_scaling_on_data_made_to_need_it(name, make_data, gain):
    data, new = make_data(1500, 0), make_data(3000, 1)
    assert measure_nll(name, data, new) < measure_nll("ts", data, new) - gain


def make_perturbed(n, seed):
    """Images as they are, and under two shifts that move logits away from the truth."""
    clean = draw_logits(n, 5, 3.0, seed)
    labels = draw_labels(clean, seed)
    noise = [s * draw_logits(n, 5, 1.5, seed + 7 + s) for s in range(3)]
    logits = torch.cat([clean + each for each in noise])
    shift = torch.arange(3).repeat_interleave(n)
    return Predictions(logits, shift=shift, shift_names=["noise:1", "noise:2"]), labels.repeat(3)


def test_perturbed_temperature_beats_temperature_scaling_under_shift():
    data, (new, labels) = make_perturbed(500, 0), make_perturbed(1000, 1)
    shifted = new.shift > 0
    test = Predictions(new.logits[shifted]), labels[shifted]
    gained = measure_nll("ts", data, test) - measure_nll("perturbed_temperature", data, test)
    assert gained > 0.2
    # The temperature of all rows together, whatever they are called.
    alike = rightly.calibrator("ts").fit(Predictions(data[0].logits), data[1])
    drawn = rightly.calibrator("perturbed_temperature").fit(*data)
    torch.testing.assert_close(drawn.inverse, alike.inverse)
    plain = rightly.calibrator("perturbed_temperature").fit(*test)
    assert "plain temperature scaling" in repr(plain)
    assert torch.equal(plain.inverse, rightly.calibrator("ts").fit(*test).inverse)


def test_order_preserving_slopes_are_where_the_loss_has_no_slope():
    predictions, labels = make_bent(400, 3)
    fitted = rightly.calibrator("order_preserving").fit(predictions, labels)
    slopes = fitted.slopes.clone().requires_grad_()
    depth = (predictions.logits.amax(-1, keepdim=True) - predictions.logits) * fitted.inverse
    knots = [0, 0.5, 1, 2, 4, 8, 16, np.inf]
    scaled = sum(
        slope * (depth.clamp(low, high) - low)
        for slope, low, high in zip(slopes, knots, knots[1:], strict=False)
    )
    loss = nll_loss((-scaled).log_softmax(-1), labels) + (slopes - 1).square().sum() / 400
    (gradient,) = torch.autograd.grad(loss, slopes)
    free = fitted.slopes > 1e-3 + 1e-9
    assert float(gradient[free].abs().max()) < 1e-6 and (gradient[~free] > 0).all()


def test_density_aware_takes_layers_one_by_one():
    predictions, labels = make_far(300, 0)
    fitted = rightly.calibrator("dac", feature_layers=[8, 4]).fit(predictions, labels)
    assert fitted.weights.shape == (2,)
    one = rightly.calibrator("dac").fit(predictions, labels)
    assert one.weights.shape == (1,) and float(one.weights) > 0
    reference = torch.nn.functional.normalize(predictions.features.double(), dim=-1)
    distances = torch.cdist(reference[:5], reference).sort(-1).values[:, 9]
    expected = one.constant + one.weights * distances
    torch.testing.assert_close(one.temperature(predictions[:5]), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"feature_layers": [8, 8]}, r"feature_layers must sum to .* 12, got \[8, 8\]"),
        ({"feature_layers": [12, 0]}, "feature_layers must be the widths"),
        ({"feature_layers": []}, "feature_layers must be the widths"),
        ({"neighbours": 0}, "neighbours must be at least 1, got 0"),
    ],
)
def test_bad_layers_and_neighbours_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        rightly.calibrator("dac", **arguments).fit(*make_far(30, 0))
