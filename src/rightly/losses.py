"""Losses that calibrators minimise: functions of (scaled logits, labels) to a scalar.

Each loss is written once, on `Scores`, the quantities of scaled probabilities that losses need.
Called on logits, `loss(logits, labels)` computes those scores exactly; a calibrator in training
hands in scores that it reads from a table instead (`loss.of(scores)`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from rightly.registry import unknown_name
from rightly.tensor_shapes import Labels, Logits, PerClass, PerSample, PerSampleBool, Scalar


class Scores(ABC):
    """What losses need of probabilities after scaling."""

    @property
    @abstractmethod
    def correct(self) -> PerSampleBool: ...

    @property
    @abstractmethod
    def confidence(self) -> PerSample:
        """Probability of the predicted class."""

    @property
    @abstractmethod
    def true_log_probability(self) -> PerSample: ...

    @property
    @abstractmethod
    def squared_norm(self) -> PerSample:
        """Sum over classes of the squared probabilities."""

    @property
    @abstractmethod
    def class_gaps(self) -> PerClass:
        """Mean probability of each class minus its share of the labels."""


@dataclass(frozen=True)
class ExactScores(Scores):
    """Scores straight from logits; the predicted class is their argmax."""

    logits: Logits
    labels: Labels

    @cached_property
    def _log_probabilities(self) -> Logits:
        return self.logits.log_softmax(-1)

    @cached_property
    def correct(self) -> PerSampleBool:
        return self.logits.argmax(-1) == self.labels

    @cached_property
    def confidence(self) -> PerSample:
        return self._log_probabilities.amax(-1).exp()

    @cached_property
    def true_log_probability(self) -> PerSample:
        return self._log_probabilities.gather(-1, self.labels[:, None]).squeeze(-1)

    @cached_property
    def squared_norm(self) -> PerSample:
        return self._log_probabilities.exp().square().sum(-1)

    @cached_property
    def class_gaps(self) -> PerClass:
        return self._log_probabilities.exp().mean(0) - label_shares(
            self.labels, self.logits.shape[1]
        ).to(self.logits.dtype)


def label_shares(labels: Labels, class_count: int) -> PerClass:
    """Share of each class among the labels."""
    return torch.bincount(labels, minlength=class_count) / len(labels)


@dataclass(frozen=True)
class Loss:
    """A loss of scores, also callable on logits; losses add up with +."""

    of: Callable[..., Scalar]
    name: str

    def __call__(self, logits: Logits, labels: Labels, **options: Any) -> Scalar:
        return self.of(ExactScores(logits, labels), **options)

    def __add__(self, other: "Loss") -> "Loss":
        return Loss(lambda scores: self.of(scores) + other.of(scores), f"{self.name}+{other.name}")


def _loss(of: Callable[..., Scalar]) -> Loss:
    return Loss(of, of.__name__)


@_loss
def correctness_aware(scores: Scores, norm: str = "l2") -> Scalar:
    """Distance between confidence and correctness, squared by default (the paper's Eq. 7)."""
    gap = scores.confidence - scores.correct.to(scores.confidence.dtype)
    if norm == "l2":
        return gap.square().mean()
    if norm == "l1":
        return gap.abs().mean()
    raise ValueError(f"norm must be 'l2' or 'l1', got {norm!r}")


@_loss
def balanced_correctness_aware(scores: Scores) -> Scalar:
    """The released code's form: right and wrong samples weigh the same, however many they are."""
    right = scores.correct.to(scores.confidence.dtype)
    wrong = 1 - right
    # A side without samples counts 0: dividing by 1 keeps its zero a zero.
    on_right = (right * (1 - scores.confidence).square()).sum() / right.sum().clamp_min(1)
    on_wrong = (wrong * scores.confidence.square()).sum() / wrong.sum().clamp_min(1)
    return (on_right + on_wrong) / 2


@_loss
def cross_entropy(scores: Scores) -> Scalar:
    """Negative log-likelihood of the true class."""
    return -scores.true_log_probability.mean()


@_loss
def squared_error(scores: Scores) -> Scalar:
    """Squared gap between all class probabilities and the one-hot label, summed over classes."""
    return (scores.squared_norm - 2 * scores.true_log_probability.exp() + 1).mean()


@_loss
def dca(scores: Scores, weight: float = 1.0) -> Scalar:
    """Cross-entropy plus |mean confidence - accuracy| (Liang et al., 2020)."""
    gap = scores.confidence.mean() - scores.correct.to(scores.confidence.dtype).mean()
    return cross_entropy.of(scores) + weight * gap.abs()


@_loss
def mdca(scores: Scores, weight: float = 1.0) -> Scalar:
    """Cross-entropy plus the mean over classes of |mean probability - share of labels|
    (Hebbalaguppe et al., 2022)."""
    return cross_entropy.of(scores) + weight * scores.class_gaps.abs().mean()


LOSSES: dict[str, Loss] = {
    "correctness_aware": correctness_aware,
    "balanced_correctness_aware": balanced_correctness_aware,
    "cross_entropy": cross_entropy,
    "squared_error": squared_error,
    "dca": dca,
    "mdca": mdca,
}


def loss(name: str) -> Loss:
    """The loss of this name; names joined by + are summed."""
    unknown = [part for part in name.split("+") if part not in LOSSES]
    if unknown:
        raise unknown_name("loss", unknown[0], LOSSES, listed="rightly.losses.LOSSES")
    first, *others = (LOSSES[part] for part in name.split("+"))
    for other in others:
        first = first + other
    return first
