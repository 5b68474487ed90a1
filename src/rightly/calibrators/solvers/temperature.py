"""softmax(b z) at inverse temperatures b = 1 / T; the b that a loss or a confidence asks for.

Cross-entropy is convex in b (Guo et al., 2017), and the logit of the confidence is concave and
increasing in it, so both problems are solved exactly, by Newton's method.
"""

import math
from dataclasses import dataclass

import torch
from scipy.optimize import minimize_scalar

from rightly.calibrators.solvers.execution import exp_negligible, iterate_chunks
from rightly.calibrators.solvers.margin_table import log_sum_others, top_two
from rightly.calibrators.solvers.scaled_scores import CalibrationData
from rightly.losses import Loss, cross_entropy
from rightly.predictions.masking import count_possible, fill_masked
from rightly.tensor_shapes import Labels, Logits, PerSample

MAX_SCALE_RATIO = 1e3  # b times the scale of logits stays within 1/1000 .. 1000: flat .. one-hot
OCTAVES = 6  # a loss other than cross-entropy is searched this far around cross-entropy's b
SUBSAMPLE = 4096  # samples that place the first guess within a percent or two
ONE_STEP = 2.0**-22  # of float32, and a little: what raises a number to the next larger one
TRACED_STEPS = 12  # of Newton's method in a graph, which cannot stop by itself: ten reach float64
NEGLIGIBLE_GAP = 1e3  # over b: what lies below adds nothing, but the square of a masked gap would
FLAT = 1e-6  # a margin this small over uniform is all but uniform


def top_probability(logits: Logits, inverse: PerSample) -> PerSample:
    """Confidence after scaling each row's logits by its inverse temperature."""
    parts = []
    for rows in iterate_chunks(logits):
        z = logits[rows]
        gaps = (z - z.amax(-1, keepdim=True)) * inverse[rows, None].to(z.dtype)
        parts.append(gaps.exp_().sum(-1, dtype=torch.float64).reciprocal())
    return torch.cat(parts)


def scaled_softmax(logits: Logits, inverse: PerSample) -> Logits:
    """softmax(b z), row by row, in float64."""
    gaps = (logits - logits.amax(-1, keepdim=True)).double()
    return (gaps * inverse[:, None]).softmax(-1)


def keep_class(probabilities: Logits, classes: Labels) -> Logits:
    """Breaks ties in favour of the predicted class, by an amount that float32 can hold."""
    single = probabilities.float()
    lost = single.argmax(-1) != classes
    if not torch.compiler.is_exporting() and not lost.any():
        return probabilities
    above = (single.amax(-1) * (1 + ONE_STEP)).to(probabilities.dtype)
    raised = probabilities.scatter(1, classes[:, None], above[:, None])
    raised = raised / raised.sum(-1, keepdim=True)
    return torch.where(lost[:, None], raised, probabilities)


@dataclass(frozen=True)
class Moments:
    """log-sum-exp, mean and variance of the gaps z - max(z) under softmax(b z)."""

    log_sum: PerSample
    mean: PerSample
    variance: PerSample


def compute_moments(logits: Logits, inverse: float) -> Moments:
    """The moments of every row at one inverse temperature, without keeping an (n, c) array."""
    parts = []
    for rows in iterate_chunks(logits):
        z = logits[rows]
        gaps = (z - z.amax(-1, keepdim=True)).clamp_min_(-NEGLIGIBLE_GAP / inverse)
        e = exp_negligible(gaps * inverse)
        total = e.sum(-1).double()
        e *= gaps
        first = e.sum(-1).double() / total
        second = torch.linalg.vecdot(e, gaps).double() / total
        parts.append((total.log(), first, (second - first.square()).clamp_min(0)))
    return Moments(*(torch.cat(column) for column in zip(*parts, strict=True)))


def inverse_temperature_for(logits: Logits, confidence: PerSample) -> PerSample:
    """The inverse temperature at which softmax gives each row's class this confidence.

    b g - L(b) is concave and increasing in b, so Newton's method from b = 0 never overshoots.
    A confidence at or below 1 / c has no temperature: its row becomes all but uniform.
    """
    parts = []
    for rows in iterate_chunks(logits):
        z = logits[rows].double()
        c = z.shape[1]
        leading = top_two(z)
        gap = leading.top - leading.second
        target = torch.logit(confidence[rows].double().clamp(0.5 / c, 1 - 1e-13))
        count = count_possible(z)
        above = leading.top - fill_masked(z).mean(-1)
        # At b = 0: top minus mean of the others.
        slope = torch.where(count > 1, above * count / (count - 1).clamp_min(1), 0)
        slope_at_zero, reach = slope, slope.clamp_min(1e-300)
        lowest, highest = FLAT / reach, 1e6 / reach
        b = torch.zeros_like(gap)
        miss = target + (count - 1).clamp_min(1).log()
        traced = torch.compiler.is_exporting()
        for _ in range(TRACED_STEPS if traced else 100):
            step = miss / slope.clamp_min(1e-300)
            b_next = (b + step).clamp(lowest, highest)
            done = not traced and bool(((b_next - b).abs() <= 1e-12 * b_next).all())
            b = b_next
            if done:
                break
            value, derivative = log_sum_others(z, leading, b)
            miss = target - (b * gap - value)
            slope = gap - derivative
        parts.append(torch.where(slope_at_zero > 0, b, torch.ones_like(b)))
    return torch.cat(parts)


