"""The page of a report: a study as HTML.

Its figures are SVG in colours that the style sheet gives, so that they turn dark with the page.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from rightly.evaluation.results import Result, unique
from rightly.metrics import METRICS, curves
from rightly.metrics.curves import RiskCoverage, SmoothReliability
from rightly.optional import require
from rightly.reporting import formatting
from rightly.reporting.html import summary
from rightly.reporting.html.study import Study, StudySet

jinja2, markupsafe = require("jinja2", "report"), require("markupsafe", "report")

WIDTH, HEIGHT = 340, 300
LEFT, RIGHT, TOP, BOTTOM = 50, 14, 12, 44


def render(shown: Study) -> str:
    """A study as HTML."""
    markup = markupsafe.Markup
    folder = files("rightly.reporting") / "html"
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        percent=formatting.format_percent,
        value=formatting.format_value,
        interval=formatting.format_interval,
        change=formatting.format_change,
        change_interval=formatting.format_change_interval,
    )
    summaries = [summary.summarise_set(one) for one in shown.sets]
    template = environment.from_string((folder / "page.html").read_text(encoding="utf-8"))
    return template.render(
        study=shown,
        summary=summary.summarise_all(summaries),
        name_class=lambda k: summary.name_class(shown, k),
        summaries=summaries,
        words=summary.WORDS,
        confident=summary.CONFIDENT,
        metrics=METRICS,
        heading=formatting.format_title,
        units=formatting.format_units(shown.metrics),
        describe=lambda change: formatting.describe_mark(formatting.mark_change(change)),
        figures=[
            {kind: markup(drawn) for kind, drawn in _draw_figures(i, one).items()}
            for i, one in enumerate(shown.sets)
        ],
        classes=[summary.summarise_classes(shown, one) for one in shown.sets],
        comparison=_lay_out_comparison(shown),
        cost=_compute_cost(shown),
        data=markup(_write_slider_data(shown)),
        style=markup((folder / "page.css").read_text(encoding="utf-8")),
        script=markup((folder / "page.js").read_text(encoding="utf-8")),
    )


def _draw_figures(key: int, one: StudySet) -> dict[str, str]:
    smooth = [curves.smooth_reliability(c, one.correct) for c in (one.before, one.after)]
    risk = [curves.risk_coverage(c, one.correct) for c in (one.before, one.after)]
    return {
        "reliability": draw_reliability(one.name, *smooth),
        "risk": draw_risk_coverage(key, one.name, *risk),
    }


def _write_slider_data(shown: Study) -> str:
    """What the slider reads; no user text, so that nothing in it can end the script."""
    sets: list[dict[str, Any]] = []
    for one in shown.sets:
        sets.append({"n": len(one.labels)})
        for when, confidence in (("before", one.before), ("after", one.after)):
            counts = summary.count_accepted(confidence, one.correct)
            sets[-1][when] = {"count": counts.count.tolist(), "right": counts.right.tolist()}
    return json.dumps(sets, separators=(",", ":"))


def _lay_out_comparison(shown: Study) -> list[dict[str, Any]]:
    """One table a test set: a line a calibrator, a cell a metric."""
    tables = []
    for dataset in unique(row.dataset for row in shown.comparison):
        here = [row for row in shown.comparison if row.dataset == dataset and row.seed == 0]
        metrics = unique(row.metric for row in here)
        cells = {(row.calibrator, row.metric): row for row in here}
        lines = [
            {
                "name": name,
                "cells": [
                    (cells[name, m], _mark(cells[name, m], cells[shown.reference, m]))
                    for m in metrics
                ],
            }
            for name in unique(row.calibrator for row in here)
        ]
        tables.append({"name": dataset, "metrics": metrics, "lines": lines})
    return tables


def _mark(row: Result, base: Result) -> str:
    if row.calibrator == base.calibrator:
        return formatting.REFERENCE
    return formatting.mark_result(row, base.value)


def _compute_cost(shown: Study) -> dict[str, Any]:
    """Forward passes, and what they buy beside the reference."""
    rows = {row[:3]: row for row in shown.comparison if row.seed == 0}
    lines = []
    for one in shown.sets:
        for metric in ("brier", "auroc"):
            row = rows.get((shown.method, one.name, metric))
            base = rows.get((shown.reference, one.name, metric))
            if row is not None and base is not None and shown.method != shown.reference:
                lines.append((one.name, metric, base, row, _mark(row, base)))
    return {"passes": 1 + len(shown.view_names), "lines": lines}


@dataclass(frozen=True)
class Frame:
    """Maps data to places in the picture."""

    top_value: float = 1.0  # of the vertical axis, which starts at 0

    def x(self, value: float) -> float:
        return round(LEFT + value * (WIDTH - LEFT - RIGHT), 1)

    def y(self, value: float) -> float:
        share = value / self.top_value
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)

    def draw_path(self, x: np.ndarray, y: np.ndarray) -> str:
        points = (f"{self.x(a)},{self.y(b)}" for a, b in zip(x.tolist(), y.tolist(), strict=True))
        return "M" + "L".join(points)

    def draw_axes(self, across: str, up: str, ticks: Sequence[float]) -> str:
        parts = []
        for share in (0.0, 0.25, 0.5, 0.75, 1.0):
            parts.append(
                f'<line class="grid" x1="{self.x(share)}" x2="{self.x(share)}" '
                f'y1="{self.y(0.0)}" y2="{self.y(self.top_value)}"/>'
            )
            parts.append(
                f'<text x="{self.x(share)}" y="{self.y(0.0) + 16}" text-anchor="middle">'
                f"{100 * share:.0f}</text>"
            )
        for value in ticks:
            parts.append(
                f'<line class="grid" x1="{self.x(0.0)}" x2="{self.x(1.0)}" '
                f'y1="{self.y(value)}" y2="{self.y(value)}"/>'
            )
            parts.append(
                f'<text x="{LEFT - 6}" y="{self.y(value) + 4}" text-anchor="end">'
                f"{100 * value:.3g}</text>"
            )
        middle = (TOP + HEIGHT - BOTTOM) / 2
        parts.append(
            f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" '
            f'text-anchor="middle">{escape(across)}</text>'
        )
        parts.append(
            f'<text transform="translate(12 {middle}) rotate(-90)" '
            f'text-anchor="middle">{escape(up)}</text>'
        )
        return "".join(parts)


def draw_reliability(title: str, before: SmoothReliability, after: SmoothReliability) -> str:
    """Accuracy against confidence, before and after, with bands."""
    frame = Frame()
    parts = [frame.draw_axes("confidence, %", "right, %", (0.0, 0.25, 0.5, 0.75, 1.0))]
    parts.append(
        f'<path class="diagonal" d="M{frame.x(0.0)},{frame.y(0.0)}L{frame.x(1.0)},{frame.y(1.0)}"/>'
    )
    for data, name in ((before, "before"), (after, "after")):
        kept = _thin(len(data.confidence), 80)
        if not len(kept):
            continue
        x = data.confidence[kept]
        edge = frame.draw_path(
            np.append(x, x[::-1]), np.append(data.low[kept], data.high[kept][::-1])
        )
        parts.append(f'<path class="band {name}" d="{edge}Z"/>')
        parts.append(f'<path class="line {name}" d="{frame.draw_path(x, data.accuracy[kept])}"/>')
    return _wrap_svg(f"Reliability on {title}", parts)


def draw_risk_coverage(key: int, title: str, before: RiskCoverage, after: RiskCoverage) -> str:
    """Share wrong among accepted predictions against the share accepted; dots follow the slider."""
    top = max(float(x.risk[x.coverage >= 0.02].max()) for x in (before, after))
    frame = Frame(_round_up(top))
    ticks = [frame.top_value * k / 4 for k in range(5)]
    parts = [frame.draw_axes("accepted, %", "wrong among them, %", ticks)]
    for data, name in ((before, "before"), (after, "after")):
        kept = np.flatnonzero(data.coverage >= 0.02)
        kept = kept[_thin(len(kept), 120)]
        line = frame.draw_path(data.coverage[kept], data.risk[kept])
        parts.append(f'<path class="line {name}" d="{line}"/>')
    for name in ("before", "after"):
        parts.append(f'<circle class="dot {name}" data-set="{key}" data-when="{name}" r="5"/>')
    scale = f'data-top="{frame.top_value}"'
    return _wrap_svg(f"Risk and coverage on {title}", parts, scale)


def _round_up(value: float) -> float:
    """A round number that is not less."""
    return next(
        x for x in (0.02, 0.04, 0.08, 0.12, 0.2, 0.4, 0.6, 0.8, 1.0) if x >= min(value, 1.0)
    )


def _thin(n: int, most: int) -> np.ndarray:
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int)) if n else np.arange(0)


def _wrap_svg(label: str, parts: Sequence[str], more: str = "") -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}" {more}>'
        f"{''.join(parts)}</svg>"
    )
