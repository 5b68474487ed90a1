"""softmax at a temperature, and temperatures for a confidence, against direct computation."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rightly.calibrators.solvers import confidence_inverse, execution
from rightly.calibrators.solvers.confidence_inverse import inverse_temperature_for
from rightly.calibrators.solvers.temperature import (
    compute_moments,
    keep_class,
    scaled_softmax,
    top_probability,
)
from rightly.predictions.masking import MASKED


def draw(n, c, scale, seed):
    return scale * torch.randn(n, c, generator=torch.Generator().manual_seed(seed)).double()


@pytest.mark.parametrize("c", [2, 3, 10, 300])
def test_a_temperature_is_found_for_every_confidence(c):
    logits = draw(500, c, 3, c)
    wanted = torch.linspace(1 / c + 1e-4, 1 - 1e-9, 500).double()
    inverse = inverse_temperature_for(logits, wanted)
    torch.testing.assert_close(top_probability(logits, inverse), wanted)


@pytest.mark.parametrize("is_fixed", [False, True])
@pytest.mark.parametrize("c", [2, 10, 1000])
def test_single_precision_is_enough_for_a_millionth(c, is_fixed, monkeypatch):
    monkeypatch.setattr(confidence_inverse, "is_unsynchronised", lambda _: is_fixed)
    logits = draw(600, c, 4, c).float()
    logits[:100] += 1000.0  # softmax does not see a constant
    wanted = torch.linspace(1 / c + 1e-4, 1 - 1e-7, 600).double()
    inverse = inverse_temperature_for(logits, wanted)
    found = top_probability(logits.double(), inverse)
    torch.testing.assert_close(found, wanted, atol=3e-7, rtol=0)
    rows = scaled_softmax(logits, inverse)
    torch.testing.assert_close(rows.amax(-1), wanted, atol=6e-7, rtol=0)


def test_confidences_next_to_one_are_told_apart_in_single_precision():
    logits = torch.zeros(50, 10)
    logits[:, 0] = torch.linspace(20, 40, 50)
    left = 1 - top_probability(logits, torch.ones(50).double())
    assert (left[:35].diff() < 0).all()


def test_a_confidence_below_uniform_gives_an_all_but_uniform_row():
    logits = torch.tensor([[2.0, 1.0, 0.0], [1e4, 0.0, -1e4]])
    inverse = inverse_temperature_for(logits, torch.tensor([0.1, 0.0]).double())
    rows = keep_class(scaled_softmax(logits, inverse), logits.argmax(-1))
    assert torch.isfinite(inverse).all() and (inverse > 0).all()
    torch.testing.assert_close(rows, torch.full_like(rows, 1 / 3), atol=1e-5, rtol=0)
    assert rows.argmax(-1).tolist() == [0, 0]


def test_ties_and_constant_rows_have_a_temperature():
    logits = torch.tensor([[1.0, 1.0, 0.0], [3.0, 3.0, 3.0]])
    inverse = inverse_temperature_for(logits, torch.tensor([0.9, 0.9]).double())
    assert torch.isfinite(inverse).all() and (inverse > 0).all()


def test_a_temperature_does_not_depend_on_the_other_rows(monkeypatch):
    """To the bit, though rows that are done are dropped and the rest moves up."""
    monkeypatch.setattr(execution, "CHUNK", 7 * 40)
    logits = draw(100, 40, 3, 0).float()
    logits[::9, 39] = MASKED
    wanted = torch.linspace(0.03, 1 - 1e-12, 100).double().clamp_min(1 / 39)
    together = inverse_temperature_for(logits, wanted)
    alone = [inverse_temperature_for(logits[i : i + 1], wanted[i : i + 1]) for i in range(100)]
    assert torch.equal(together, torch.cat(alone))


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 6), st.integers(0, 1000), st.sampled_from([0.01, 1.0, 100.0, 1e4]))
def test_the_found_temperature_gives_the_confidence_at_any_scale(c, seed, scale):
    logits = draw(20, c, scale, seed)
    wanted = torch.rand(20, generator=torch.Generator().manual_seed(seed)).double()
    wanted = 1 / c + (1 - 1 / c) * (0.01 + 0.98 * wanted)
    inverse = inverse_temperature_for(logits, wanted)
    torch.testing.assert_close(top_probability(logits, inverse), wanted, atol=1e-9, rtol=0)


def test_a_lost_class_is_put_back_on_top_even_in_single_precision():
    rows = torch.tensor([[0.5, 0.5, 0.0], [0.3, 0.3, 0.4], [0.2, 0.3, 0.5]]).double()
    kept = keep_class(rows.clone(), torch.tensor([1, 1, 2]))
    assert kept.argmax(-1).tolist() == [1, 1, 2]
    assert kept.float().argmax(-1).tolist() == [1, 1, 2]
    torch.testing.assert_close(kept.sum(-1), torch.ones(3).double())
    assert torch.equal(kept[2], rows[2])


def test_a_class_is_put_back_where_rows_share_their_memory():
    shared = torch.tensor([0.5, 0.5]).double().expand(3, 2)
    assert keep_class(shared, torch.tensor([0, 1, 0])).argmax(-1).tolist() == [0, 1, 0]
    assert shared[0].tolist() == [0.5, 0.5]


def test_probabilities_that_keep_their_class_are_left_as_they_are():
    rows = draw(200, 30, 3, 1).softmax(-1)
    kept = keep_class(rows.clone(), rows.argmax(-1))
    assert torch.equal(kept, rows)


def test_a_class_is_put_back_in_any_chunk(monkeypatch):
    monkeypatch.setattr(execution, "CHUNK", 4 * 30)
    rows = draw(50, 30, 3, 2).softmax(-1)
    classes = rows.argmax(-1)
    classes[[3, 17, 49]] = rows.argmin(-1)[[3, 17, 49]]
    kept = keep_class(rows.clone(), classes)
    assert torch.equal(kept.float().argmax(-1), classes)
    unchanged = torch.ones(50, dtype=torch.bool)
    unchanged[[3, 17, 49]] = False
    assert torch.equal(kept[unchanged], rows[unchanged])


@pytest.mark.parametrize("c", [10, 300])
def test_moments_leave_out_masked_classes(c):
    logits = draw(50, c, 3, 3).float()
    masked = torch.cat([logits, torch.full((50, 2), MASKED)], 1)
    alone, found = compute_moments(logits, 0.7), compute_moments(masked, 0.7)
    torch.testing.assert_close(found.mean, alone.mean, rtol=1e-5, atol=0)
    torch.testing.assert_close(found.variance, alone.variance, rtol=1e-4, atol=0)


def test_moments_agree_with_autograd():
    logits = draw(200, 7, 2, 0)
    found = compute_moments(logits, 0.7)
    gaps = logits - logits.amax(-1, keepdim=True)
    p = (0.7 * gaps).softmax(-1)
    mean = (p * gaps).sum(-1)
    torch.testing.assert_close(found.mean, mean)
    torch.testing.assert_close(found.variance, (p * gaps.square()).sum(-1) - mean.square())


def test_scaled_softmax_and_top_probability_are_torchs_softmax():
    logits = draw(30, 5, 3, 0)
    inverse = torch.linspace(0.1, 4, 30).double()
    expected = (logits * inverse[:, None]).softmax(-1)
    torch.testing.assert_close(scaled_softmax(logits, inverse), expected)
    torch.testing.assert_close(top_probability(logits, inverse), expected.amax(-1))


def test_a_graph_being_traced_computes_the_same(monkeypatch):
    logits = draw(300, 10, 3, 0)
    confidence = torch.linspace(0.05, 0.9999, 300).double()
    classes = logits.argmax(-1)
    inverse = inverse_temperature_for(logits, confidence)
    rows = keep_class(scaled_softmax(logits, inverse), classes)
    monkeypatch.setattr(torch.compiler, "is_exporting", lambda: True)
    traced = inverse_temperature_for(logits, confidence)
    torch.testing.assert_close(traced, inverse, rtol=1e-9, atol=0)
    torch.testing.assert_close(keep_class(scaled_softmax(logits, traced), classes), rows)
    assert keep_class(torch.full((2, 3), 1 / 3), torch.tensor([1, 2])).argmax(-1).tolist() == [1, 2]
