"""Every built-in metric of many resamples at once.

With all weights 1 each function here gives what its namesake in `definitions` gives.
"""

import numpy as np

from rightly.metrics import binning
from rightly.metrics.replicates import Replicates, Values, bin_ends, sum_by_bin, sum_by_level
from rightly.metrics.selective import ROUNDING, best_error_sum, count_covered


def _nan_if_none(x: Values) -> Values:
    return np.where(x > 0, x, np.nan)


def ece(w: Replicates) -> Values:
    return abs(sum_by_bin(w.excess, bin_ends(w.outcomes.levels))).sum(-1) / w.units


def ece_l2(w: Replicates) -> Values:
    ends = bin_ends(w.outcomes.levels)
    excess = sum_by_bin(w.excess, ends) / w.outcomes.unit
    squares = excess**2 / np.maximum(sum_by_bin(w.weight, ends), 1)
    return np.sqrt(squares.sum(-1) / w.n)


def ece_debiased(w: Replicates) -> Values:
    ends = bin_ends(w.outcomes.levels)
    excess = sum_by_bin(w.excess, ends) / w.outcomes.unit
    c = w.outcomes.confidence
    index = binning.assign_equal_width(c, binning.BINS)
    variance = np.zeros((len(c), binning.BINS))
    variance[np.arange(len(c)), index] = c * (1 - c)
    by_chance = binning.expected_excess_by_chance(
        excess, w.float_counts @ variance, 1.0 * sum_by_bin(w.weight, ends)
    )
    return np.maximum(abs(excess).sum(-1) - by_chance, 0) / w.n


def brier(w: Replicates) -> Values:
    return w.mean((w.outcomes.confidence - w.outcomes.correct) ** 2)


def ace(w: Replicates) -> Values:
    levels = w.outcomes.levels
    at = (w.n[:, None] - 1) * binning.equal_width_edges(binning.BINS)[1:-1]
    rank = np.floor(at)
    share = at - rank
    below, above = (
        levels[[np.searchsorted(*pair, side="right") for pair in zip(w.weight, r, strict=True)]]
        for r in (rank, np.minimum(rank + 1, w.n[:, None] - 1))
    )
    edges = binning.interpolate(below, above, share)
    inner = np.searchsorted(levels, edges, side="left")
    sums = np.where(inner > 0, np.take_along_axis(w.excess, inner - 1, -1), 0)
    of_bins = np.diff(sums, axis=-1, prepend=np.int64(0), append=w.excess[:, -1:])
    return abs(of_bins).sum(-1) / w.units


def mce(w: Replicates) -> Values:
    ends = bin_ends(w.outcomes.levels)
    weight = sum_by_bin(w.weight, ends)
    gaps = abs(sum_by_bin(w.excess, ends)) / np.where(weight > 0, weight, np.nan)
    return np.nanmax(gaps, -1) / w.outcomes.unit


def ks(w: Replicates) -> Values:
    return np.maximum(w.excess.max(-1), -w.excess.min(-1)) / w.units


def ks_released(w: Replicates) -> Values:
    c, correct = w.outcomes.confidence, w.outcomes.correct
    on_wrong, missing_on_right = w.mean(c * ~correct), w.mean((1 - c) * correct)
    return np.maximum(on_wrong, missing_on_right - on_wrong)


def auroc(w: Replicates) -> Values:
    return _pairs_won(w) / _nan_if_none(1.0 * w.right[:, -1] * w.wrong[:, -1])


def augrc(w: Replicates) -> Values:
    right, wrong = 1.0 * w.right[:, -1], 1.0 * w.wrong[:, -1]
    return (right * wrong - _pairs_won(w) + wrong**2 / 2) / w.n**2


def _pairs_won(w: Replicates) -> Values:
    levels = w.outcomes.wrong_levels
    wrong = sum_by_level(w.wrong[:, levels])
    right_below = np.where(levels > 0, w.right[:, levels - 1], 0)
    right_above = w.right[:, -1:] - (w.right[:, levels] + right_below) / 2  # a tie counts half
    return (wrong * right_above).sum(-1)


