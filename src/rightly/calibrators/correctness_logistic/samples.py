"""The rows of the regression: calibration samples, augmented and pseudo-shifted ones."""

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from rightly.calibrators.correctness_logistic.neighbours import Neighbours
from rightly.calibrators.correctness_logistic.settings import SETTINGS
from rightly.calibrators.evidence import class_log_probabilities, correctness_evidence
from rightly.calibrators.pseudo_shift import pseudo_shifted, take_turns
from rightly.predictions import Predictions
from rightly.tensor_shapes import Features, Labels, PerSample, PerSampleBool

PSEUDO_SHIFTED = -1  # kind of the rows that show a view in the place of its image


def compute_columns(
    predictions: Predictions,
    temperature: float | Tensor,
    log_distance_ratio: PerSample | None,
) -> Features:
    """Evidence of correctness; for few classes then the log-probabilities of all of them.

    The former are the columns of the linear model, all of them the input of random features.
    """
    evidence = correctness_evidence(predictions, temperature, log_distance_ratio)
    if predictions.class_count > SETTINGS.max_class_columns:
        return evidence
    return torch.cat([evidence, class_log_probabilities(predictions, temperature)], 1)


@dataclass(frozen=True)
class Samples:
    """Calibration rows, followed by the unshifted ones with views in the place of images."""

    columns: Features
    classes: Labels  # predicted; the label where no sample is of that class
    correct: PerSampleBool
    kind: Labels  # 0: unshifted; 1, 2, ...: a kind of shift; or PSEUDO_SHIFTED
    image: Labels  # 0..k-1, the same for all rows that come from one image

    @staticmethod
    def of(
        predictions: Predictions, labels: Labels, temperature: float, neighbours: Neighbours | None
    ) -> "Samples":
        kind, image = predictions.shift_kinds(), predictions.image_ranks()
        is_seen = find_seen_classes(labels, predictions.class_count)
        ratio = None
        if neighbours is not None:
            assert predictions.features is not None
            ratio = neighbours.log_distance_ratio(predictions.features, predictions.classes, image)

        def compute_rows(
            part: Predictions, labels: Labels, kind: Labels, image: Labels, ratio: PerSample | None
        ) -> tuple[Tensor, ...]:
            columns, classes = compute_columns(part, temperature, ratio), part.classes
            # Cats taken for dogs have their mirror image in dogs taken for cats. Without dogs these
            # are missing, and what is predicted to be a cat would seem to be right too often: the
            # errors that are there stand in for those that are not.
            counted = torch.where(is_seen[classes], classes, labels)
            return columns, counted, classes == labels, kind, image

        parts = [compute_rows(predictions, labels, kind, image, ratio)]
        if predictions.view_logits is not None:
            rows = predictions.unshifted()
            unshifted, labels = take_rows(predictions, labels, rows)
            kind = torch.full_like(labels, PSEUDO_SHIFTED)
            # Features of views are not known: what the image lies among goes for them too.
            ratio = None if ratio is None else ratio[rows]
            shifted = pseudo_shifted(unshifted, labels, take_turns(unshifted))
            parts.append(compute_rows(shifted, labels, kind, image[rows], ratio))
        return Samples(*(torch.cat(column) for column in zip(*parts, strict=True)))

    def shift_kinds(self) -> list[int]:
        """The kinds of shift in the augmentation."""
        if not bool(self.kind.max() > 0):
            return []  # the usual case, at a small part of the cost
        return [kind for kind in self.kind.unique().tolist() if kind > 0]

    def take(self, rows: PerSampleBool) -> "Samples":
        return Samples(*(getattr(self, field.name)[rows] for field in fields(self)))

    def cpu(self) -> "Samples":
        """The same on a processor, which solves for a few thousand rows sooner than a GPU."""
        return Samples(*(getattr(self, field.name).cpu() for field in fields(self)))

    def subsample(self, most: int, folds: int) -> "Samples":
        """About that many rows, in groups of as many images as there are folds."""
        every = -(-self.kind.shape[0] // most)
        return self if every == 1 else self.take(self.image // folds % every == 0)


def take_rows(
    predictions: Predictions, labels: Labels, rows: PerSampleBool
) -> tuple[Predictions, Tensor]:
    """Some of the rows, without a copy where they are all of them."""
    return (predictions, labels) if bool(rows.all()) else (predictions[rows], labels[rows])


def find_seen_classes(labels: Labels, class_count: int) -> Tensor:
    """Per class, whether any of the labels is it."""
    return labels.bincount(minlength=class_count) > 0
