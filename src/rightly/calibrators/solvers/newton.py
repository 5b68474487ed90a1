"""Newton's method, for one number in a bracket and for a convex loss of several.

`find_root` solves f(x) = 0 for an increasing f of one positive number, such as the slope of a loss
in an inverse temperature. `minimise` solves min f(x) for a convex f of a few parameters, whose
equations the caller solves, because the caller knows their structure.
"""

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from torch import Tensor

State = TypeVar("State")

MAX_ROOT_STEPS = 200
EMPTY = 1 + 1e-12  # ratio of the ends of a bracket that holds no other number
MAX_LOG = 700.0  # exp of more overflows
MAX_STEPS = 100
MIN_LENGTH = 1e-6  # of a step that was halved, below which the loss does not fall at all


def find_root(
    function: Callable[[float], tuple[float, float | None]],
    start: float,
    bracket: tuple[float, float],
    tol: float,
    first_step: float = 0.0,
) -> float:
    """The root of an increasing function of a positive number, to a relative last step of tol.

    `function(x)` gives the value and the slope: then steps are Newton's, and the error left is
    about the square of the last. Where the slope is None, a first step of that relative length
    goes downhill, a second follows the line through both points, and further ones interpolate
    through three (inverse quadratic, in log x), whose error is about the product of theirs. A
    step out of the bracket, which shrinks, goes to its middle. Without a root in the bracket, the
    end that is nearest to one is found.
    """
    low, high = bracket
    x, points = min(max(start, low), high), list[tuple[float, float]]()
    for _ in range(MAX_ROOT_STEPS):
        value, slope = function(x)
        if value == 0:
            break
        low, high = (x, high) if value < 0 else (low, x)
        if slope is None:
            points = [*points[-2:], (math.log(x), value)]
            proposed, is_accurate = _interpolate(points, first_step), len(points) == 3
        else:
            proposed, is_accurate = (x - value / slope if slope > 0 else math.nan), True
        is_inside = low <= proposed <= high
        following = proposed if is_inside else math.sqrt(low * high)
        move, x = abs(following - x) / x, following
        if is_inside and is_accurate and move < tol or high / low < EMPTY:
            break
    return x


def _interpolate(points: Sequence[tuple[float, float]], first_step: float) -> float:
    """The root of the line or parabola through these (log x, value); NaN where there is none."""
    values = [value for _, value in points]
    if len(points) == 1:
        root = points[0][0] - math.copysign(first_step, values[0])
    elif len(set(values)) == len(values):
        root = 0.0
        for x, own in points:
            root += x * math.prod(other / (other - own) for other in values if other != own)
    else:
        return math.nan
    return math.exp(root) if abs(root) < MAX_LOG else math.nan


def minimise(
    evaluate: Callable[[Tensor], tuple[float, State]],
    solve_step: Callable[[Tensor, State], Tensor | None],
    start: Tensor,
    precision: float,
) -> Tensor:
    """The minimum of a convex loss by Newton's method; steps that do not lower it are halved.

    `evaluate(x)` gives the loss and whatever `solve_step(x, that)` needs to solve the equations
    for the step that is subtracted (None: they have no solution). It ends where a step lowers the
    loss by less than this share of it.
    """
    x = start
    value, state = evaluate(x)
    for _ in range(MAX_STEPS):
        step = solve_step(x, state)
        if step is None:
            break
        length, moved = 1.0, x - step
        lower, following = evaluate(moved)
        while not lower <= value and length > MIN_LENGTH:
            length /= 2
            moved = x - length * step
            lower, following = evaluate(moved)
        if not lower <= value:
            break
        fall, x, value, state = value - lower, moved, lower, following
        if fall <= precision * abs(value):
            break
    return x