def nll(w: Replicates) -> Values:
    return w.mean(-np.log(np.clip(w.outcomes.true_probability, np.finfo(np.float64).eps, 1)))


def multiclass_brier(w: Replicates) -> Values:
    p = w.outcomes.distribution[0]
    squares = np.einsum("nc,nc->n", p, p) + 1 - 2 * w.outcomes.true_probability
    return w.mean(np.maximum(squares, 0))


def classwise_ece(w: Replicates) -> Values:
    lowest, above = w.outcomes.classwise_excess
    gaps = abs(w.float_counts @ lowest).sum(-1) + abs(above @ w.float_counts.T).sum(0)
    return gaps / (w.n * lowest.shape[1])


def smooth_ece(w: Replicates) -> Values:
    excess = sum_by_bin(w.excess, binning.cell_ends(w.outcomes.levels))
    return binning.fixed_point_bandwidth(excess / w.units[:, None])


def aurc(w: Replicates) -> Values:
    # A sample that is wrong and has k more confident ones raises the error rate among the first
    # k + 1, k + 2, ... n by 1 / (k + 1), 1 / (k + 2), ... 1 / n.
    n = w.counts.shape[-1]
    raised = np.append((1 / np.arange(n, 0, -1)).cumsum()[::-1], 0.0)
    total = np.append(0.0, raised.cumsum())
    levels = w.outcomes.wrong_levels
    first = w.weight[:, -1:] - w.weight[:, levels]
    after = w.weight[:, -1:] - np.where(levels > 0, w.weight[:, levels - 1], 0)
    # Each sample of a tie gets the tie's mean error.
    rate = sum_by_level(w.wrong[:, levels]) / np.maximum(after - first, 1)
    return (rate * (total[after] - total[first])).sum(-1) / w.n


def e_aurc(w: Replicates) -> Values:
    return np.maximum(aurc(w) - best_error_sum(w.n, 1.0 * w.wrong[:, -1]) / w.n, 0)


def risk_at_coverage(w: Replicates, coverage: float = 0.8) -> Values:
    count = np.array([count_covered(int(n), coverage) for n in w.n])
    before, after, errors, rate = _errors_from_top(w)
    # The tie in which the last of them lies: the levels come from the least confident up.
    level = (after >= count[:, None]).sum(-1, keepdims=True) - 1
    first, error, mean = (np.take_along_axis(x, level, -1)[:, 0] for x in (before, errors, rate))
    return (error + (count - first) * mean) / count


def coverage_at_risk(w: Replicates, risk: float = 0.05) -> Values:
    before, after, errors, rate = _errors_from_top(w)
    # Inside a tie the error rate goes one way, from errors / before to that at its end.
    allowed = risk + ROUNDING / w.n[:, None]
    at_end = errors + (after - before) * rate <= allowed * after
    rises = rate > allowed
    turn = (before * rate - errors) / np.where(rises, rate - allowed, 1)
    inside = np.where(rises & (turn > before), np.floor(turn), 0)
    return np.where(at_end, after, inside).max(-1) / w.n


def _errors_from_top(w: Replicates) -> tuple[np.ndarray, ...]:
    """Samples before and up to the end of each level, from the top; errors before; error rate."""
    size, wrong = sum_by_level(w.weight), sum_by_level(w.wrong)
    before = w.weight[:, -1:] - w.weight
    return before, before + size, w.wrong[:, -1:] - w.wrong, wrong / np.maximum(size, 1)


def confidence_gap(w: Replicates) -> Values:
    c, correct = w.outcomes.confidence, w.outcomes.correct
    wrong, right = (
        w.mean(c * side) / _nan_if_none(w.mean(1.0 * side)) for side in (~correct, correct)
    )
    return wrong - right


def narrowly_wrong(w: Replicates) -> Values:
    p, labels = w.outcomes.distribution
    near = w.outcomes.true_probability > 0.5 * p.max(-1)
    return w.mean(1.0 * (near & (p.argmax(-1) != labels)))
