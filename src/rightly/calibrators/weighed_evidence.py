"""Rightly's own: evidence of correctness, weighed for images like these and for shifted ones.

The probability that a prediction is right is logistic in `correctness_evidence` and an offset for
the predicted class. That is as accurate in distribution as anything more flexible that was tried,
and lasts better under shifts that were never seen (docs/findings.md). Four things make it last:

- Weights are held back, so that views which say the same share what they know. A view that costs
  the classifier accuracy is held back more: it moves images off the data the classifier knows,
  and what it says there differs from shift to shift.
- Views stand in for shifted images, in exchange with the image itself.
- Rehearsal: rows of the calibration data that show images under synthetic shifts stand in instead
  where there are any. How much they count is chosen by leaving out some kinds of shifts.
- Hidden units: what evidence means depends on what happened to the image, and rows of several
  kinds of shifts show enough of that to weigh curved functions of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, final

import torch
from torch import Tensor
from torch.nn import functional

from rightly.calibrators.base import Calibrator
from rightly.calibrators.global_temperature import likeliest_inverse_temperature
from rightly.calibrators.hidden_units import HiddenUnits
from rightly.calibrators.logistic import Rows, Solution, solve
from rightly.calibrators.rehearsal import image_numbers, shift_kinds, views_as_shifted
from rightly.calibrators.training import one_thread
from rightly.evidence import class_evidence, correctness_evidence, correctness_evidence_names
from rightly.predictions import Predictions
from rightly.shapes import Features, Labels, PerSample, PerSampleBool

HELD_BACK = 0.01  # of the mean loss, per squared weight of standardised evidence
LEAST_HELD_BACK = 10.0  # in samples' worth of loss: what a thousand samples come to
COSTLY = 0.02  # a view that costs this much accuracy is held back twice as much
OWN = 0.1  # its own log-odds are held back least: all there is where views say nothing
CLASS_HELD_BACK = 10.0  # offsets of a third of a logit are expected
UNITS = 256
UNIT_HELD_BACK = 500.0  # in samples' worth of loss
FEW_KINDS = 4  # of shifts: fewer teach hidden units those alone
FEW_CLASSES = 32  # up to here hidden units see every class
SWAPPED = 3 / 7  # how much views as shifted images count beside the images, at caution 1/2
REHEARSED = (0.1, 0.2, 0.3)  # the same for rehearsal; the calibration data choose
VIEW = -1  # kind of the rows that show a view instead of an image
JUDGES = 4  # for that choice every fourth image judges, with all its shifted copies
JUDGED = 30_000  # rows are enough for it
GROUPS = 5  # kinds of shifts are left out in as many groups at most


class _Way(NamedTuple):
    """What stands for shifted images, and what is fitted on it."""

    rehearsed: float  # how much rehearsal rows count; at 0 views stand in instead
    curved: bool  # with hidden units


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
    centre: Tensor
    spread: Tensor
    directions: Tensor
    starts: Tensor

    def __init__(self, caution: float = 0.5) -> None:
        super().__init__()
        if not 0 <= caution <= 1:
            raise ValueError(f"caution must lie between 0, no shift expected, and 1, got {caution}")
        self.caution = caution

    def _fit(self, predictions: Predictions, labels: Labels) -> None:
        plain, device = predictions.unshifted(), labels.device
        images, truth = predictions[plain], labels[plain]
        inverse = likeliest_inverse_temperature(images.logits, truth)
        samples = _Samples.of(predictions, labels, 1 / inverse)
        units = HiddenUnits.drawn(samples.columns[samples.kind == 0], UNITS)
        held_back = _held_back(images, truth)
        problem = _Problem(self.caution, held_back, units, predictions.class_count)
        with one_thread():
            way = problem.best_way(samples)
            solution = problem.solved(samples, way)
        kept = slice(None) if way.curved else slice(0)
        self.learn(
            inverse=torch.tensor(inverse, dtype=torch.float64, device=device),
            rehearsed=torch.tensor(way.rehearsed, dtype=torch.float64, device=device),
            bias=solution.bias.to(device),
            weights=solution.weights.to(device),
            offsets=solution.offsets.to(device),
            centre=units.centre[kept].to(device),
            spread=units.spread[kept].to(device),
            directions=units.directions[kept].to(device),
            starts=units.starts[kept].to(device),
        )

    def _confidence(self, predictions: Predictions) -> PerSample:
        temperature, width = self.inverse.reciprocal(), self.directions.shape[0]
        if width:
            columns = _columns(predictions, temperature)
            if columns.shape[1] != width:  # fitted without views, it can make nothing of them
                columns = _columns(Predictions.unchecked(predictions.logits), temperature)
            units = HiddenUnits(self.centre, self.spread, self.directions, self.starts)
            evidence = units(columns)
        else:
            evidence = correctness_evidence(predictions, temperature)
            evidence = evidence[:, : self.weights.shape[0]]  # without views: its own log-odds
        solution = Solution(self.bias, self.weights, self.offsets)
        return solution.logits(evidence, predictions.classes).sigmoid()


def _columns(predictions: Predictions, temperature: float | Tensor) -> Features:
    """All that hidden units see; evidence of correctness comes first."""
    evidence = correctness_evidence(predictions, temperature)
    if predictions.class_count > FEW_CLASSES:
        return evidence
    return torch.cat([evidence, class_evidence(predictions, temperature)], 1)


@dataclass(frozen=True)
class _Samples:
    """Calibration rows, followed by the unshifted ones with views in the place of images.

    On the CPU, where sums over samples have one order: what is left of predictions is small.
    """

    columns: Features
    classes: Labels
    correct: PerSampleBool
    kind: Labels  # 0: an image as it is; a number for a kind of shift; or a view instead
    image: Labels  # the same for all rows that come from one image

    @staticmethod
    def of(predictions: Predictions, labels: Labels, temperature: float) -> "_Samples":
        parts = [(predictions, labels, shift_kinds(predictions), image_numbers(predictions))]
        if predictions.view_logits is not None:
            plain = predictions.unshifted()
            swapped, image = views_as_shifted(predictions[plain]), parts[0][3][plain]
            parts.append((swapped, labels[plain], torch.full_like(image, VIEW), image))
        columns = [
            [_columns(shown, temperature) for shown, _, _, _ in parts],
            [shown.classes for shown, _, _, _ in parts],
            [shown.classes == truth for shown, truth, _, _ in parts],
            [kind for _, _, kind, _ in parts],
            [image for _, _, _, image in parts],
        ]
        return _Samples(*(torch.cat(column).cpu() for column in columns))

    def take(self, rows: PerSampleBool) -> "_Samples":
        return _Samples(*(getattr(self, field.name)[rows] for field in fields(self)))

    def thinned(self, most: int) -> "_Samples":
        """About that many rows, in groups of images that judge and are fitted on together."""
        every = -(-self.kind.shape[0] // most)
        return self if every == 1 else self.take(self.image // JUDGES % every == 0)


@dataclass(frozen=True)
class _Problem:
    """What is fitted, but for the way."""

    caution: float
    held_back: Tensor  # how much more than usual the weight of each column is held back
    units: HiddenUnits
    class_count: int

    def solved(self, samples: _Samples, way: _Way) -> Solution:
        kind = samples.kind
        n = int((kind == 0).sum())
        weight = torch.zeros(kind.shape[0], dtype=torch.float64)
        for group, share in (
            (kind == 0, 1 - self.caution),
            (kind == VIEW, 0.0 if way.rehearsed else SWAPPED * self.caution),
            (kind > 0, way.rehearsed * self.caution),
        ):
            weight[group] = share / max(1, int(group.sum()))
        if not bool(weight.sum() > 0):
            weight[kind == 0] = 1.0  # nothing stands for shift
        used = weight > 0
        seen = self.seen(samples.columns[used], way)
        weight = weight[used] * (n / weight.sum())
        rows = Rows(seen, samples.classes[used], samples.correct[used], weight)
        held_back = self.held_back * max(HELD_BACK * n, LEAST_HELD_BACK)
        if way.curved:
            more = torch.full((seen.shape[1] - held_back.shape[0],), UNIT_HELD_BACK)
            held_back = torch.cat([held_back, more.double()])
        return solve(rows, held_back, CLASS_HELD_BACK, self.class_count)

    def seen(self, columns: Features, way: _Way) -> Tensor:
        """The columns that are weighed that way: fewer, or with hidden units more."""
        return self.units(columns) if way.curved else columns[:, : self.held_back.shape[0]]

    def best_way(self, samples: _Samples) -> _Way:
        """What to fit, judged on kinds of shifts that were left out."""
        kinds = [kind for kind in samples.kind.unique().tolist() if kind > 0]
        if len(kinds) < 2:  # no kind would be left to fit on
            return _Way(REHEARSED[-1] if kinds else 0.0, curved=False)
        samples = samples.thinned(JUDGED)
        groups = [kinds[first::GROUPS] for first in range(min(GROUPS, len(kinds)))]
        # Straight ones are enough to judge by, and take a small part of the time.
        losses = [self._judged(samples, groups, _Way(share, curved=False)) for share in REHEARSED]
        plain, shifted = zip(*losses, strict=True)
        # Both as shares of the least there is: shifted images, with larger losses, get no more say.
        total = [
            (1 - self.caution) * a / min(plain) + self.caution * b / min(shifted) for a, b in losses
        ]
        return _Way(REHEARSED[total.index(min(total))], curved=len(kinds) >= FEW_KINDS)

    def _judged(
        self, samples: _Samples, groups: Sequence[Sequence[int]], way: _Way
    ) -> tuple[float, float]:
        """Mean log loss of judging images as they are, and under shifts that were left out."""
        judging = samples.image % JUDGES == JUDGES - 1
        fitted_on, judges = samples.take(~judging), samples.take(judging)
        plain, shifted = 0.0, 0.0
        for group in groups:
            left_out = torch.tensor(group)
            solution = self.solved(fitted_on.take(~torch.isin(fitted_on.kind, left_out)), way)
            plain += self._loss(solution, judges.take(judges.kind == 0), way)
            shifted += self._loss(solution, judges.take(torch.isin(judges.kind, left_out)), way)
        return plain / len(groups), shifted / len(groups)

    def _loss(self, solution: Solution, samples: _Samples, way: _Way) -> float:
        logits = solution.logits(self.seen(samples.columns, way), samples.classes)
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
