"""Prediction sets of a fitted calibrator, from scores of images that it was not fitted on."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, final

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from rightly.calibrators.conformal.held_out import (
    HEADER,
    HeldOutScores,
    check_header,
)
from rightly.calibrators.conformal.quantiles import (
    check_enough,
    coverage_interval,
    find_quantile,
    samples_needed,
)
from rightly.calibrators.conformal.scores import (
    RankPenalty,
    check_score,
    score_classes,
    score_labels,
    select_penalty,
)
from rightly.calibrators.solvers.execution import iterate_chunks
from rightly.calibrators.stored_tensors import check_stored
from rightly.checks import check_fraction
from rightly.predictions import Predictions, check_labels
from rightly.predictions.masking import MASKED
from rightly.predictions.rows import first_row_per_image
from rightly.shapes import AnyArray
from rightly.tensor_shapes import Logits, PerClass

if TYPE_CHECKING:
    from rightly.calibrators.base import Calibrator

PENALTY_SHARE = 0.2  # of the held-out images, from which `raps` takes its penalty

Sets = Bool[Tensor, "n c"]


class SetThresholds(NamedTuple):
    """The highest score that is in the set, by class; `marginal` classes have that of all."""

    values: PerClass
    marginal: int


@final
class ConformalSets(nn.Module):
    """The sets of classes that hold the true one of so many images, by scores of held-out ones.

    Coverage is guaranteed for images like the held-out ones. A set may be empty: with `lac` where
    no class is likely enough, with the others where the draw is low on the likeliest.
    """

    threshold: Tensor  # (c,): at the coverage and score that it was fitted for

    def __init__(
        self,
        held_out: HeldOutScores,
        class_count: int,
        *,
        coverage: float,
        score: str,
        class_conditional: bool,
        penalty: RankPenalty | None,
        mean_size: float = 0.0,
    ) -> None:
        super().__init__()
        self.held_out, self.class_count = held_out, class_count
        self.coverage, self.score = coverage, score
        self.class_conditional, self.penalty = class_conditional, penalty
        self.mean_size = mean_size  # on the held-out images
        thresholds = self.find_thresholds(coverage, score, class_conditional)
        self.register_buffer("threshold", thresholds.values)
        self.marginal = thresholds.marginal

    @classmethod
    @torch.no_grad()
    def fit(
        cls,
        calibrator: "Calibrator",
        held_out: Predictions,
        labels: AnyArray,
        *,
        coverage: float = 0.9,
        score: str = "lac",
        class_conditional: bool = False,
    ) -> "ConformalSets":
        """From images that the calibrator was not fitted on; shifted rows are left out.

        `raps` takes its penalty from a fifth of them, and its threshold from the others.
        """
        check_fraction("coverage", coverage)
        check_score(score)
        if not calibrator.is_pointwise:
            raise ValueError(
                f"{calibrator.title} depends on the whole batch, so its sets guarantee "
                "no coverage: choose a method that takes each sample alone"
            )
        if calibrator.is_adapted:
            raise ValueError(
                f"{calibrator.title} is adapted to a batch, so its sets guarantee no coverage: "
                "take the calibrator as it was fitted"
            )
        if not bool(held_out.unshifted().any()):
            raise ValueError("held_out must have unshifted rows, got shifted ones only: add images")
        images = first_row_per_image(held_out)
        rows, truth = held_out[images], check_labels(labels, held_out)[images]
        p, z, penalty = calibrator.probabilities(rows), rows.logits, None
        check_enough(len(truth), coverage, PENALTY_SHARE if score == "raps" else 1.0)
        if score == "raps":
            order = torch.randperm(len(truth), generator=torch.Generator().manual_seed(0))
            first, others = order.to(z.device).tensor_split([int(PENALTY_SHARE * len(truth))])
            penalty = select_penalty(p[first], z[first], truth[first], coverage)
            p, z, truth = p[others], z[others], truth[others]
        names = ["lac", "aps", *(["raps"] if penalty else [])]
        tensors = {name: score_labels(name, p, z, truth, penalty) for name in names}
        sets = cls(
            HeldOutScores({**tensors, "labels": truth}),
            p.shape[1],
            coverage=float(coverage),
            score=score,
            class_conditional=class_conditional,
            penalty=penalty,
        )
        sets.mean_size = float(sets.contains(p, z).sum(-1).double().mean())
        return sets

    @classmethod
    def from_saved(
        cls, header: Any, tensors: Mapping[str, Tensor], class_count: int
    ) -> "ConformalSets":
        """What `to_saved` gave, checked."""
        check_header(header, has_penalty="raps" in tensors)
        whole = nn.Module()  # so that an error calls its tensors sets.lac and so on
        whole.add_module("sets", held_out := HeldOutScores(tensors))
        check_stored(whole, class_count, None)
        if not len(held_out.labels) or int(held_out.labels.max()) >= class_count:
            raise ValueError(
                f"the tensor sets.labels must hold classes from 0 to {class_count - 1}"
            )
        penalty = header["penalty"] and RankPenalty(**header["penalty"])
        return cls(held_out, class_count, **{**header, "penalty": penalty})

    def to_saved(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Plain values for the header of a file, and tensors."""
        penalty = None if self.penalty is None else self.penalty._asdict()
        header = {name: getattr(self, name) for name in HEADER} | {"penalty": penalty}
        return header, dict(self.held_out.named_buffers())

    @property
    def samples(self) -> int:
        """Held-out images whose scores it has."""
        return len(self.held_out.labels)

    def find_thresholds(
        self, coverage: float, score: str, class_conditional: bool
    ) -> SetThresholds:
        """At any coverage; by class, where a class has enough images, else of all together."""
        check_fraction("coverage", coverage)
        check_score(score)
        check_enough(self.samples, coverage)
        scores, labels = getattr(self.held_out, score), self.held_out.labels
        if scores is None:
            raise ValueError(
                f"score must be one of those that were held out, lac or aps, got {score!r}: fit "
                f"again with set_score={score!r}"
            )
        values = find_quantile(scores, coverage).repeat(self.class_count)
        if not class_conditional:
            return SetThresholds(values, 0)
        counts = labels.bincount(minlength=self.class_count)
        has_own = counts >= samples_needed(coverage)
        for k in has_own.nonzero().squeeze(-1).tolist():
            values[k] = find_quantile(scores[labels == k], coverage)
        return SetThresholds(values, int((~has_own).sum()))

    def contains(
        self,
        probabilities: Logits,
        logits: Logits,
        threshold: PerClass | None = None,
        score: str | None = None,
    ) -> Sets:
        """Whether each class is in the set; masked classes never are. Also in a traced graph."""
        limit = (self.threshold if threshold is None else threshold).to(logits.device)
        parts = []
        for rows in iterate_chunks(logits):
            scores = score_classes(
                score or self.score, probabilities[rows], logits[rows], self.penalty
            )
            parts.append((scores <= limit) & (logits[rows] > MASKED))
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def find(
        self,
        probabilities: Logits,
        logits: Logits,
        coverage: float | None = None,
        score: str | None = None,
    ) -> Sets:
        """Which classes are in each set, at another coverage or score if one is given."""
        score = self.score if score is None else score
        at = self.coverage if coverage is None else coverage
        limits = self.find_thresholds(at, score, self.class_conditional)
        return self.contains(probabilities, logits, limits.values, score)

    def coverage_interval(self) -> tuple[float, float] | None:
        """Where the coverage lies with probability 0.95; None where thresholds go by class."""
        return None if self.class_conditional else coverage_interval(self.samples, self.coverage)

    def describe(self) -> dict[str, Any]:
        """Plain values: nominal coverage, number of held-out images, and mean size on them."""
        interval = self.coverage_interval()
        return self.to_saved()[0] | {
            "samples": self.samples,
            "coverage_interval": None if interval is None else list(interval),
            "marginal_classes": self.marginal,
        }
