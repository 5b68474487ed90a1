"""The rows of the regression: calibration samples, augmented and pseudo-shifted ones."""

from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.nn import functional

from rightly.calibrators.correctness_logistic.neighbours import Neighbours
from rightly.calibrators.correctness_logistic.settings import SETTINGS
from rightly.calibrators.evidence import class_log_probabilities, correctness_evidence
from rightly.predictions import Predictions
from rightly.predictions.masking import MASKED, fill_masked
from rightly.tensor_shapes import Features, Labels, Logits, PerSample, PerSampleBool

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
    """Calibration rows, followed by the unshifted ones with views in the place of images.

    On the CPU, where sums over samples have one order: what is left of predictions is small.
    """

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
            return tuple(x.cpu() for x in (columns, counted, classes == labels, kind, image))

        parts = [compute_rows(predictions, labels, kind, image, ratio)]
        if predictions.view_logits is not None:
            rows = predictions.unshifted()
            unshifted, labels = take_rows(predictions, labels, rows)
            kind = torch.full_like(labels, PSEUDO_SHIFTED)
            # Features of views are not known: what the image lies among goes for them too.
            ratio = None if ratio is None else ratio[rows]
            shifted = pseudo_shifted(unshifted, labels)
            parts.append(compute_rows(shifted, labels, kind, image[rows], ratio))
        return Samples(*(torch.cat(column) for column in zip(*parts, strict=True)))

    def shift_kinds(self) -> list[int]:
        """The kinds of shift in the augmentation."""
        return [kind for kind in self.kind.unique().tolist() if kind > 0]

    def take(self, rows: PerSampleBool) -> "Samples":
        return Samples(*(getattr(self, field.name)[rows] for field in fields(self)))

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


def pseudo_shifted(predictions: Predictions, labels: Labels) -> Predictions:
    """One view of each image in the place of the image: a shift that costs no further pass.

    The views take turns. What happened to a shifted image has happened to its views too, so the
    others are moved by what moved the image, times their `view_coupling`. A view of the same kind
    once more is taken to change nothing.
    """
    views = predictions.view_logits
    assert views is not None
    n, m, c = views.shape
    turn = torch.arange(n, device=views.device) % m
    logits = views.gather(1, turn[:, None, None].expand(-1, 1, c)).squeeze(1)
    moved = (logits - predictions.logits)[:, None]
    is_image = (turn[:, None] == torch.arange(m, device=views.device))[:, :, None]
    coupling = view_coupling(predictions, labels).to(views)[:, None]
    # A class that is masked in one of them says nothing about how far the others moved.
    is_masked = (predictions.logits <= MASKED) | (logits <= MASKED)
    moved = torch.where(is_masked[:, None] | (views <= MASKED), 0.0, moved)
    shifted = torch.where(is_image, views, views + coupling * moved)
    return Predictions.unchecked(logits, view_logits=shifted, view_names=predictions.view_names)


def view_coupling(predictions: Predictions, labels: Labels) -> Tensor:
    """Per view, the squared slope of its logits over the image's, both less their class means.

    From 0 to 1: how much of what sets an image apart from its class a view shows too. On
    calibration data this comes close to how far views follow the image under real shifts.
    """
    views = predictions.view_logits
    assert views is not None
    logits = fill_masked(predictions.logits)
    count = predictions.class_count
    total = _sum_by_class(logits, labels, count)
    image = logits - (total / labels.bincount(minlength=count).clamp_min(1)[:, None])[labels]
    image = image - image.mean(-1, keepdim=True)
    # Nothing has to be taken off the views: what is the same in a class or a row meets sums of 0.
    each = (fill_masked(views[:, i]) for i in range(views.shape[1]))
    products = [(view * image).sum(dtype=torch.float64) for view in each]
    slope = torch.stack(products) / image.square().sum(dtype=torch.float64).clamp_min(1e-12)
    return slope.clamp(0, 1).square()


def _sum_by_class(logits: Logits, labels: Labels, count: int) -> Tensor:
    """Sums (c, c) of the logits of each class, in an order that repeats."""
    if logits.is_cuda:  # where index_add has none
        return functional.one_hot(labels, count).to(logits.dtype).T @ logits
    return logits.new_zeros(count, count).index_add(0, labels, logits)
