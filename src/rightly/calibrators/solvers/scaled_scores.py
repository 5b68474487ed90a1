"""What losses see of temperature-scaled probabilities, without a softmax over the classes.

A sample's confidence, true-class probability and squared norm all follow from its margin, the
logit of its confidence, as a function of its inverse temperature (see `margin_table`).
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from rightly.calibrators.solvers.execution import Scratch, iterate_chunks
from rightly.calibrators.solvers.margin_table import (
    Table,
    TopTwo,
    log_sum,
    log_sum_others,
    tabulate,
    top_two,
)
from rightly.losses import Scores, label_shares
from rightly.tensor_shapes import Labels, Logits, PerClass, PerSample, PerSampleBool

FEW_CLASSES = 40  # up to here a sum over classes costs no more than a look into the table


@dataclass(frozen=True)
class ExactMargins:
    """logit(confidence) by summing over all classes; `Table` has the same interface."""

    logits: Logits
    leading: TopTwo

    def margin(self, log_inverse: PerSample) -> PerSample:
        inverse = log_inverse.exp()
        gap = (self.leading.top - self.leading.second).double()
        return inverse * gap - _LogSumOthers.apply(inverse, self.logits, self.leading)

    def take(self, rows: Tensor) -> "ExactMargins":
        return ExactMargins(self.logits[rows], self.leading.take(rows))


Margins = Table | ExactMargins


class _LogSumOthers(torch.autograd.Function):
    """L(b) of `margin_table`, chunk by chunk, so that no (n, c) array is kept."""

    @staticmethod
    def forward(ctx: Any, inverse: Tensor, logits: Tensor, leading: TopTwo) -> Tensor:
        values, slopes, scratch = [], [], Scratch()
        for rows in iterate_chunks(logits):
            b = inverse[rows].to(logits.dtype)
            value, slope = log_sum_others(logits[rows], leading.take(rows), b, scratch)
            values.append(value.double())
            slopes.append(slope.double())
        ctx.save_for_backward(torch.cat(slopes))
        return torch.cat(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (slope,) = ctx.saved_tensors
        return gradients[0] * slope, None, None


class _MeanSoftmax(torch.autograd.Function):
    """Mean over samples of softmax(b z), chunk by chunk, so that no (n, c) array is kept."""

    @staticmethod
    def forward(ctx: Any, inverse: Tensor, logits: Tensor) -> Tensor:
        ctx.save_for_backward(inverse, logits)
        total = torch.zeros(logits.shape[1], dtype=torch.float64, device=logits.device)
        for rows in iterate_chunks(logits):
            scaled = logits[rows] * inverse[rows, None].to(logits.dtype)
            total += scaled.softmax(-1).sum(0)
        return total / len(logits)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        inverse, logits = ctx.saved_tensors
        per_class = gradients[0].to(logits.dtype)
        parts = []
        for rows in iterate_chunks(logits):
            z = logits[rows]
            p = (z * inverse[rows, None].to(z.dtype)).softmax(-1)
            pz = p * z
            parts.append(pz @ per_class - pz.sum(-1) * (p @ per_class))
        return torch.cat(parts).double() / len(logits), None


@dataclass(frozen=True)
class CalibrationData:
    """Calibration data in the form that training reads over and over."""

    logits: Logits
    labels: Labels
    correct: PerSampleBool
    below_top: PerSample  # largest logit minus the true class's
    margins: Margins

    @classmethod
    def of(cls, logits: Logits, labels: Labels, low: float, high: float) -> "CalibrationData":
        """Prepared for inverse temperatures from low to high."""
        data = cls.exact(logits, labels)
        if logits.shape[1] <= FEW_CLASSES:
            return data
        return replace(data, margins=tabulate(logits, low, 2 * high))  # squared_norm looks at 2 b

    @classmethod
    def exact(cls, logits: Logits, labels: Labels) -> "CalibrationData":
        """Without a table: every look sums over all classes."""
        leading = top_two(logits)
        true = logits.gather(-1, labels[:, None]).squeeze(-1)
        below_top = (leading.top - true).double()
        margins = ExactMargins(logits, leading)
        return cls(logits, labels, leading.where == labels, below_top, margins)

    def take(self, rows: Tensor) -> "CalibrationData":
        """The same for a subset of the rows."""
        return CalibrationData(
            self.logits[rows],
            self.labels[rows],
            self.correct[rows],
            self.below_top[rows],
            self.margins.take(rows),
        )

    def scores(self, log_inverse: PerSample) -> "ScaledScores":
        return ScaledScores(self, log_inverse)


@dataclass(frozen=True)
class ScaledScores(Scores):
    """The scores of all rows, each at its inverse temperature (`rightly.losses.Scores`)."""

    data: CalibrationData
    log_inverse: PerSample

    @cached_property
    def _margin(self) -> PerSample:
        return self.data.margins.margin(self.log_inverse)

    @cached_property
    def correct(self) -> PerSampleBool:
        return self.data.correct

    @cached_property
    def confidence(self) -> PerSample:
        return self._margin.sigmoid()

    @cached_property
    def true_log_probability(self) -> PerSample:
        return -self.log_inverse.exp() * self.data.below_top - log_sum(self._margin)

    @cached_property
    def squared_norm(self) -> PerSample:
        doubled = self.data.margins.margin(self.log_inverse + math.log(2))
        return (log_sum(doubled) - 2 * log_sum(self._margin)).exp()

    @cached_property
    def class_gaps(self) -> PerClass:
        means = _MeanSoftmax.apply(self.log_inverse.exp(), self.data.logits)
        return means - label_shares(self.data.labels, self.data.logits.shape[1]).double()
