"""Figures of the page: SVG in colours that the style sheet gives, so that they turn dark with it.

All test sets share their axes, so that figures beside each other compare.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from jaxtyping import Float

from rightly.metrics import curves
from rightly.metrics.curves import RiskCoverage, SmoothReliability
from rightly.reporting.html.study import StudySet
from rightly.shapes import Confidence

WIDTH, LEFT, RIGHT, TOP = 340, 50, 14, 12
PLOT, STRIP, GAP, BELOW = 244, 56, 18, 44  # heights; what is below holds ticks and a title
BINS = 25  # of the strip
LEAST_COVERAGE = 0.02  # of a drawn error rate: among fewer samples it is noise
WHEN = ("before", "after")

Shares = Float[np.ndarray, " bins"]


@dataclass(frozen=True)
class Frame:
    """Maps data to places in the picture, between two heights."""

    top_value: float = 1.0  # of the vertical axis, which starts at 0
    upper: int = TOP
    lower: int = TOP + PLOT

    def x(self, value: float) -> float:
        return round(LEFT + value * (WIDTH - LEFT - RIGHT), 1)

    def y(self, value: float) -> float:
        share = min(value / self.top_value, 1.0)
        return round(self.lower - share * (self.lower - self.upper), 1)

    def draw_path(self, x: np.ndarray, y: np.ndarray) -> str:
        points = (f"{self.x(a)},{self.y(b)}" for a, b in zip(x.tolist(), y.tolist(), strict=True))
        return "M" + "L".join(points)

    def draw_columns(self) -> str:
        """Vertical lines at quarters of the horizontal axis."""
        return "".join(
            f'<line class="grid" x1="{self.x(share)}" x2="{self.x(share)}" '
            f'y1="{self.lower}" y2="{self.upper}"/>'
            for share in (0.0, 0.25, 0.5, 0.75, 1.0)
        )

    def draw_rows(self, up: str, ticks: Sequence[tuple[float, str]]) -> str:
        """Horizontal lines with what they stand for, and the name of the axis."""
        parts = []
        for value, text in ticks:
            parts.append(
                f'<line class="grid" x1="{self.x(0.0)}" x2="{self.x(1.0)}" '
                f'y1="{self.y(value)}" y2="{self.y(value)}"/>'
                f'<text x="{LEFT - 6}" y="{self.y(value) + 4}" text-anchor="end">{text}</text>'
            )
        middle = (self.upper + self.lower) / 2
        parts.append(
            f'<text transform="translate(12 {middle}) rotate(-90)" '
            f'text-anchor="middle">{escape(up)}</text>'
        )
        return "".join(parts)

    def draw_ticks(self, across: str) -> str:
        """Numbers and name of the horizontal axis, below."""
        numbers = "".join(
            f'<text x="{self.x(share)}" y="{self.lower + 16}" text-anchor="middle">'
            f"{100 * share:.0f}</text>"
            for share in (0.0, 0.25, 0.5, 0.75, 1.0)
        )
        return (
            f'{numbers}<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{self.lower + BELOW - 6}" '
            f'text-anchor="middle">{escape(across)}</text>'
        )


def draw_all_reliability(sets: Sequence[StudySet]) -> list[str]:
    """Reliability of every test set, before and after, above where its confidences lie."""
    shares = [[_compute_shares(c) for c in (one.before, one.after)] for one in sets]
    highest = max(float(share.max()) for pair in shares for share in pair)
    return [
        draw_reliability(
            one.name,
            [curves.smooth_reliability(*pair) for pair in one.outcomes.values()],
            of_set,
            highest,
        )
        for one, of_set in zip(sets, shares, strict=True)
    ]


def _compute_shares(confidence: Confidence) -> Shares:
    return np.histogram(confidence, BINS, (0, 1))[0] / len(confidence)


def draw_reliability(
    title: str, smooth: Sequence[SmoothReliability], shares: Sequence[Shares], highest: float
) -> str:
    """Accuracy against confidence with bands, and below it the share of samples in bins."""
    frame = Frame()
    ticks = [(share, f"{100 * share:.0f}") for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    parts = [frame.draw_columns(), frame.draw_rows("right, %", ticks)]
    parts.append(
        f'<path class="diagonal" d="M{frame.x(0.0)},{frame.y(0.0)}L{frame.x(1.0)},{frame.y(1.0)}"/>'
    )
    for data, name in zip(smooth, WHEN, strict=True):
        kept = _thin(len(data.confidence), 80)
        if not len(kept):
            continue
        x = data.confidence[kept]
        edge = frame.draw_path(
            np.append(x, x[::-1]), np.append(data.low[kept], data.high[kept][::-1])
        )
        parts.append(f'<path class="band {name}" d="{edge}Z"/>')
        parts.append(f'<path class="line {name}" d="{frame.draw_path(x, data.accuracy[kept])}"/>')
    parts.append(_draw_strip(shares, highest))
    return _wrap_svg(f"Reliability on {title}", parts, TOP + PLOT + GAP + STRIP + BELOW)


def _draw_strip(shares: Sequence[Shares], highest: float) -> str:
    """Where confidences lie; heights grow with the square root, so that few can be seen too."""
    upper = TOP + PLOT + GAP
    frame = Frame(math.sqrt(highest), upper, upper + STRIP)
    ticks = [(0.0, "0"), (math.sqrt(highest), f"{100 * highest:.0f}")]
    middle = next((x for x in (0.1, 0.01) if x < 0.5 * highest), None)
    if middle is not None:
        ticks.insert(1, (math.sqrt(middle), f"{100 * middle:.0f}"))
    parts = [frame.draw_columns(), frame.draw_rows("share, %", ticks)]
    edges = np.repeat(np.arange(BINS + 1) / BINS, 2)
    for name, share in zip(WHEN, shares, strict=True):
        heights = np.concatenate([[0.0], np.repeat(np.sqrt(share), 2), [0.0]])
        parts.append(f'<path class="bars {name}" d="{frame.draw_path(edges, heights)}"/>')
    return "".join([*reversed(parts[2:]), *parts[:2], frame.draw_ticks("confidence, %")])


def draw_all_risk_coverage(sets: Sequence[StudySet]) -> list[str]:
    """Risk and coverage of every test set, before and after."""
    pairs = [[curves.risk_coverage(*pair) for pair in one.outcomes.values()] for one in sets]
    top = max(
        float(data.risk[data.coverage >= LEAST_COVERAGE].max()) for pair in pairs for data in pair
    )
    frame = Frame(_round_up(top))
    return [
        draw_risk_coverage(key, one.name, pair, frame)
        for key, (one, pair) in enumerate(zip(sets, pairs, strict=True))
    ]


def draw_risk_coverage(key: int, title: str, curves: Sequence[RiskCoverage], frame: Frame) -> str:
    """Share wrong among accepted predictions against the share accepted; dots follow the slider."""
    heights = [frame.top_value * k / 4 for k in range(5)]
    ticks = [(value, f"{100 * value:.3g}") for value in heights]
    parts = [
        frame.draw_columns(),
        frame.draw_rows("wrong among them, %", ticks),
        frame.draw_ticks("accepted, %"),
    ]
    for data, name in zip(curves, WHEN, strict=True):
        kept = np.flatnonzero(data.coverage >= LEAST_COVERAGE)
        kept = kept[_thin(len(kept), 120)]
        line = frame.draw_path(data.coverage[kept], data.risk[kept])
        parts.append(f'<path class="line {name}" d="{line}"/>')
    for name in WHEN:
        parts.append(f'<circle class="dot {name}" data-set="{key}" data-when="{name}" r="5"/>')
    box = f"{frame.x(0.0)} {frame.x(1.0)} {frame.lower} {frame.upper}"
    scale = f'data-top="{frame.top_value}" data-box="{box}"'
    return _wrap_svg(f"Risk and coverage on {title}", parts, TOP + PLOT + BELOW, scale)


def _round_up(value: float) -> float:
    """A round number that is not less."""
    return next(
        x for x in (0.02, 0.04, 0.08, 0.12, 0.2, 0.4, 0.6, 0.8, 1.0) if x >= min(value, 1.0)
    )


def _thin(n: int, most: int) -> np.ndarray:
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int)) if n else np.arange(0)


def _wrap_svg(label: str, parts: Sequence[str], height: int, more: str = "") -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}" {more}>'
        f"{''.join(parts)}</svg>"
    )
