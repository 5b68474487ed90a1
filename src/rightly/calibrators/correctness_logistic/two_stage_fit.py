"""How evidence of correctness is weighed: the rows, what each counts, and the fit.

Weights come first, from much shift; then a slope and a bias for the whole, from as much of it as
an allowance permits: in distribution, confidence may fall so far short of accuracy.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor
from torch.nn import functional

from rightly.calibrators.correctness_logistic.pseudo_shifted import pseudo_shifted
from rightly.calibrators.correctness_logistic.random_features import RandomFeatures
from rightly.calibrators.evidence import (
    Neighbours,
    class_evidence,
    correctness_evidence,
    correctness_evidence_names,
)
from rightly.calibrators.solvers.ridge_logistic import (
    Line,
    Rows,
    Solution,
    fit_platt,
    fit_ridge_logistic,
)
from rightly.predictions import Predictions
from rightly.tensor_shapes import Features, Labels, PerSample, PerSampleBool

HELD_BACK = 0.01  # of the mean loss, per squared weight of standardised evidence
REHEARSED_HELD_BACK = 0.1  # times that: rehearsal shows what lasts
LEAST_HELD_BACK = 10.0  # in samples' worth of loss: what a thousand samples come to
COSTLY = 0.02  # a view that costs this much accuracy is held back twice as much
OWN = 0.1  # its own log-odds are held back least: all there is where views say nothing
CLASS_HELD_BACK = 10.0  # offsets of a third of a logit are expected
UNIT_HELD_BACK = 500.0  # in samples' worth of loss
FEW_CLASSES = 32  # up to here hidden units see every class
# How much shifted rows count beside the images, at expected_shift 1/2. For weights:
VIEWS_WEIGH = 0.3
KIND_WEIGHS = 0.1  # each kind of shift in rehearsal
KINDS_WEIGH = (0.15, 0.25)  # all of them at most: the calibration data choose
# For slope and bias, as much as lets mean confidence fall short of accuracy by no more than:
VIEWS_COST = 0.005  # where there is no rehearsal
REHEARSAL_COST = 0.016
OFTEN = 0.1  # for classifiers that err less often than this, in proportion
HALVINGS = 10
VIEW = -1  # kind of the rows that show a view instead of an image
JUDGES = 4  # of KINDS_WEIGH: every fourth image judges, with all its shifted copies
JUDGED = 30_000  # rows are enough for it
GROUPS = 5  # kinds of shifts are left out in as many groups at most


def columns_of(
    predictions: Predictions,
    temperature: float | Tensor,
    log_distance_ratio: PerSample | None,
) -> Features:
    """All that hidden units see; evidence of correctness comes first."""
    evidence = correctness_evidence(predictions, temperature, log_distance_ratio)
    if predictions.class_count > FEW_CLASSES:
        return evidence
    return torch.cat([evidence, class_evidence(predictions, temperature)], 1)


@dataclass(frozen=True)
class Samples:
    """Calibration rows, followed by the unshifted ones with views in the place of images.

    On the CPU, where sums over samples have one order: what is left of predictions is small.
    """

    columns: Features
    classes: Labels
    correct: PerSampleBool
    kind: Labels  # 0: an image as it is; a number for a kind of shift; or a view instead
    image: Labels  # 0..k-1, the same for all rows that come from one image

    @staticmethod
    def of(
        predictions: Predictions, labels: Labels, temperature: float, neighbours: Neighbours | None
    ) -> "Samples":
        kind, image = predictions.shift_kinds(), predictions.image_ranks()
        log_distance_ratio = None
        if neighbours is not None:
            assert predictions.features is not None
            log_distance_ratio = neighbours.log_distance_ratio(
                predictions.features, predictions.classes, image
            )
        parts = [(predictions, labels, kind, image, log_distance_ratio)]
        if predictions.view_logits is not None:
            plain = predictions.unshifted()
            shifted = pseudo_shifted(predictions[plain], labels[plain])
            kind = torch.full_like(image[plain], VIEW)
            # Features of views are not known: what the image lies among goes for them too.
            near = None if log_distance_ratio is None else log_distance_ratio[plain]
            parts.append((shifted, labels[plain], kind, image[plain], near))
        columns = [
            [columns_of(shown, temperature, near) for shown, _, _, _, near in parts],
            [shown.classes for shown, *_ in parts],
            [shown.classes == truth for shown, truth, *_ in parts],
            [kind for _, _, kind, _, _ in parts],
            [image for _, _, _, image, _ in parts],
        ]
        return Samples(*(torch.cat(column).cpu() for column in columns))

    def kinds(self) -> list[int]:
        """The kinds of shifts in rehearsal."""
        return [kind for kind in self.kind.unique().tolist() if kind > 0]

    def take(self, rows: PerSampleBool) -> "Samples":
        return Samples(*(getattr(self, field.name)[rows] for field in fields(self)))

    def thinned(self, most: int) -> "Samples":
        """About that many rows, in groups of images that judge and are fitted on together."""
        every = -(-self.kind.shape[0] // most)
        return self if every == 1 else self.take(self.image // JUDGES % every == 0)


@dataclass(frozen=True)
class TwoStageFit:
    """What is fitted: weights, then slope and bias; curved with hidden units, else without."""

    expected_shift: float
    held_back: Tensor  # how much more than usual the weight of each column is held back
    units: RandomFeatures
    class_count: int

    def fitted(self, samples: Samples, share: float, curved: bool) -> Solution:
        """Weights with rehearsal at that share, then slope and bias."""
        seen = self.seen(samples.columns, curved)
        solution = self._weighed(samples, seen, share)
        score = solution.logits(seen, samples.classes)
        return solution.along(self._levelled(samples, score))

    def _weighed(self, samples: Samples, seen: Tensor, share: float) -> Solution:
        rehearsed = min(share, KIND_WEIGHS * len(samples.kinds()))
        weight = self._counted(samples, VIEWS_WEIGH, rehearsed)
        used = weight > 0
        rows = Rows(seen[used], samples.classes[used], samples.correct[used], weight[used])
        n = int((samples.kind == 0).sum())
        held_back = self.held_back * max(HELD_BACK * n, LEAST_HELD_BACK)
        if rehearsed:
            held_back = held_back * REHEARSED_HELD_BACK
        units = torch.full((seen.shape[1] - held_back.shape[0],), UNIT_HELD_BACK)
        held_back = torch.cat([held_back, units.double()])
        return fit_ridge_logistic(rows, held_back, CLASS_HELD_BACK, self.class_count)

    def _levelled(self, samples: Samples, score: PerSample) -> Line:
        """Slope and bias from images and as many shifted ones as may be."""
        rehearsed, even = bool(samples.kinds()), replace(self, expected_shift=0.5)
        plain = samples.kind == 0
        accuracy = float(samples.correct[plain].double().mean())
        allowed = (REHEARSAL_COST if rehearsed else VIEWS_COST) * min(1.0, (1 - accuracy) / OFTEN)

        def at(problem: TwoStageFit, level: float) -> Line:
            shares = (0.0, level) if rehearsed else (level, 0.0)
            return fit_platt(score, samples.correct, problem._counted(samples, *shares))

        def costs(level: float) -> bool:
            confidence = at(even, level)(score[plain]).sigmoid().mean()
            return bool(accuracy - confidence > allowed)

        low, high = 0.0, 1.0
        for _ in range(HALVINGS if costs(high) else 0):
            middle = (low + high) / 2
            low, high = (low, middle) if costs(middle) else (middle, high)
        return at(self, high)

    def _counted(self, samples: Samples, views: float, rehearsed: float) -> PerSample:
        """How much each sample counts, shifted ones so much beside the images.

        The weights sum up to the number of images.
        """
        kind = samples.kind
        weight = torch.zeros(kind.shape[0], dtype=torch.float64)
        for group, share in (
            (kind == 0, 1 - self.expected_shift),
            (kind == VIEW, views * self.expected_shift),
            (kind > 0, rehearsed * self.expected_shift),
        ):
            weight[group] = share / max(1, int(group.sum()))
        if not bool(weight.sum() > 0):
            weight[kind == 0] = 1.0  # nothing stands for shift
        return weight * ((kind == 0).sum() / weight.sum())

    def seen(self, columns: Features, curved: bool) -> Tensor:
        """The columns that are weighed: fewer, or with hidden units more."""
        return self.units(columns) if curved else columns[:, : self.held_back.shape[0]]

    def best_share(self, samples: Samples) -> float:
        """How much rehearsal counts for weights, judged on kinds that were left out."""
        kinds = samples.kinds()
        if len(kinds) < 2:  # no kind would be left to fit on
            return KINDS_WEIGH[0] if kinds else 0.0
        samples = samples.thinned(JUDGED)
        groups = [kinds[first::GROUPS] for first in range(min(GROUPS, len(kinds)))]
        plain, shifted = self._judged(samples, groups)
        # Both as shares of the least there is: shifted images, with larger losses, get no more say.
        total = (
            1 - self.expected_shift
        ) * plain / plain.min() + self.expected_shift * shifted / shifted.min()
        return KINDS_WEIGH[int(total.argmin())]

    def _judged(self, samples: Samples, groups: Sequence[Sequence[int]]) -> Tensor:
        """Mean log loss of judging images as they are, and under shifts left out, at each share.

        Straight fits are enough to judge by, and take a small part of the time.
        """
        judging = samples.image % JUDGES == JUDGES - 1
        fitted_on, judges = samples.take(~judging), samples.take(judging)
        losses = torch.zeros(2, len(KINDS_WEIGH), dtype=torch.float64)
        for group in groups:
            left_out = torch.tensor(group)
            some = fitted_on.take(~torch.isin(fitted_on.kind, left_out))
            plain, shifted = judges.kind == 0, torch.isin(judges.kind, left_out)
            for i, share in enumerate(KINDS_WEIGH):
                solution = self.fitted(some, share, curved=False)
                losses[0, i] += self._loss(solution, judges.take(plain))
                losses[1, i] += self._loss(solution, judges.take(shifted))
        return losses / len(groups)

    def _loss(self, solution: Solution, samples: Samples) -> float:
        logits = solution.logits(self.seen(samples.columns, curved=False), samples.classes)
        return float(functional.binary_cross_entropy_with_logits(logits, samples.correct.double()))


def held_back_of(images: Predictions, labels: Labels, neighbours: bool) -> Tensor:
    """1 for most columns, less for its own log-odds, more for views that cost accuracy."""
    names = correctness_evidence_names(images.view_names, neighbours)
    pooled = torch.ones(len(names) - len(images.view_names), dtype=torch.float64)
    pooled[0] = OWN
    if images.view_logits is None:
        return pooled
    own = (images.classes == labels).double().mean()
    seen = (images.view_logits.argmax(-1) == labels[:, None]).double().mean(0)
    return torch.cat([pooled, (1 + (own - seen).clamp_min(0) / COSTLY).cpu()])
