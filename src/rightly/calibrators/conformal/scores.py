"""Scores of classes for prediction sets: the lower, the sooner a class is in the set.

`lac` is 1 - p (Sadinle et al., 2019), which gives the smallest sets on average. `aps` is the
probability of all classes above this one, and a random share of its own (Romano et al., 2020),
which gives sets as large as an image is hard. `raps` adds a penalty for each rank beyond the first
few (Angelopoulos et al., 2021), which keeps out long tails of unlikely classes.

The random share of an image is a function of its logits, so that a stored prediction, a graph and
a server draw the same. Coverage holds for whatever function of an image the score is: how random
the draw is decides only how even the sets are.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from rightly.calibrators.conformal.quantiles import find_quantile
from rightly.calibrators.solvers.execution import iterate_chunks
from rightly.checks import check_choice
from rightly.predictions.masking import MASKED
from rightly.tensor_shapes import Labels, Logits, PerSample

SET_SCORES = ("lac", "aps", "raps")
TURNS = 64.0  # of the draw for each e-fold of the gaps: many over images, few over rounding errors
GOLDEN = 0.6180339887498949  # its multiples modulo 1 lie evenly, so that no two classes weigh alike
TINY = 1e-30  # for rows whose logits are all equal
PENALTIES = (0.001, 0.01, 0.1, 0.2, 0.5)  # those that Angelopoulos et al. select from


class RankPenalty(NamedTuple):
    """What `raps` adds to the score of a class: `size` for each rank beyond `free_ranks`."""

    size: float
    free_ranks: int


def check_score(score: object, name: str = "score") -> None:
    """Validate the score name."""
    check_choice(name, score, SET_SCORES)


def draw_from_logits(logits: Logits) -> PerSample:
    """A number from 0 to 1 for each row, all but uniform over images.

    The fractional part of TURNS times the log of a weighted sum of the gaps below the largest
    logit: moving logits by one part in a million moves it by 1e-4, unlike a hash of their bits.
    """
    gaps = (logits.amax(-1, keepdim=True) - logits).double()
    gaps = torch.where(logits <= MASKED, torch.zeros_like(gaps), gaps)
    multiples = GOLDEN * torch.arange(
        1, logits.shape[-1] + 1, device=logits.device, dtype=torch.float64
    )
    weights = 1 + multiples - multiples.floor()
    turns = TURNS * (gaps * weights).sum(-1).clamp_min(TINY).log()
    return turns - turns.floor()


def score_classes(
    score: str, probabilities: Logits, logits: Logits, penalty: RankPenalty | None = None
) -> Logits:
    """A score for every class of every row, also in a graph being traced.

    In float32, so that sums that differ by the order of their terms are the same.
    """
    p = probabilities.double()
    if score == "lac":
        return (1 - p).float()
    if torch.compiler.is_exporting():  # ONNX's own sort, which is stable, but not by that name
        ordered, order = p.sort(dim=-1, descending=True)
    else:
        ordered, order = p.sort(dim=-1, descending=True, stable=True)
    # Less a share of the class itself, as much as the draw leaves.
    scores = ordered.cumsum(-1) - (1 - draw_from_logits(logits))[:, None] * ordered
    if score == "raps":
        assert penalty is not None
        ranks = torch.arange(1, p.shape[-1] + 1, device=p.device, dtype=torch.float64)
        scores = scores + penalty.size * (ranks - penalty.free_ranks).clamp_min(0)
    return torch.zeros_like(scores).scatter(-1, order, scores.clamp_min(0)).float()


def score_labels(
    score: str,
    probabilities: Logits,
    logits: Logits,
    labels: Labels,
    penalty: RankPenalty | None = None,
) -> PerSample:
    """The scores of the true classes."""
    parts = []
    for rows in iterate_chunks(logits):
        scores = score_classes(score, probabilities[rows], logits[rows], penalty)
        parts.append(scores.gather(1, labels[rows, None]).squeeze(1))
    return torch.cat(parts)


def select_penalty(
    probabilities: Logits, logits: Logits, labels: Labels, coverage: float
) -> RankPenalty:
    """The penalty of `raps`, on rows that no threshold is taken from (Angelopoulos et al., 2021).

    Ranks are free up to the one that so many true classes have; of the sizes, the one whose sets
    are smallest on these rows.
    """
    own = probabilities.gather(1, labels[:, None])
    ranks = 1 + (probabilities > own).sum(-1).double()
    free_ranks = int(find_quantile(ranks, coverage))

    def measure_size(size: float) -> float:
        penalty = RankPenalty(size, free_ranks)
        limit = find_quantile(
            score_labels("raps", probabilities, logits, labels, penalty), coverage
        )
        counts: list[Tensor] = [
            (score_classes("raps", probabilities[rows], logits[rows], penalty) <= limit).sum()
            for rows in iterate_chunks(logits)
        ]
        return float(sum(int(count) for count in counts) / len(labels))

    return RankPenalty(min(PENALTIES, key=measure_size), free_ranks)
