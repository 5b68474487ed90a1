"""Rightly's own calibrator: logistic regression of correctness, fitted with shift in mind."""

from typing import final

import torch
from torch import Tensor

from rightly.calibrators.base import Calibrator
from rightly.calibrators.checks import warn_if_classes_missing
from rightly.calibrators.correctness_logistic.held_out import select_share, select_views, shrink
from rightly.calibrators.correctness_logistic.neighbours import Neighbours
from rightly.calibrators.correctness_logistic.samples import (
    Samples,
    compute_columns,
    find_seen_classes,
    take_rows,
)
from rightly.calibrators.correctness_logistic.settings import SETTINGS
from rightly.calibrators.correctness_logistic.two_stage_fit import (
    RandomFeatures,
    TwoStageFit,
    ridge_factors,
)
from rightly.calibrators.evidence import correctness_evidence
from rightly.calibrators.solvers.execution import single_threaded
from rightly.calibrators.solvers.ridge_logistic import Solution
from rightly.calibrators.solvers.temperature import nll_inverse_temperature
from rightly.calibrators.stored_tensors import POSITIVE, SCALE, Stored
from rightly.checks import check_share
from rightly.predictions import Predictions
from rightly.predictions.masking import MASKED
from rightly.tensor_shapes import Labels, PerSample


@final
class CorrectnessLogistic(Calibrator):
    """P(right) = sigmoid(bias + offset of the class + weights . evidence); see README.md beside it.

    `expected_shift` is the weight of shifted samples in the fit: at 0 only unshifted ones count, at
    1 only what stands for shifted ones, which lowers confidence and costs accuracy in
    distribution. Without views and without shift augmentation nothing stands for shift. With
    `neighbours`, so many calibration samples are kept, and whether a sample's features lie among
    those of its class is evidence too.
    """

    uses = ("view_logits",)
    uses_shifted_rows = True
    sorts_rows = True

    stores = {
        "inverse": Stored(low=POSITIVE),
        "shift_weight": Stored(low=0),
        "used_views": Stored("v", low=0, is_integer=True),
        "bias": Stored(),
        "weights": Stored("w"),
        "offsets": Stored("c"),
        "centre": Stored("k"),
        "scale": SCALE,
        "feature_weights": Stored("k f"),
        "feature_biases": Stored("b"),
        "neighbour_features": Stored("n d", is_optional=True),
        "neighbour_classes": Stored("n", low=0, is_integer=True, is_optional=True),
    }

    used_views: Tensor
    inverse: Tensor
    bias: Tensor
    weights: Tensor
    offsets: Tensor
    centre: Tensor
    scale: Tensor
    feature_weights: Tensor
    feature_biases: Tensor
    neighbour_features: Tensor
    neighbour_classes: Tensor

    def __init__(self, expected_shift: float = 0.5, neighbours: int = 0) -> None:
        super().__init__()
        check_share("expected_shift", expected_shift)
        if neighbours < 0:
            raise ValueError(
                f"neighbours must be 0, for none, or how many to keep, got {neighbours}"
            )
        self.expected_shift = expected_shift
        self.neighbours = neighbours
        self.needs = ("features",) if neighbours else ()

    def learn(self, predictions: Predictions, labels: Labels) -> None:
        device = labels.device
        unshifted, unshifted_labels = take_rows(predictions, labels, predictions.unshifted())
        if not self.expected_shift:
            predictions, labels = unshifted, unshifted_labels  # nothing else is to count
        self._warn_of_missing_classes(predictions, labels)
        inverse = nll_inverse_temperature(unshifted.logits, unshifted_labels)
        with single_threaded():
            used = select_views(unshifted, unshifted_labels, 1 / inverse)
        if len(used) < len(unshifted.view_names):
            names = [unshifted.view_names[view] for view in used]
            unshifted, predictions = (
                part.with_views(names) if names else part.without_views()
                for part in (unshifted, predictions)
            )
        neighbours = self._select_neighbours(predictions, labels)
        samples = Samples.of(predictions, labels, 1 / inverse, neighbours)
        features = RandomFeatures.draw(samples.columns[samples.kind == 0])
        factors = ridge_factors(unshifted, unshifted_labels, bool(self.neighbours))
        problem = TwoStageFit(self.expected_shift, factors, features, predictions.class_count)
        # What evidence means depends on what happened to the image; rows of several kinds of shift
        # show enough of that to fit curved functions of it.
        random_features = len(samples.shift_kinds()) >= SETTINGS.min_kinds
        with single_threaded():
            shift_weight = problem.select_shift_weight(samples)
            share, near = select_share(problem, samples, shift_weight)
            solution = problem.fit(samples, shift_weight, random_features, near)
            solution = shrink(solution, share)
        kept = slice(None) if random_features else slice(0)
        self.store(
            used_views=torch.tensor(used, dtype=torch.int64, device=device),
            inverse=torch.tensor(inverse, dtype=torch.float64, device=device),
            shift_weight=torch.tensor(shift_weight, dtype=torch.float64, device=device),
            bias=solution.bias.to(device),
            weights=solution.weights.to(device),
            offsets=solution.offsets.to(device),
            centre=features.centre[kept].to(device),
            scale=features.scale[kept].to(device),
            feature_weights=features.weights[kept].to(device),
            feature_biases=features.biases[kept].to(device),
        )
        if neighbours is not None:
            self.store(neighbour_features=neighbours.features, neighbour_classes=neighbours.classes)

    def _warn_of_missing_classes(self, predictions: Predictions, labels: Labels) -> None:
        is_missing = ~find_seen_classes(labels, predictions.class_count)
        if predictions.has_masked:  # nothing is missing where no sample can be of a class
            is_missing &= predictions.logits.amax(0) > MASKED
        warn_if_classes_missing(is_missing, predictions.class_names, self.title)

    def _select_neighbours(self, predictions: Predictions, labels: Labels) -> Neighbours | None:
        """Unshifted calibration samples, at equal distances over all of them."""
        if not self.neighbours:
            return None
        assert predictions.features is not None
        rows = predictions.unshifted().nonzero().squeeze(-1)
        count = min(self.neighbours, rows.shape[0])
        rows = rows[torch.arange(count, device=rows.device) * rows.shape[0] // count]
        image = predictions.image_ranks()[rows]
        return Neighbours.of(predictions.features[rows], labels[rows], image)

    def compute_confidence(self, predictions: Predictions) -> PerSample:
        predictions = self._take_views(predictions)
        temperature, width = self.inverse.reciprocal(), self.feature_weights.shape[0]
        ratio = None
        if self.neighbours:
            assert predictions.features is not None
            neighbours = Neighbours(self.neighbour_features, self.neighbour_classes)
            ratio = neighbours.log_distance_ratio(predictions.features, predictions.classes)
        if width:
            columns = compute_columns(predictions, temperature, ratio)
            features = RandomFeatures(
                self.centre, self.scale, self.feature_weights, self.feature_biases
            )
            design = features.append_to(columns)
        else:
            design = correctness_evidence(predictions, temperature, ratio)
        solution = Solution(self.bias, self.weights, self.offsets)
        return solution.logits(design, predictions.classes).sigmoid()

    def _take_views(self, predictions: Predictions) -> Predictions:
        """The predictions with the views that have a weight."""
        views, used = predictions.view_logits, self.used_views
        if views is None or used.shape[0] == views.shape[1]:
            return predictions
        taken = views[:, used] if used.shape[0] else None
        return Predictions.unchecked(
            predictions.logits, features=predictions.features, view_logits=taken
        )
