"""What a calibrator may look at. Evidence maps predictions to one row of numbers per sample."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from rightly.calibrators.solvers.margin_table import blocks, chunks
from rightly.predictions import Predictions
from rightly.registry import Registry
from rightly.tensor_shapes import Features, Labels, Logits, PerSample, Reference


@dataclass(frozen=True)
class Evidence:
    """A function from predictions to one row of numbers per sample, and what it needs."""

    name: str
    columns: Callable[..., Features]
    needs: tuple[str, ...] = ()  # fields of Predictions it cannot do without
    is_pointwise: bool = True  # False where it looks at the other samples of a batch

    def __call__(self, predictions: Predictions, **options: Any) -> Features:
        return self.columns(predictions, **options)


CERTAIN = 12.0  # log-odds of one error in 160,000: no calibration set can tell more
NEAREST = 3  # neighbours of a class whose mean distance counts
OUTSIDE = 4.0  # bound of the log of a ratio of distances: one class is 55 times as far


def top_logits(predictions: Predictions, k: int = 10) -> Features:
    """The classifier's own k largest logits, above their row's mean.

    Softmax does not see a constant added to a row, so evidence should not either.
    """
    logits = predictions.logits
    top = logits.topk(min(k, logits.shape[1])).values
    return (top - logits.mean(-1, keepdim=True)).double()


def view_scores(predictions: Predictions, k: int = 4) -> Features:
    """Every view's softmax scores for the k classes the original image favours (Eqs. 16-17)."""
    views = predictions.view_logits
    if views is None:
        raise ValueError(
            "view_logits are needed by view_scores, but these predictions have none: "
            "collect them with views=..., or use a method that needs no views"
        )
    n, m, _ = views.shape
    favoured = predictions.logits.topk(min(k, predictions.class_count)).indices
    scores = views.new_empty(n, m, favoured.shape[1])
    for view in range(m):
        for rows in chunks(predictions.logits):
            scores[rows, view] = views[rows, view].softmax(-1).gather(-1, favoured[rows])
    return scores.flatten(1).double()


def retrieved_scores(predictions: Predictions, k: int = 4, neighbours: int = 3) -> Features:
    """The nearest samples of the same batch stand in for the views (the paper's Sec. 3.3).

    Near in features where there are any, else in probabilities. This evidence looks at the whole
    batch: a sample's confidence then depends on its company, which no other evidence allows.
    """
    n = len(predictions)
    if n <= neighbours:
        raise ValueError(
            f"retrieved_scores needs more than {neighbours} samples in a batch to retrieve from, "
            f"got {n}"
        )
    probabilities = predictions.logits.softmax(-1)
    space = predictions.features if predictions.features is not None else probabilities
    near = _nearest_others(space, neighbours)
    favoured = predictions.logits.topk(min(k, predictions.class_count)).indices
    columns = favoured[:, None].expand(-1, neighbours, -1)
    return probabilities[near].gather(-1, columns).flatten(1).double()


def _nearest_others(points: Tensor, count: int) -> Tensor:
    """Row numbers of each point's nearest others, by cosine."""
    unit = points / points.norm(dim=-1, keepdim=True).clamp_min(1e-12)
    parts = []
    for start in range(0, len(unit), 4096):
        likeness = unit[start : start + 4096] @ unit.T
        likeness.diagonal(start).fill_(-2)  # below every cosine: a sample is not its own neighbour
        parts.append(likeness.topk(count).indices)
    return torch.cat(parts)


def class_evidence(predictions: Predictions, temperature: float | Tensor = 1.0) -> Features:
    """Log-probabilities of every class: the image's own, then the mean of its views' if any.

    They tell which classes compete, and so what may have happened to an image: noise makes
    other classes likely than blur does. For few classes; they are not worth a column each where
    there are hundreds.
    """
    own = _log_probabilities(predictions.logits, temperature)
    views = predictions.view_logits
    if views is None:
        return own
    total = torch.zeros_like(own)
    for view in range(views.shape[1]):
        total = total + _log_probabilities(views[:, view], temperature)
    return torch.cat([own, total / views.shape[1]], 1)


def _log_probabilities(logits: Logits, temperature: float | Tensor) -> Features:
    return (logits.double() / temperature).log_softmax(-1).clamp_min(-CERTAIN)


class ViewLogOdds(NamedTuple):
    """Log-odds that the image and each view give to classes, beside the predicted one."""

    own: PerSample  # the image's, of the predicted class
    same: Features  # each view's, of the predicted class
    other: Features  # each view's, of the likeliest other class
    likeliest: Features  # each view's, of its own likeliest class

    def only(self, views: Sequence[int]) -> "ViewLogOdds":
        """The same without the other views."""
        chosen = list(views)
        return ViewLogOdds(
            self.own, self.same[:, chosen], self.other[:, chosen], self.likeliest[:, chosen]
        )

    def evidence(self) -> Features:
        """One row of evidence per sample; see `correctness_evidence`."""
        if not self.same.shape[1]:
            return self.own[:, None]
        spread = (self.same - self.same.mean(-1, keepdim=True)).square().mean(-1).sqrt()
        pooled = [self.own, self.other.amax(-1), spread, self.likeliest.amax(-1)]
        return torch.cat([torch.stack(pooled, 1), self.same], 1)


