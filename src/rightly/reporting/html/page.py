"""The page of a report: a study as HTML."""

import json
from importlib.resources import files
from typing import Any

from rightly.evaluation.results import Result, unique
from rightly.metrics import METRICS, curves
from rightly.optional import require
from rightly.reporting import formatting
from rightly.reporting.html import drawing, summary
from rightly.reporting.html.study import Study, StudySet


def render(shown: Study) -> str:
    """A study as HTML."""
    jinja2, markup = require("jinja2", "report"), require("markupsafe", "report").Markup
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
        "reliability": drawing.draw_reliability(one.name, *smooth),
        "risk": drawing.draw_risk_coverage(key, one.name, *risk),
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
