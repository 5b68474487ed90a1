"""Rightly's own: evidence of correctness, weighed for images like these and for shifted ones.

The probability that a prediction is right is logistic in `correctness_evidence` and an offset for
the predicted class. That is as accurate in distribution as anything more flexible that was tried,
and lasts better under shifts that were never seen (docs/findings.md). Five things make it last:

- Weights are held back, so that views which say the same share what they know. A view that costs
  the classifier accuracy is held back more: it moves images off the data the classifier knows,
  and what it says there differs from shift to shift.
- Views stand in for shifted images, and the other views follow.
- Rehearsal: rows of the calibration data that show images under synthetic shifts, where there are
  any.
- Weights are learned from much shift, since what ranks predictions then also ranks those of images
  as they are. How much rehearsal counts there is chosen by leaving out some kinds of shifts. How
  often predictions are right, a slope and a bias, is learned from less of it: so much that for
  images as they are confidence falls short of accuracy by no more than a point or two.
- Hidden units: what evidence means depends on what happened to the image, and rows of several
  kinds of shifts show enough of that to weigh curved functions of it.
"""

from typing import final

import torch
from torch import Tensor

from rightly.calibrators.base import Calibrator
from rightly.calibrators.correctness_logistic.random_features import RandomFeatures
from rightly.calibrators.correctness_logistic.two_stage_fit import (
    Samples,
    TwoStageFit,
    columns_of,
    held_back_of,
)
from rightly.calibrators.evidence import Neighbours, correctness_evidence
from rightly.calibrators.solvers.optimise import one_thread
from rightly.calibrators.solvers.ridge_logistic import Solution
from rightly.calibrators.temperature_scaling import nll_inverse_temperature
from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels, PerSample

UNITS = 256
FEW_KINDS = 4  # of shifts: fewer teach hidden units those alone


@final
class CorrectnessLogistic(Calibrator):
    """Logistic in evidence of correctness, fitted with shift in mind.

    `expected_shift` says how much shift to expect: at 0 only the images as they are count, at 1 only
    what stands for shifted ones, which lowers confidence and costs accuracy in distribution.
    Without views and without rehearsal rows there is nothing to be cautious by. With `neighbours`,
    so many calibration samples are kept, and whether a sample's features lie among those of its
    class is evidence too.
    """

    uses = ("view_logits",)
    uses_shifted_rows = True

    inverse: Tensor
    bias: Tensor
    weights: Tensor
    offsets: Tensor
    centre: Tensor
    spread: Tensor
    directions: Tensor
    starts: Tensor
    near_features: Tensor
    near_classes: Tensor

    def __init__(self, expected_shift: float = 0.5, neighbours: int = 0) -> None:
        super().__init__()
        if not 0 <= expected_shift <= 1:
            raise ValueError(
                f"expected_shift must lie between 0, no shift expected, and 1, got {expected_shift}"
            )
        if neighbours < 0:
            raise ValueError(
                f"neighbours must be 0, for none, or how many to keep, got {neighbours}"
            )
        self.expected_shift = expected_shift
        self.neighbours = neighbours
        self.needs = ("features",) if neighbours else ()

    def learn(self, predictions: Predictions, labels: Labels) -> None:
        plain, device = predictions.unshifted(), labels.device
        images, truth = predictions[plain], labels[plain]
        if not self.expected_shift:
            predictions, labels = images, truth  # nothing else is to count
        inverse = nll_inverse_temperature(images.logits, truth)
        neighbours = self._kept(predictions, labels)
        samples = Samples.of(predictions, labels, 1 / inverse, neighbours)
        units = RandomFeatures.drawn(samples.columns[samples.kind == 0], UNITS)
        held_back = held_back_of(images, truth, bool(self.neighbours))
        problem = TwoStageFit(self.expected_shift, held_back, units, predictions.class_count)
        curved = len(samples.kinds()) >= FEW_KINDS
        with one_thread():
            share = problem.best_share(samples)
            solution = problem.fitted(samples, share, curved)
        kept = slice(None) if curved else slice(0)
        self.store(
            inverse=torch.tensor(inverse, dtype=torch.float64, device=device),
            rehearsed=torch.tensor(share, dtype=torch.float64, device=device),
            bias=solution.bias.to(device),
            weights=solution.weights.to(device),
            offsets=solution.offsets.to(device),
            centre=units.centre[kept].to(device),
            spread=units.spread[kept].to(device),
            directions=units.directions[kept].to(device),
            starts=units.starts[kept].to(device),
        )
        if neighbours is not None:
            self.store(near_features=neighbours.features, near_classes=neighbours.classes)

    def _kept(self, predictions: Predictions, labels: Labels) -> Neighbours | None:
        """Some of the calibration samples, spread over all of them."""
        if not self.neighbours:
            return None
        assert predictions.features is not None
        rows = predictions.unshifted().nonzero().squeeze(-1)
        count = min(self.neighbours, rows.shape[0])
        rows = rows[torch.arange(count, device=rows.device) * rows.shape[0] // count]
        image = predictions.image_ranks()[rows]
        return Neighbours.of(predictions.features[rows], labels[rows], image)

    def compute_confidence(self, predictions: Predictions) -> PerSample:
        temperature, width = self.inverse.reciprocal(), self.directions.shape[0]
        log_distance_ratio = None
        if self.neighbours:
            assert predictions.features is not None
            neighbours = Neighbours(self.near_features, self.near_classes)
            log_distance_ratio = neighbours.log_distance_ratio(
                predictions.features, predictions.classes
            )
        if width:
            columns = columns_of(predictions, temperature, log_distance_ratio)
            if columns.shape[1] != width:  # fitted without views, it can make nothing of them
                bare = Predictions.unchecked(predictions.logits)
                columns = columns_of(bare, temperature, log_distance_ratio)
            units = RandomFeatures(self.centre, self.spread, self.directions, self.starts)
            evidence = units(columns)
        else:
            evidence = correctness_evidence(predictions, temperature, log_distance_ratio)
            evidence = evidence[:, : self.weights.shape[0]]  # fitted without views: none of these
        solution = Solution(self.bias, self.weights, self.offsets)
        return solution.logits(evidence, predictions.classes).sigmoid()