class Neighbours(NamedTuple):
    """Samples whose true classes are known, to lie near to or far from."""

    features: Reference  # of unit length
    classes: Labels
    image: Labels | None = None  # numbers of the images they come from

    @staticmethod
    def of(features: Features, labels: Labels, image: Labels | None = None) -> "Neighbours":
        return Neighbours(functional.normalize(features.float(), dim=-1), labels, image)

    def log_distance_ratio(
        self, features: Features, classes: Labels, image: Labels | None = None
    ) -> PerSample:
        """Log of how much farther samples of other classes are than those of the given class.

        Cosine distances to the nearest ones. A sample from an image that is among the neighbours
        does not count that one: all samples of one image are near each other.
        """
        unit = functional.normalize(features.float(), dim=-1)
        parts = []
        for rows in blocks(unit):
            distance = (1 - unit[rows] @ self.features.T).clamp_min(1e-6)
            if image is not None and self.image is not None:
                itself = image[rows, None] == self.image
                distance = torch.where(itself, torch.inf, distance)
            same = self.classes == classes[rows, None]
            near, other = (
                _nearest_mean(torch.where(chosen, distance, torch.inf)) for chosen in (same, ~same)
            )
            parts.append((other.log() - near.log()).clamp(-OUTSIDE, OUTSIDE))
        return torch.cat(parts).double()


def _nearest_mean(distance: Tensor) -> PerSample:
    """Mean of the smallest distances; 2, the largest cosine distance, where there are too few."""
    nearest = distance.topk(min(NEAREST, distance.shape[1]), largest=False).values
    return nearest.clamp_max(2.0).mean(-1)


def correctness_evidence(
    predictions: Predictions,
    temperature: float | Tensor = 1.0,
    log_distance_ratio: PerSample | None = None,
) -> Features:
    """What speaks for and against the predicted class, in log-odds, with any number of views.

    Columns, as named by `correctness_evidence_names`: the classifier's own log-odds of the class
    it predicts; then, where there are views, the highest log-odds that any view gives to another
    class (one view that clearly sees something else says more than their average), the spread of
    the views' log-odds of the predicted class, the highest log-odds that any view gives to any
    class (how clear the image is at its best), and each view's log-odds of the predicted class.
    The second column, where it is given, is `Neighbours.log_distance_ratio`: whether the sample's features
    lie among those of its class.

    Logits are divided by the temperature first. Log-odds have no unit, so with a temperature in
    the unit of the logits the evidence does not depend on it; nor does a ratio of distances.
    """
    evidence = view_log_odds(predictions, temperature).evidence()
    if log_distance_ratio is None:
        return evidence
    return torch.cat([evidence[:, :1], log_distance_ratio[:, None], evidence[:, 1:]], 1)


def correctness_evidence_names(
    view_names: Sequence[str], log_distance_ratio: bool = False
) -> tuple[str, ...]:
    """The columns of `correctness_evidence` for these views, or with log_distance_ratio too."""
    first = ("own", "log_distance_ratio") if log_distance_ratio else ("own",)
    return (*first, "contrary", "spread", "clearest", *view_names) if view_names else first


def view_log_odds(predictions: Predictions, temperature: float | Tensor = 1.0) -> ViewLogOdds:
    """What the image and each of its views say, each in three numbers."""
    classes, views = predictions.classes, predictions.view_logits
    own = _log_odds(predictions.logits, classes, temperature)[:, 0]
    if views is None:
        nothing = own[:, None][:, :0]
        return ViewLogOdds(own, nothing, nothing, nothing)
    each = [_log_odds(views[:, i], classes, temperature) for i in range(views.shape[1])]
    same, other, likeliest = torch.stack(each, 2).unbind(1)
    return ViewLogOdds(own, same, other, likeliest)


def _log_odds(logits: Logits, classes: Labels, temperature: float | Tensor) -> Features:
    """Log-odds of the given classes, of the likeliest other class and of the likeliest of all."""
    parts = []
    for rows in chunks(logits):
        z, chosen = logits[rows].double() / temperature, classes[rows, None]
        two = z.topk(2)
        first, second = two.values.split(1, -1)
        other = torch.where(two.indices[:, :1] == chosen, second, first)
        log_p = torch.cat([z.gather(-1, chosen), other, first], 1) - z.logsumexp(-1, keepdim=True)
        # log(p / (1 - p)); kept off p = 1, which the bounds cut off anyway.
        odds = log_p - (-torch.expm1(log_p.clamp_max(-1e-9))).log()
        parts.append(odds.clamp(-CERTAIN, CERTAIN))
    return torch.cat(parts)


EVIDENCE: Registry[Evidence] = Registry(
    "evidence",
    Evidence,
    [
        Evidence("top_logits", top_logits),
        Evidence("view_scores", view_scores, needs=("view_logits",)),
        Evidence("retrieved_scores", retrieved_scores, is_pointwise=False),
        Evidence("correctness_evidence", correctness_evidence),
    ],
    group="rightly.evidence",
)
