"""TransCal: the temperature of a target domain, by weighing calibration samples."""

import pytest
import torch

import rightly
from rightly import Predictions
from rightly.calibrators.scaling.transcal import estimate_accuracy, estimate_density_ratio
from tests.calibrators.samples import draw_labels, draw_logits


def make_domain(n, share, seed):
    """Hard samples have another feature, and are much too sure: in this share of the domain."""
    g = torch.Generator().manual_seed(seed)
    hard = torch.rand(n, generator=g) < share
    true = draw_logits(n, 5, 2.0, seed + 20)
    features = torch.randn(n, 4, generator=g)
    features[:, 0] += 5.0 * hard
    labels = draw_labels(torch.where(hard[:, None], 0.2, 2.0) * true, seed)
    return Predictions(true, features=features), labels


def test_it_beats_temperature_scaling_on_a_domain_of_other_shares():
    fitted = rightly.calibrator("transcal").fit(*make_domain(1500, 0.2, 0))
    target, labels = make_domain(1500, 0.8, 1)
    adapted = fitted.adapt(target)
    right = target.correct(labels).double()
    gaps = [
        float((one.confidence(target).mean() - right.mean()).abs()) for one in (fitted, adapted)
    ]
    assert gaps[1] < gaps[0] / 2 and gaps[1] < 0.08
    assert "temperature of a batch" in repr(adapted) and not fitted.fit_note
    tempered = rightly.calibrator("ts").fit(*make_domain(1500, 0.2, 0))
    torch.testing.assert_close(fitted.confidence(target), tempered.confidence(target))


def test_an_adapted_one_is_saved_and_loaded(tmp_path):
    fitted = rightly.calibrator("transcal").fit(*make_domain(300, 0.2, 0))
    target, _ = make_domain(300, 0.8, 1)
    adapted = fitted.adapt(target)
    adapted.save(tmp_path / "a.safetensors")
    loaded = rightly.load_calibrator(tmp_path / "a.safetensors")
    assert torch.equal(loaded.confidence(target), adapted.confidence(target))
    assert loaded.record["adapted"]["samples"] == 300
    with pytest.raises(ValueError, match="transcal needs predictions with features"):
        fitted.adapt(Predictions(target.logits))


def test_the_density_ratio_of_two_normal_distributions_is_found():
    g = torch.Generator().manual_seed(0)
    source = torch.randn(4000, 1, generator=g).double()
    target = 1 + torch.randn(4000, 1, generator=g).double()
    weight = estimate_density_ratio(source, target)
    expected = (source[:, 0] - 0.5).exp()
    torch.testing.assert_close(weight.log(), expected.log(), atol=0.2, rtol=0.1)


def test_equal_weights_give_the_plain_accuracy():
    right = (torch.arange(100) % 4 > 0).double()
    assert estimate_accuracy(right, torch.ones(100).double()) == pytest.approx(0.75)
