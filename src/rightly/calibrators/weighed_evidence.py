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

from dataclasses import dataclass, fields
from typing import final

import torch
from torch import Tensor
from torch.nn import functional

from rightly.calibrators.base import Calibrator
from rightly.calibrators.global_temperature import likeliest_inverse_temperature
from rightly.calibrators.logistic import Rows, Solution, solve
from rightly.calibrators.rehearsal import families, image_numbers, views_as_shifted
from rightly.calibrators.training import one_thread
from rightly.evidence import correctness_evidence, correctness_evidence_names
from rightly.predictions import Predictions
from rightly.shapes import Features, Labels, PerSample, PerSampleBool

HELD_BACK = 0.01  # of the mean loss, per squared weight of standardised evidence
LEAST_HELD_BACK = 10.0  # in samples' worth of loss: what a thousand samples come to
COSTLY = 0.02  # a view that costs this much accuracy is held back twice as much
OWN = 0.1  # its own log-odds are held back least: all there is where views say nothing
CLASS_HELD_BACK = 10.0  # offsets of a third of a logit are expected
SWAPPED = 1.0  # how much views as shifted images count beside the images, times caution
REHEARSED = (0.0, 0.5, 1.0, 2.0)  # the same for rehearsal; the calibration data choose
VIEW = -1  # kind of the rows that show a view instead of an image
JUDGES = 4  # for that choice every fourth image judges, with all its shifted copies


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

    def __init__(self, caution: float = 0.3) -> None:
        super().__init__()
        if not 0 <= caution <= 1:
            raise ValueError(f"caution must lie between 0, no shift expected, and 1, got {caution}")
        self.caution = caution

    def _fit(self, predictions: Predictions, labels: Labels) -> None:
        plain, device = predictions.unshifted(), labels.device
        images, truth = predictions[plain], labels[plain]
        inverse = likeliest_inverse_temperature(images.logits, truth)
        samples = _Samples.of(predictions, labels, 1 / inverse)
        problem = _Problem(self.caution, _held_back(images, truth), predictions.class_count)
        with one_thread():
            rehearsed = problem.best_rehearsed(samples)
            solution = problem.solved(samples, rehearsed)
        self.learn(
            inverse=torch.tensor(inverse, dtype=torch.float64, device=device),
            rehearsed=torch.tensor(rehearsed, dtype=torch.float64, device=device),
            bias=solution.bias.to(device),
            weights=solution.weights.to(device),
            offsets=solution.offsets.to(device),
        )

    def _confidence(self, predictions: Predictions) -> PerSample:
        evidence = correctness_evidence(predictions, self.inverse.reciprocal())
        evidence = evidence[:, : self.weights.shape[0]]  # fitted without views: its own log-odds
        solution = Solution(self.bias, self.weights, self.offsets)
        return solution.logits(evidence, predictions.classes).sigmoid()


@dataclass(frozen=True)
class _Samples:
    """Calibration rows, followed by the unshifted ones with views in the place of images.

    On the CPU, where sums over samples have one order: what is left of predictions is small.
    """

    evidence: Features
    classes: Labels
    correct: PerSampleBool
    kind: Labels  # 0: an image as it is; a number for a family of shifts; or a view instead
    image: Labels  # the same for all rows that come from one image

    @staticmethod
    def of(predictions: Predictions, labels: Labels, temperature: float) -> "_Samples":
        parts = [(predictions, labels, families(predictions), image_numbers(predictions))]
        if predictions.view_logits is not None:
            plain = predictions.unshifted()
            swapped, image = views_as_shifted(predictions[plain]), parts[0][3][plain]
            parts.append((swapped, labels[plain], torch.full_like(image, VIEW), image))
        columns = [
            [correctness_evidence(shown, temperature) for shown, _, _, _ in parts],
            [shown.classes for shown, _, _, _ in parts],
            [shown.classes == truth for shown, truth, _, _ in parts],
            [kind for _, _, kind, _ in parts],
            [image for _, _, _, image in parts],
        ]
        return _Samples(*(torch.cat(column).cpu() for column in columns))

    def take(self, rows: PerSampleBool) -> "_Samples":
        return _Samples(*(getattr(self, field.name)[rows] for field in fields(self)))


@dataclass(frozen=True)
class _Problem:
    """What is fitted, but for how much rehearsal counts."""

    caution: float
    held_back: Tensor  # how much more than usual the weight of each column is held back
    class_count: int

    def solved(self, samples: _Samples, rehearsed: float) -> Solution:
        kind = samples.kind
        n = int((kind == 0).sum())
        weight = torch.zeros(kind.shape[0], dtype=torch.float64)
        for group, share in (
            (kind == 0, 1 - self.caution),
            (kind == VIEW, SWAPPED * self.caution),
            (kind > 0, rehearsed * self.caution),
        ):
            weight[group] = share / max(1, int(group.sum()))
        if not bool(weight.sum() > 0):
            weight[kind == 0] = 1.0  # nothing stands for shift
        rows = Rows(samples.evidence, samples.classes, samples.correct, weight * (n / weight.sum()))
        scale = max(HELD_BACK * n, LEAST_HELD_BACK)
        return solve(rows, self.held_back * scale, CLASS_HELD_BACK, self.class_count)

    def best_rehearsed(self, samples: _Samples) -> float:
        """How much rehearsal should count, judged on families of shifts that were left out.

        Losses of the judging images as they are and under shift count as caution says.
        """
        kinds = [kind for kind in samples.kind.unique().tolist() if kind > 0]
        if len(kinds) < 2:
            return 1.0  # no family would be left to fit on
        judging = samples.image % JUDGES == JUDGES - 1
        fitted_on, judges = samples.take(~judging), samples.take(judging)
        losses = {}
        for rehearsed in REHEARSED:
            plain, shifted = [], []
            for kind in kinds:
                solution = self.solved(fitted_on.take(fitted_on.kind != kind), rehearsed)
                plain.append(_loss(solution, judges.take(judges.kind == 0)))
                shifted.append(_loss(solution, judges.take(judges.kind == kind)))
            losses[rehearsed] = (1 - self.caution) * sum(plain) + self.caution * sum(shifted)
        return min(losses, key=lambda rehearsed: losses[rehearsed])


def _loss(solution: Solution, samples: _Samples) -> float:
    """Mean log loss."""
    logits = solution.logits(samples.evidence, samples.classes)
    return float(functional.binary_cross_entropy_with_logits(logits, samples.correct.double()))


def _held_back(images: Predictions, labels: Labels) -> Tensor:
    """1 for most columns, less for its own log-odds, more for views that cost accuracy."""
    names = correctness_evidence_names(images.view_names)
    pooled = torch.ones(len(names) - len(images.view_names), dtype=torch.float64)
    pooled[0] = OWN
    if images.view_logits is None:
        return pooled
    own = (images.classes == labels).double().mean()
    seen = (images.view_logits.argmax(-1) == labels[:, None]).double().mean(0)
    return torch.cat([pooled, (1 + (own - seen).clamp_min(0) / COSTLY).cpu()])
