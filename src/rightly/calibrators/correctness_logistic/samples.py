"""The rows of the regression: calibration samples, augmented and pseudo-shifted ones."""

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from rightly.calibrators.correctness_logistic.neighbours import Neighbours
from rightly.calibrators.correctness_logistic.settings import SETTINGS
from rightly.calibrators.evidence import class_log_probabilities, correctness_evidence
from rightly.predictions import Predictions
from rightly.predictions.masking import MASKED, fill_masked
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
        parts = [(predictions, labels, kind, image, ratio)]
        if predictions.view_logits is not None:
            unshifted = predictions.unshifted()
            shifted = pseudo_shifted(predictions[unshifted], labels[unshifted])
            kind = torch.full_like(image[unshifted], PSEUDO_SHIFTED)
            # Features of views are not known: what the image lies among goes for them too.
            ratio = None if ratio is None else ratio[unshifted]
            parts.append((shifted, labels[unshifted], kind, image[unshifted], ratio))
        columns = [
            [compute_columns(part, temperature, ratio) for part, _, _, _, ratio in parts],
            # Cats taken for dogs have their mirror image in dogs taken for cats. Without dogs these
            # are missing, and what is predicted to be a cat would seem to be right too often: the
            # errors that are there stand in for those that are not.
            [
                torch.where(is_seen[part.classes], part.classes, labels)
                for part, labels, *_ in parts
            ],
            [part.classes == labels for part, labels, *_ in parts],
            [kind for _, _, kind, _, _ in parts],
            [image for _, _, _, image, _ in parts],
        ]
        return Samples(*(torch.cat(column).cpu() for column in columns))

    def shift_kinds(self) -> list[int]:
        """The kinds of shift in the augmentation."""
        return [kind for kind in self.kind.unique().tolist() if kind > 0]

    def take(self, rows: PerSampleBool) -> "Samples":
        return Samples(*(getattr(self, field.name)[rows] for field in fields(self)))

    def subsample(self, most: int, folds: int) -> "Samples":
        """About that many rows, in groups of as many images as there are folds."""
        every = -(-self.kind.shape[0] // most)
        return self if every == 1 else self.take(self.image // folds % every == 0)


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
    views, labels = predictions.view_logits, labels.cpu()
    assert views is not None
    logits = fill_masked(predictions.logits.cpu())
    count = predictions.class_count
    total = logits.new_zeros(count, count).index_add(0, labels, logits)
    image = logits - (total / labels.bincount(minlength=count).clamp_min(1)[:, None])[labels]
    image = image - image.mean(-1, keepdim=True)
    # Nothing has to be taken off the views: what is the same in a class or a row meets sums of 0.
    each = (fill_masked(views[:, i].cpu()) for i in range(views.shape[1]))
    products = [(view * image).sum(dtype=torch.float64) for view in each]
    slope = torch.stack(products) / image.square().sum(dtype=torch.float64).clamp_min(1e-12)
    return slope.clamp(0, 1).square()
