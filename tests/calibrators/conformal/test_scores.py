"""Scores of classes, against loops over single classes written from the papers."""

import math

import pytest
import torch
from scipy.stats import kstest

from rightly.calibrators.conformal.scores import (
    PENALTIES,
    RankPenalty,
    draw_from_logits,
    score_classes,
    select_penalty,
)
from tests.calibrators.samples import draw_labels, draw_logits


def reference_score(score, p, u, k, penalty):
    """Of class k of one sample, as Sadinle, Romano and Angelopoulos define it."""
    if score == "lac":
        return 1 - p[k]
    above = [j for j in range(len(p)) if p[j] > p[k] or (p[j] == p[k] and j < k)]
    value = math.fsum(p[j] for j in above) + u * p[k]
    if score == "raps":
        value += penalty.size * max(0, len(above) + 1 - penalty.free_ranks)
    return value


@pytest.mark.parametrize("score", ["lac", "aps", "raps"])
def test_scores_are_those_of_the_papers(score):
    logits = draw_logits(40, 6)
    logits[0] = 1.0  # all tied
    logits[1, :3] = logits[1, 3]
    p, u = logits.softmax(-1), draw_from_logits(logits)
    penalty = RankPenalty(0.1, 2)
    expected = [
        [reference_score(score, row.tolist(), float(draw), k, penalty) for k in range(len(row))]
        for row, draw in zip(p, u, strict=True)
    ]
    scores = score_classes(score, p, logits, penalty)
    assert scores.dtype == torch.float32
    assert torch.allclose(scores.double(), torch.tensor(expected).double(), atol=1e-6)


def test_sums_that_should_be_one_are_one():
    """Classes of probability 0 tie: no rounding of a sum may let some of them in, not others."""
    logits = 3 * draw_logits(50, 400)
    logits[:, 200:] = -1e6
    assert (score_classes("aps", logits.softmax(-1), logits)[:, 200:] == 1).all()


@pytest.mark.parametrize(("c", "scale"), [(2, 3.0), (10, 0.01), (10, 3.0), (1000, 2.0)])
def test_draws_are_uniform_whatever_the_scale_of_logits(c, scale):
    u = draw_from_logits(draw_logits(2000, c, scale))
    assert kstest(u.numpy(), "uniform").pvalue > 1e-3


def test_draws_hardly_move_with_the_last_digits():
    logits = draw_logits(2000, 10)
    noise = 1 + 1e-7 * torch.randn(logits.shape, generator=torch.Generator().manual_seed(1))
    moved = (draw_from_logits(logits * noise) - draw_from_logits(logits)).abs()
    moved = torch.minimum(moved, 1 - moved)  # 0 and 1 are the same
    assert moved.max() < 1e-4


def test_draws_do_not_depend_on_masked_classes_or_a_constant():
    logits = draw_logits(100, 5)
    masked = torch.cat([logits, torch.full((100, 2), -1e9)], 1)
    assert torch.equal(draw_from_logits(masked), draw_from_logits(logits))
    assert torch.allclose(draw_from_logits(logits + 8), draw_from_logits(logits), atol=1e-9)
    equal = draw_from_logits(torch.zeros(3, 5))
    assert ((equal >= 0) & (equal <= 1)).all()


def test_the_penalty_is_the_one_with_the_smallest_sets():
    logits = draw_logits(600, 30, scale=1.5)
    labels = draw_labels(logits)
    p, coverage = logits.softmax(-1), 0.9
    penalty = select_penalty(p, logits, labels, coverage)
    ranks = sorted(
        1 + sum(x > row[y] for x in row) for row, y in zip(p.tolist(), labels.tolist(), strict=True)
    )
    k = math.ceil(601 * coverage)
    assert penalty.free_ranks == ranks[k - 1]
    sizes = {}
    for size in PENALTIES:
        scores = score_classes("raps", p, logits, RankPenalty(size, penalty.free_ranks))
        limit = scores.gather(1, labels[:, None]).squeeze(1).sort().values[k - 1]
        sizes[size] = float((scores <= limit).sum(1).double().mean())
    assert sizes[penalty.size] == min(sizes.values()) < max(sizes.values())
