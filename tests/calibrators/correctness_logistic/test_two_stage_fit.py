"""Penalties, sample weights and the selection of the fit."""

import pytest
import torch

from rightly import Predictions
from rightly.calibrators.correctness_logistic.samples import PSEUDO_SHIFTED, Samples
from rightly.calibrators.correctness_logistic.settings import Settings
from rightly.calibrators.correctness_logistic.two_stage_fit import (
    RandomFeatures,
    TwoStageFit,
    ridge_factors,
)
from tests.calibrators.correctness_logistic.data import augmented, draw_noisy


def make_problem(samples, expected_shift=0.5, **settings):
    features = RandomFeatures.draw(samples.columns)
    return TwoStageFit(expected_shift, torch.ones(7).double(), features, 10, Settings(**settings))


def test_a_view_is_penalised_by_the_accuracy_it_costs():
    logits = 5 * torch.eye(4)[torch.tensor([0, 1, 2, 3, 0, 1, 2, 3, 0, 1])]
    labels = logits.argmax(-1)
    image = logits.clone()
    image[0] = image[0].roll(1)  # one in ten is wrong
    predictions = Predictions(image, torch.stack([logits, image, logits.roll(1, 1)], 1))
    factors = ridge_factors(predictions, labels, has_neighbours=False)
    # The image, three pooled columns, and views that gain, cost nothing, and lose 0.9.
    expected = [0.1, 1, 1, 1, 1, 1, 1 + 0.9 / 0.02]
    torch.testing.assert_close(factors, torch.tensor(expected).double())
    bare = ridge_factors(Predictions(logits), labels, has_neighbours=True)
    assert bare.tolist() == [0.1, 1.0]


@pytest.mark.parametrize("expected_shift", [0.0, 0.25, 1.0])
def test_weights_have_the_shares_they_are_given(expected_shift):
    samples = Samples.of(*augmented(), 1.0, None)
    weight = make_problem(samples, expected_shift).sample_weights(samples, 0.3, 0.2)
    assert float(weight.sum()) == pytest.approx(1500)
    groups = samples.kind == 0, samples.kind == PSEUDO_SHIFTED, samples.kind > 0
    sums = torch.stack([weight[group].sum() for group in groups])
    shares = torch.tensor([1 - expected_shift, 0.3 * expected_shift, 0.2 * expected_shift]).double()
    torch.testing.assert_close(sums / sums.sum(), shares / shares.sum())
    for group in groups:
        assert float(weight[group].std()) < 1e-9


def test_where_nothing_stands_for_shift_unshifted_samples_count():
    predictions, labels = draw_noisy(50)
    samples = Samples.of(Predictions(predictions.logits), labels, 1.0, None)
    weight = make_problem(samples, expected_shift=1.0).sample_weights(samples, 0.3, 0.2)
    assert torch.equal(weight, torch.ones(50).double())


def test_without_kinds_there_is_no_weight_and_with_one_the_smallest():
    for names, expected in (((), 0.0), (("gaussian_blur:3",), 0.15)):
        samples = Samples.of(*augmented(names), 1.0, None)
        assert make_problem(samples).select_shift_weight(samples) == expected


def test_the_weight_with_the_lowest_held_out_loss_is_selected(monkeypatch):
    samples = Samples.of(*augmented(), 1.0, None)
    for losses, expected in (
        ([[1.0, 1.2], [2.0, 2.1]], 0.15),
        ([[1.0, 1.1], [3.0, 2.0]], 0.25),
        ([[1.0, 1.6], [3.0, 2.0]], 0.15),  # shares of the least: 0.5 is lost, 0.6 won
    ):
        monkeypatch.setattr(
            TwoStageFit, "_held_out_losses", lambda *_, losses=losses: torch.tensor(losses)
        )
        assert make_problem(samples).select_shift_weight(samples) == expected


def test_held_out_losses_are_of_images_and_kinds_that_were_not_fitted_on():
    samples = Samples.of(*augmented(("a", "b", "c")), 1.0, None)
    fitted_on = []

    class Spy(TwoStageFit):
        def fit(self, samples, shift_weight, random_features):
            fitted_on.append(samples)
            return super().fit(samples, shift_weight, random_features)

    problem = make_problem(samples)
    spy = Spy(problem.expected_shift, problem.ridge_factors, problem.features, 10)
    losses = spy._held_out_losses(samples, [[1, 3], [2]])
    assert losses.shape == (2, 2) and (losses[1] > losses[0]).all()
    assert len(fitted_on) == 4
    for subset in fitted_on:
        assert not (subset.image % 4 == 3).any()
    assert fitted_on[0].shift_kinds() == [2] and fitted_on[2].shift_kinds() == [1, 3]


def test_random_features_join_all_columns_and_else_evidence_stands_alone():
    samples = Samples.of(*draw_noisy(60), 1.0, None)
    problem = make_problem(samples)
    assert problem.design_matrix(samples.columns, False).shape == (120, 7)
    assert problem.design_matrix(samples.columns, True).shape == (120, 27 + 256)


def test_a_larger_penalty_gives_smaller_weights():
    samples = Samples.of(*draw_noisy(800), 1.0, None)
    small, large = (
        make_problem(samples, ridge=ridge).fit(samples, 0.0, False) for ridge in (0.01, 10.0)
    )
    # Platt scaling gives the slope back, but the penalised columns are more alike.
    ratio = [one.weights[4:].std() / one.weights[4:].mean() for one in (small, large)]
    assert ratio[1] < ratio[0]
    assert float(large.offsets.abs().mean() / large.weights[4:].mean()) > float(
        small.offsets.abs().mean() / small.weights[4:].mean()
    )
