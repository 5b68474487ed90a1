"""Rightly's own: evidence of correctness, weighed for images like these and for shifted ones.

The probability that a prediction is right is logistic in `correctness_evidence` and an offset for
the predicted class. That is as accurate in distribution as anything more flexible that was tried,
and lasts better under shifts that were never seen (docs/findings.md). Three things make it last:

- Weights are held back, so that views which say the same share what they know. A view that costs
  the classifier accuracy is held back more: it moves images off the data the classifier knows,
  and what it says there differs from shift to shift.
- Views stand in for shifted images, in exchange with the image itself.
- Rehearsal: rows of the calibration data that show images under synthetic shifts are fitted on
  too. How much they count is chosen by leaving out one family of shifts at a time.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import final

import torch
from torch import Tensor
from torch.nn import functional

from rightly.calibrators.base import Calibrator
from rightly.calibrators.global_temperature import likeliest_inverse_temperature
from rightly.calibrators.logistic import Rows, Solution, solve
from rightly.calibrators.rehearsal import families, held_out_images, views_as_shifted
from rightly.calibrators.training import one_thread
from rightly.evidence import correctness_evidence
from rightly.predictions import Predictions
from rightly.shapes import Labels, PerSample

HELD_BACK = 0.01  # of the mean loss, per squared weight of standardised evidence
LEAST_HELD_BACK = 10.0  # in samples' worth of loss: what a thousand samples come to
COSTLY = 0.02  # a view that costs this much accuracy is held back twice as much
CLASS_HELD_BACK = 4.0  # offsets of half a logit are expected
SWAPPED = 3.0  # how much views as shifted images count beside the images, at a caution of 1/2
REHEARSED = (0.0, 0.5, 1.0, 2.0, 4.0)  # the same for rehearsal; the calibration data choose


@final
class WeighedEvidence(Calibrator):
    """Logistic in evidence of correctness, fitted with shift in mind.

    `caution` says how much shift to expect: at 0 only the images as they are count, at 1 only
    what stands for shifted ones, which lowers confidence and costs accuracy in distribution.
    Without views and without rehearsal rows there is nothing to be cautious by.
    """

    uses = ("view_logits",)
    uses_shifted_rows = True

    inverse: Tensor
    bias: Tensor
    weights: Tensor
    offsets: Tensor

    def __init__(self, caution: float = 0.5) -> None:
        super().__init__()
        if not 0 <= caution <= 1:
            raise ValueError(f"caution must lie between 0, no shift expected, and 1, got {caution}")
        self.caution = caution

    def _fit(self, predictions: Predictions, labels: Labels) -> None:
        plain = predictions.unshifted()
        images, truth = predictions[plain], labels[plain]
        inverse = likeliest_inverse_temperature(images.logits, truth)
        rows = self._rows(predictions, labels, 1 / inverse)
        held_back = _held_back(images, truth)
        kinds, judges = families(predictions), held_out_images(predictions)
        kinds = torch.cat([kinds, torch.full_like(rows.classes[len(kinds) :], -1)])
        judges = torch.cat([judges, judges[plain][: len(kinds) - len(judges)]])
        with one_thread():
            rehearsed = self._rehearsed(rows, kinds, judges, held_back, predictions.class_count)
            fitted = self._solved(rows, kinds, rehearsed, held_back, predictions.class_count)
        self.learn(
            inverse=torch.tensor(inverse, dtype=torch.float64),
            rehearsed=torch.tensor(rehearsed, dtype=torch.float64),
            bias=fitted.bias,
            weights=fitted.weights,
            offsets=fitted.offsets,
        )

    def _rows(self, predictions: Predictions, labels: Labels, temperature: float) -> Rows:
        """All rows, followed by the unshifted ones with views in the place of images."""
        parts = [(predictions, labels)]
        if predictions.view_logits is not None:
            plain = predictions.unshifted()
            parts.append((views_as_shifted(predictions[plain]), labels[plain]))
        return Rows(
            torch.cat([correctness_evidence(shown, temperature) for shown, _ in parts]),
            torch.cat([shown.classes for shown, _ in parts]),
            torch.cat([shown.classes == truth for shown, truth in parts]),
            torch.ones(sum(len(shown) for shown, _ in parts), dtype=torch.float64).to(
                labels.device
            ),
        )

    def _rehearsed(
        self, rows: Rows, kinds: Labels, judges: Tensor, held_back: Tensor, class_count: int
    ) -> float:
        """How much rehearsal rows should count, judged on families of shifts left out.

        Unshifted and shifted losses of the judging images count as caution says.
        """
        names = [kind for kind in kinds.unique().tolist() if kind > 0]
        if len(names) < 2:
            return 1.0
        best, chosen = float("inf"), 1.0
        for rehearsed in REHEARSED:
            plain, shifted = [], []
            for left_out in names if rehearsed else [None]:
                fitted_on = ~judges & (kinds != left_out) if left_out else ~judges
                some = _take(rows, fitted_on)
                fitted = self._solved(some, kinds[fitted_on], rehearsed, held_back, class_count)
                plain.append(_loss(fitted, rows, judges & (kinds == 0)))
                asked = [left_out] if left_out else names
                shifted += [_loss(fitted, rows, judges & (kinds == kind)) for kind in asked]
            loss = (1 - self.caution) * _mean(plain) + self.caution * _mean(shifted)
            if loss < best:
                best, chosen = loss, rehearsed
        return chosen

    def _solved(
        self, rows: Rows, kinds: Labels, rehearsed: float, held_back: Tensor, class_count: int
    ) -> Solution:
        n = int((kinds == 0).sum())
        weight = torch.zeros_like(rows.weight)
        for group, share in (
            (kinds == 0, 1 - self.caution),
            (kinds < 0, SWAPPED * self.caution),
            (kinds > 0, rehearsed * self.caution),
        ):
            weight[group] = share / max(1, int(group.sum()))
        if not bool(weight.sum() > 0):
            weight[kinds == 0] = 1.0  # nothing stands for shift
        weight = weight * (n / weight.sum())
        scale = max(HELD_BACK * n, LEAST_HELD_BACK)
        return solve(replace(rows, weight=weight), held_back * scale, CLASS_HELD_BACK, class_count)

    def _confidence(self, predictions: Predictions) -> PerSample:
        evidence = correctness_evidence(predictions, self.inverse.reciprocal())
        evidence = evidence[:, : self.weights.shape[0]]  # fitted without views: its own log-odds
        return (
            Solution(self.bias, self.weights, self.offsets)
            .logits(evidence, predictions.classes)
            .sigmoid()
        )


def _held_back(images: Predictions, labels: Labels) -> Tensor:
    """How much more than usual the weight of each column is held back."""
    views = images.view_logits
    if views is None:
        return torch.ones(1, dtype=torch.float64, device=labels.device)
    own = (images.classes == labels).double().mean()
    seen = (views.argmax(-1) == labels[:, None]).double().mean(0)
    pooled = torch.ones(4, dtype=torch.float64, device=labels.device)
    return torch.cat([pooled, 1 + (own - seen).clamp_min(0) / COSTLY])


def _take(rows: Rows, chosen: Tensor) -> Rows:
    return Rows(
        rows.evidence[chosen], rows.classes[chosen], rows.correct[chosen], rows.weight[chosen]
    )


def _loss(fitted: Solution, rows: Rows, chosen: Tensor) -> float:
    """Mean log loss on the chosen rows."""
    some = _take(rows, chosen)
    logits = fitted.logits(some.evidence, some.classes)
    return float(functional.binary_cross_entropy_with_logits(logits, some.correct.double()))


def _mean(values: Iterable[float]) -> float:
    kept = list(values)
    return sum(kept) / len(kept)