def fit_inverse_temperature(logits: Logits, labels: Labels, loss: Loss) -> float:
    """The inverse temperature that minimises a loss: approximated on a subsample, then on all."""
    if loss.name == cross_entropy.name:
        return nll_inverse_temperature(logits, labels)
    near = approximate_inverse_temperature(logits, labels, loss)
    low, high = near * 0.8, near * 1.25
    if len(logits) < 2 * SUBSAMPLE:
        low, high = near * 0.99, near * 1.01
    exact = CalibrationData.of(logits, labels, low, high).with_exact_margins()
    return _search(exact, loss, low, high, steps=2, tolerance=1e-8)


def approximate_inverse_temperature(
    logits: Logits, labels: Labels, loss: Loss = cross_entropy
) -> float:
    """The inverse temperature that is best for a few thousand of the samples."""
    step = max(1, len(logits) // SUBSAMPLE)
    logits, labels = logits[::step], labels[::step]
    start = nll_inverse_temperature(logits, labels)
    if loss.name == cross_entropy.name:
        return start
    low, high = start / 2**OCTAVES, start * 2**OCTAVES
    return _search(CalibrationData.of(logits, labels, low, high), loss, low, high)


def _search(
    data: CalibrationData,
    loss: Loss,
    low: float,
    high: float,
    steps: int = 4 * OCTAVES,
    tolerance: float = 1e-4,
) -> float:
    """The minimum of a loss between two inverse temperatures: a grid, then Brent's method."""

    def loss_at(log_inverse: float) -> float:
        return float(loss.of(data.scores(torch.full_like(data.below_top, log_inverse))))

    grid = torch.linspace(math.log(low), math.log(high), steps + 1).tolist()
    best = min(range(len(grid)), key=lambda i: loss_at(grid[i]))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    result = minimize_scalar(loss_at, bounds=bounds, method="bounded", options={"xatol": tolerance})
    return math.exp(result.x)


def nll_inverse_temperature(logits: Logits, labels: Labels) -> float:
    """The inverse temperature that minimises cross-entropy, which is convex in it.

    Newton's method inside a bracket, first on a few thousand samples, so that two or three passes
    over all of them suffice.
    """
    # The scale of logits: how far the largest stands above its row's mean, on average.
    scale = float((logits.amax(-1) - fill_masked(logits).mean(-1)).double().mean())
    if scale == 0:
        return 1.0  # every row is constant: no temperature changes anything
    lowest, highest = 1 / (MAX_SCALE_RATIO * scale), MAX_SCALE_RATIO / scale
    start = 1.0 / scale
    if len(logits) >= 2 * SUBSAMPLE:
        start = approximate_inverse_temperature(logits, labels)
    return _solve_newton(logits, labels, start, lowest, highest)


def _solve_newton(
    logits: Logits, labels: Labels, start: float, lowest: float, highest: float
) -> float:
    """Root of the slope of cross-entropy in b, kept inside a shrinking bracket."""
    true_gap = float(
        (logits.gather(-1, labels[:, None]).squeeze(-1) - logits.amax(-1))
        .double()
        .cpu()
        .numpy()
        .mean()
    )
    b, low, high = min(max(start, lowest), highest), lowest, highest
    for _ in range(200):
        at_b = compute_moments(logits, b)
        slope = float(at_b.mean.cpu().numpy().mean()) - true_gap
        curvature = float(at_b.variance.cpu().numpy().mean())
        low, high = (b, high) if slope < 0 else (low, b)
        newton = b - slope / curvature if curvature > 0 else low
        inside = low < newton < high
        following = newton if inside else math.sqrt(low * high)
        move = abs(following - b) / b
        b = following
        # Newton's error after a step is about the square of the step.
        if inside and move < 1e-6 or high / low < 1 + 1e-12:
            break
    return b
