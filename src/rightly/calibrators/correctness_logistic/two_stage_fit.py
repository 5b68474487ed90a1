"""The fit in two stages: ridge logistic regression for the ranking, Platt scaling for the level.

The first stage learns weights from much shift, since what ranks shifted predictions ranks the
others nearly as well. The second learns slope and bias of the resulting score from as much shift
as an allowance permits: so far may mean confidence fall short of accuracy in distribution.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

from rightly.calibrators.correctness_logistic.samples import PSEUDO_SHIFTED, Samples
from rightly.calibrators.correctness_logistic.settings import SETTINGS, Settings
from rightly.calibrators.evidence import correctness_evidence_names
from rightly.calibrators.solvers.ridge_logistic import (
    Affine,
    Rows,
    Solution,
    fit_platt,
    fit_ridge_logistic,
)
from rightly.predictions import Predictions
from rightly.tensor_shapes import Features, Labels, PerSample


@dataclass(frozen=True)
class RandomFeatures:
    """silu(x W + b) of standardised, clipped columns x, with W and b drawn from a normal law.

    Only their weights in the regression are fitted, by the same exact solution as those of all
    other columns: what a small network learns, without its dependence on steps, batches and
    devices.
    """

    centre: Tensor
    scale: Tensor
    weights: Tensor
    biases: Tensor
    max_deviation: float = SETTINGS.max_deviation

    @staticmethod
    def draw(columns: Features, settings: Settings = SETTINGS) -> "RandomFeatures":
        """Features for columns of which these are typical."""
        scale, centre = torch.std_mean(columns, 0, correction=0)
        scale = torch.where(scale > 1e-9, scale, torch.ones_like(scale))
        width, count = columns.shape[1], settings.random_features
        generator = torch.Generator().manual_seed(settings.seed)
        weights = torch.randn(width, count, generator=generator, dtype=torch.float64)
        biases = torch.randn(count, generator=generator, dtype=torch.float64)
        return RandomFeatures(
            centre,
            scale,
            (weights * (settings.random_feature_gain / width**0.5)).to(columns.device),
            biases.to(columns.device),
            settings.max_deviation,
        )

    def append_to(self, columns: Features) -> Tensor:
        """The columns, followed by their random features."""
        x = ((columns - self.centre) / self.scale).clamp(-self.max_deviation, self.max_deviation)
        return torch.cat([columns, functional.silu(x @ self.weights + self.biases)], 1)


def ridge_factors(
    unshifted: Predictions,
    labels: Labels,
    has_neighbours: bool,
    settings: Settings = SETTINGS,
) -> Tensor:
    """Per column of evidence, what its ridge penalty is multiplied by.

    1 for most, less for the image's own log-odds, more for views that cost accuracy: such a view
    moves images off the data the classifier knows, and what it says there differs between shifts.
    """
    names = correctness_evidence_names(unshifted.view_names, has_neighbours)
    factors = torch.ones(len(names) - len(unshifted.view_names), dtype=torch.float64)
    factors[0] = settings.image_ridge_factor
    if unshifted.view_logits is None:
        return factors
    accuracy = (unshifted.classes == labels).double().mean()
    view_accuracy = (unshifted.view_logits.argmax(-1) == labels[:, None]).double().mean(0)
    cost = (accuracy - view_accuracy).clamp_min(0)
    return torch.cat([factors, (1 + cost / settings.costly_view).cpu()])


@dataclass(frozen=True)
class TwoStageFit:
    """Fits weights and class offsets, then slope and bias."""

    expected_shift: float
    ridge_factors: Tensor  # per column of evidence, see `ridge_factors`
    features: RandomFeatures
    class_count: int
    settings: Settings = SETTINGS

    def fit(
        self,
        samples: Samples,
        shift_weight: float,
        random_features: bool,
        start: Solution | None = None,
    ) -> Solution:
        """Both stages, with shift augmentation at that weight in the first."""
        design = self.design_matrix(samples.columns, random_features)
        solution = self._fit_ridge_logistic(samples, design, shift_weight, start)
        score = solution.logits(design, samples.classes)
        return solution.rescale(self._fit_platt(samples, score))

    def fit_linear(
        self, samples: Samples, shift_weight: float, start: Solution | None = None
    ) -> Solution:
        """Both stages without random features, which take a small part of the time."""
        return self.fit(samples, shift_weight, random_features=False, start=start)

    def fit_ranking(
        self, samples: Samples, shift_weight: float, start: Solution | None = None
    ) -> Solution:
        """The first stage without random features, at the level of unshifted samples."""
        design = self.design_matrix(samples.columns, random_features=False)
        solution = self._fit_ridge_logistic(samples, design, shift_weight, start)
        score = solution.logits(design, samples.classes)
        unshifted = (samples.kind == 0).double()
        return solution.rescale(
            fit_platt(score, samples.correct, unshifted, Affine.identity(score))
        )

    def with_shift_at_most(self, expected_shift: float) -> "TwoStageFit":
        return replace(self, expected_shift=min(expected_shift, self.expected_shift))

    def design_matrix(self, columns: Features, random_features: bool) -> Tensor:
        """All columns and their random features, or the evidence of correctness alone."""
        if random_features:
            return self.features.append_to(columns)
        return columns[:, : self.ridge_factors.shape[0]]

    def _fit_ridge_logistic(
        self, samples: Samples, design: Tensor, shift_weight: float, start: Solution | None
    ) -> Solution:
        options = self.settings
        shift_weight = min(shift_weight, options.weight_per_kind * len(samples.shift_kinds()))
        weight = self.sample_weights(samples, options.pseudo_shift_weight, shift_weight)
        used = weight > 0
        rows = Rows(design[used], samples.classes[used], samples.correct[used], weight[used])
        n = int((samples.kind == 0).sum())
        penalty = self.ridge_factors * max(options.ridge * n, options.min_ridge)
        if shift_weight:
            penalty = penalty * options.augmented_ridge_factor
        beyond = penalty.new_full((design.shape[1] - len(penalty),), options.random_feature_ridge)
        penalty = torch.cat([penalty, beyond]).to(design.device)
        near = self._begin(penalty) if start is None else start.extend(penalty)
        return fit_ridge_logistic(rows, penalty, options.class_ridge, self.class_count, near)

    def _begin(self, penalty: Tensor) -> Solution:
        """Temperature scaling: a weight of 1 for the image's log-odds, nothing else."""
        weights = torch.zeros_like(penalty)
        weights[0] = 1
        return Solution(weights.new_zeros(()), weights, weights.new_zeros(self.class_count))

    def _fit_platt(self, samples: Samples, score: PerSample) -> Affine:
        """Slope and bias from unshifted samples and the largest allowed weight of shifted ones.

        The weight is found at expected_shift 1/2, by bisection, and then used at its own.
        """
        options, is_augmented = self.settings, bool(samples.shift_kinds())
        balanced = replace(self, expected_shift=0.5)
        unshifted = samples.kind == 0
        accuracy = float(samples.correct[unshifted].double().mean())
        allowance = (
            options.augmentation_allowance if is_augmented else options.pseudo_shift_allowance
        ) * min(1.0, (1 - accuracy) / options.full_allowance_error)
        affine = Affine.identity(score)

        def fit_at(problem: TwoStageFit, weight: float) -> Affine:
            nonlocal affine  # of the weight before, near this one's
            weights = (0.0, weight) if is_augmented else (weight, 0.0)
            counted = problem.sample_weights(samples, *weights)
            affine = fit_platt(score, samples.correct, counted, affine)
            return affine

        def exceeds_allowance(weight: float) -> bool:
            confidence = fit_at(balanced, weight)(score[unshifted]).sigmoid().mean()
            return bool(accuracy - confidence > allowance)

        low, high = 0.0, 1.0
        for _ in range(options.bisection_steps if exceeds_allowance(high) else 0):
            middle = (low + high) / 2
            low, high = (low, middle) if exceeds_allowance(middle) else (middle, high)
        return fit_at(self, high)

    def sample_weights(
        self, samples: Samples, pseudo_shift_weight: float, shift_weight: float
    ) -> PerSample:
        """Weights that sum to the number of unshifted samples.

        Unshifted samples have 1 - expected_shift of it, shifted ones their weight times
        expected_shift.
        """
        kind = samples.kind
        weight = torch.zeros_like(kind, dtype=torch.float64)
        for group, share in (
            (kind == 0, 1 - self.expected_shift),
            (kind == PSEUDO_SHIFTED, pseudo_shift_weight * self.expected_shift),
            (kind > 0, shift_weight * self.expected_shift),
        ):
            weight[group] = share / max(1, int(group.sum()))
        if not bool(weight.sum() > 0):
            weight[kind == 0] = 1.0  # nothing stands for shift
        return weight * ((kind == 0).sum() / weight.sum())

    def select_shift_weight(self, samples: Samples) -> float:
        """The weight of shift augmentation in the first stage, by cross-validation over kinds."""
        options, kinds = self.settings, samples.shift_kinds()
        if len(kinds) < 2:  # no kind would be left to fit on
            return options.shift_weights[0] if kinds else 0.0
        samples = samples.subsample(options.selection_rows, options.selection_folds).cpu()
        count = min(options.selection_groups, len(kinds))
        groups = [kinds[first :: options.selection_groups] for first in range(count)]
        unshifted, shifted = self._held_out_losses(samples, groups)
        # Both as shares of the least there is: shifted images, with larger losses, get no more say.
        total = (
            1 - self.expected_shift
        ) * unshifted / unshifted.min() + self.expected_shift * shifted / shifted.min()
        return options.shift_weights[int(total.argmin())]

    def _held_out_losses(self, samples: Samples, groups: Sequence[Sequence[int]]) -> Tensor:
        """Mean log loss (2, weights) on held-out images: unshifted, and under kinds left out.

        Linear fits are enough to select by, and take a small part of the time.
        """
        folds, weights = self.settings.selection_folds, self.settings.shift_weights
        is_held_out = samples.image % folds == folds - 1
        train, held_out = samples.take(~is_held_out), samples.take(is_held_out)
        losses = torch.zeros(2, len(weights), dtype=torch.float64)
        for group in groups:
            left_out = torch.tensor(group)
            subset = train.take(~torch.isin(train.kind, left_out))
            unshifted, shifted = held_out.kind == 0, torch.isin(held_out.kind, left_out)
            for i, weight in enumerate(weights):
                solution = self.fit(subset, weight, random_features=False)
                losses[0, i] += self._log_loss(solution, held_out.take(unshifted))
                losses[1, i] += self._log_loss(solution, held_out.take(shifted))
        return losses / len(groups)

    def _log_loss(self, solution: Solution, samples: Samples) -> float:
        design = self.design_matrix(samples.columns, random_features=False)
        logits = solution.logits(design, samples.classes)
        return float(functional.binary_cross_entropy_with_logits(logits, samples.correct.double()))
