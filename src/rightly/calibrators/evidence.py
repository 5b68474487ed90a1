"""Evidence: functions from predictions to one row of numbers per sample, the input of a calibrator.

`EVIDENCE` lists those that can be named; `rightly.register(Evidence(...))` adds one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rightly.calibrators.solvers.execution import iterate_blocks, iterate_chunks
from rightly.calibrators.solvers.log_odds import (
    MAX_LOG_ODDS,
    compute_log_odds,
    compute_top_log_odds,
)
from rightly.predictions import Predictions
from rightly.predictions.masking import fill_masked
from rightly.registry import Registry
from rightly.tensor_shapes import Features, Logits, PerSample


@dataclass(frozen=True)
class Evidence:
    """A function from predictions to one row of numbers per sample, and what it needs."""

    name: str
    columns: Callable[..., Features]
    needs: tuple[str, ...] = ()  # fields of Predictions it cannot do without
    is_pointwise: bool = True  # False where it looks at the other samples of a batch

    def __call__(self, predictions: Predictions, **options: Any) -> Features:
        return self.columns(predictions, **options)


def top_logits(predictions: Predictions, k: int = 10) -> Features:
    """The classifier's own k largest logits, above their row's mean.

    Softmax does not see a constant added to a row, so evidence should not either.
    """
    logits = fill_masked(predictions.logits)
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
    m = views.shape[1]
    favoured = _favoured_classes(predictions, k)
    parts = []
    for rows in iterate_chunks(views.flatten(1)):
        columns = favoured[rows, None].expand(-1, m, -1)
        parts.append(views[rows].softmax(-1).gather(-1, columns))
    return torch.cat(parts).flatten(1).double()


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
    favoured = _favoured_classes(predictions, k)
    columns = favoured[:, None].expand(-1, neighbours, -1)
    return probabilities[near].gather(-1, columns).flatten(1).double()


def _favoured_classes(predictions: Predictions, k: int) -> Tensor:
    """The k classes of largest logits, the first of those that tie, and first the predicted one."""
    favoured = _top_classes(predictions.logits, min(k, predictions.class_count))
    predicted, first = predictions.classes[:, None], favoured[:, :1]
    others = torch.where(favoured[:, 1:] == predicted, first, favoured[:, 1:])
    return torch.cat([predicted, others], 1)


def _top_classes(logits: Logits, k: int) -> Tensor:
    """The k classes of largest logits, in order; of equal ones the first, as in ONNX."""
    if torch.compiler.is_exporting():
        return logits.topk(k).indices
    found = logits.topk(min(k + 1, logits.shape[1]))
    classes = found.indices[:, :k]
    tied = (found.values[:, 1:] == found.values[:, :-1]).any(-1).nonzero().squeeze(-1)
    if len(tied):
        classes[tied] = logits[tied].sort(dim=-1, descending=True, stable=True).indices[:, :k]
    return classes


def _nearest_others(points: Tensor, count: int) -> Tensor:
    """Row numbers of each point's nearest others, by cosine."""
    unit = points / points.norm(dim=-1, keepdim=True).clamp_min(1e-12)
    parts = []
    for rows in iterate_blocks(unit):
        cosine = unit[rows] @ unit.T
        # Below every cosine: a sample is not its own neighbour.
        cosine.diagonal(rows.start or 0).fill_(-2)
        parts.append(cosine.topk(count).indices)
    return torch.cat(parts)


def class_log_probabilities(
    predictions: Predictions, temperature: float | Tensor = 1.0
) -> Features:
    """Log-probabilities of every class: the image's, then the mean of its views' if any.

    For few classes: they are not worth a column each where there are hundreds.
    """
    # They tell which classes compete, and so what may have happened to an image: noise makes
    # other classes likely than blur does.
    image = _log_probabilities(predictions.logits, temperature)
    views = predictions.view_logits
    if views is None:
        return image
    return torch.cat([image, _log_probabilities(views, temperature).mean(1)], 1)


def _log_probabilities(logits: Tensor, temperature: float | Tensor) -> Tensor:
    return (logits.double() / temperature).log_softmax(-1).clamp_min(-MAX_LOG_ODDS)


class ViewLogOdds(NamedTuple):
    """Log-odds of classes in the image and in each view."""

    image: PerSample  # of the predicted class in the image
    same: Features  # of the predicted class in each view
    other: Features  # of the likeliest other class in each view
    likeliest: Features  # of the likeliest class in each view

    def take_views(self, views: Sequence[int]) -> "ViewLogOdds":
        """The same for a subset of the views, by number."""
        chosen = list(views)
        return ViewLogOdds(
            self.image, self.same[:, chosen], self.other[:, chosen], self.likeliest[:, chosen]
        )

    def evidence(self) -> Features:
        """The columns of `correctness_evidence`."""
        if not self.same.shape[1]:
            return self.image[:, None]
        view_std = (self.same - self.same.mean(-1, keepdim=True)).square().mean(-1).sqrt()
        pooled = [self.image, self.other.amax(-1), view_std, self.likeliest.amax(-1)]
        return torch.cat([torch.stack(pooled, 1), self.same], 1)


def correctness_evidence(
    predictions: Predictions,
    temperature: float | Tensor = 1.0,
    log_distance_ratio: PerSample | None = None,
) -> Features:
    """Log-odds for and against the predicted class, with any number of views.

    Columns, as named by `correctness_evidence_names`: `image`, the image's log-odds of the class
    it is predicted to have; then, where there are views, `max_other_class`, the largest log-odds
    that any view gives to another class; `view_std`, the standard deviation over views of the
    log-odds of the predicted class; `max_any_class`, the largest that any view gives to any class;
    and each view's log-odds of the predicted class. Where it is passed, `log_distance_ratio` of
    `Neighbours` is the second column.

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
    first = ("image", "log_distance_ratio") if log_distance_ratio else ("image",)
    pooled = ("max_other_class", "view_std", "max_any_class")
    return (*first, *pooled, *view_names) if view_names else first


def view_log_odds(predictions: Predictions, temperature: float | Tensor = 1.0) -> ViewLogOdds:
    """Log-odds of the predicted class, the likeliest other and the likeliest of all."""
    classes, views = predictions.classes, predictions.view_logits
    image = compute_top_log_odds(predictions.logits, classes, temperature)
    if views is None:
        empty = image[:, None][:, :0]
        return ViewLogOdds(image, empty, empty, empty)
    m = views.shape[1]
    repeated = classes[:, None].expand(-1, m).reshape(-1)
    each = compute_log_odds(views.flatten(0, 1), repeated, temperature).unflatten(0, (-1, m))
    same, other, likeliest = each.unbind(-1)
    return ViewLogOdds(image, same, other, likeliest)


def image_log_odds(predictions: Predictions) -> PerSample:
    """The classifier's own log-odds of the predicted class."""
    return view_log_odds(predictions.without_views()).image


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
