"""The page of a report: a study as HTML.

`page.html` is its frame, `page.NAME.html` are its sections; the scripts become one.
"""

from importlib.resources import files
from typing import Any

from rightly.decisions.decision import HOLDS_FOR, describe_void
from rightly.evaluation.results import Result, unique
from rightly.evaluation.views import NEARLY_ALL
from rightly.metrics import METRICS
from rightly.optional import require
from rightly.reporting import formatting
from rightly.reporting.html import acceptance, drawing, summary
from rightly.reporting.html.breakdown import FEW, break_down, break_down_groups
from rightly.reporting.html.study import Study

SCRIPTS = tuple(
    f"page.{name}.js"
    for name in ("binomial", "outcomes", "costs", "guarantee", "needed", "threshold", "tables")
)
TARGET = {"accuracy": 0.98, "confidence_level": 0.95}  # what the page starts with
COSTS = {"error": 10, "review": 1, "gain": 0}

jinja2, markupsafe = require("jinja2", "report"), require("markupsafe", "report")


def render(shown: Study) -> str:
    """A study as HTML."""
    markup = markupsafe.Markup
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_read),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        percent=formatting.format_percent,
        value=formatting.format_value,
        sentence=lambda text: text[:1].upper() + text[1:],
        interval=formatting.format_interval,
        change=formatting.format_change,
        points=lambda share: format(100 * share, "+z.1f"),  # z: no minus before zero
        change_interval=formatting.format_change_interval,
    )
    decision = shown.decision
    stored = None if decision is None else decision.threshold
    threshold = acceptance.shorten(summary.CONFIDENT if stored is None else stored, shown.sets)
    names = summary.name_classes(shown)
    summaries = [summary.summarise_set(one) for one in shown.sets]
    return environment.get_template("page.html").render(
        study=shown,
        summary=summary.summarise_all(summaries),
        name_class=lambda k: summary.name_class(shown, k),
        summaries=summaries,
        words=summary.WORDS,
        confident=summary.CONFIDENT,
        metrics=METRICS,
        heading=formatting.format_title,
        units=formatting.format_units(shown.metrics),
        mark=formatting.mark_change,
        spell=lambda change: formatting.WORDS.get(formatting.mark_change(change), ""),
        reliability=[markup(drawn) for drawn in drawing.draw_all_reliability(shown.sets)],
        risk=[markup(drawn) for drawn in drawing.draw_all_risk_coverage(shown.sets)],
        few=FEW,
        classes=[break_down(one, one.predicted, names, threshold) for one in shown.sets],
        groups=[break_down_groups(one, threshold) for one in shown.sets],
        comparison=_lay_out_comparison(shown),
        cost=_compute_cost(shown),
        views=_lay_out_views(shown),
        nearly_all=NEARLY_ALL,
        threshold=threshold,
        stored=stored,
        holds_for=HOLDS_FOR,
        void=None if shown.void is None else describe_void(shown.void),
        target=acceptance.read_target(decision) or TARGET,
        costs=acceptance.read_costs(decision) or COSTS,
        bins=drawing.BINS,
        points=[acceptance.compute_points(one, threshold) for one in shown.sets],
        data=markup(acceptance.write_outcomes(shown)),
        style=markup(_read("page.css")),
        script=markup("".join(_read(name) for name in SCRIPTS)),
    )


def _read(name: str) -> str:
    return (files("rightly.reporting") / "html" / name).read_text(encoding="utf-8")


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
    most = 1 + len(shown.view_names)
    is_cascade = any(one.passes < most for one in shown.sets) and most > 1
    return {"passes": most, "is_cascade": is_cascade, "lines": lines}


def _lay_out_views(shown: Study) -> dict[str, Any] | None:
    """What one, two and three views gain beside all, in points of the Brier score."""
    ranking = shown.views
    if ranking is None:
        return None
    every = ranking.every
    lines = [one for one in ranking.grown if len(one.views) < len(every.views)]
    return {
        "helps": every.low > 0,
        "smallest": ranking.find_smallest(NEARLY_ALL),
        "lines": [(one, one.gain / every.gain if every.gain > 0 else None) for one in lines],
        "every": every,
    }
