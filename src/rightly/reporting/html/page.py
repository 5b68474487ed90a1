"""The page itself: everything a template needs, and the file it becomes."""

import json
import math
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from rightly.atomic_write import write_atomically
from rightly.evaluation.results import SIGNIFICANT, Result, unique
from rightly.metrics import METRICS, curves
from rightly.reporting.html import drawing
from rightly.reporting.html.study import Study, TestSet, accepted, class_lines
from rightly.reporting.html.verdict import SURE, WORDS, summary, verdict

SHOWN = ("ece", "brier", "ks", "auroc", "aurc")
MEANING = {
    "ece": "mean distance between confidence and accuracy, in 25 bins",
    "brier": "mean squared distance between confidence and being right",
    "ks": "largest gap between summed confidence and summed accuracy",
    "auroc": "chance that a right prediction is more confident than a wrong one",
    "aurc": "mean error rate when only the most confident are accepted",
}
MARKS = {"better": "▲ better", "worse": "▼ worse", "same": "· no detectable difference", "": ""}


def write(path: Path, study: Study) -> None:
    """Writes the report as one HTML file."""
    text = render(study)
    write_atomically(path, lambda part: part.write_text(text, encoding="utf-8"))


def render(study: Study) -> str:
    """The report as HTML."""
    try:
        import jinja2
        from markupsafe import Markup
    except ImportError as error:
        raise ImportError(
            "a report needs the package jinja2: pip install 'rightly[report]'"
        ) from error
    folder = files("rightly.reporting") / "html"
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(percent=_percent, value=_value, span=_span, signed=_signed)
    verdicts = [verdict(one) for one in study.sets]
    template = environment.from_string((folder / "page.html").read_text(encoding="utf-8"))
    return template.render(
        study=study,
        summary=summary(verdicts),
        verdicts=verdicts,
        words=WORDS,
        sure=SURE,
        metrics=SHOWN,
        meaning=MEANING,
        heading=_heading,
        mark=lambda change: MARKS[_outcome(change)],
        figures=[
            {kind: Markup(drawn) for kind, drawn in _figures(i, one).items()}
            for i, one in enumerate(study.sets)
        ],
        classes=[class_lines(study, one) for one in study.sets],
        comparison=_comparison(study),
        cost=_cost(study),
        data=Markup(_data(study)),
        style=Markup((folder / "page.css").read_text(encoding="utf-8")),
        script=Markup((folder / "page.js").read_text(encoding="utf-8")),
    )


def _figures(key: int, one: TestSet) -> dict[str, str]:
    smooth = [curves.smooth_reliability(c, one.correct) for c in (one.before, one.after)]
    risk = [curves.risk_coverage(c, one.correct) for c in (one.before, one.after)]
    return {
        "reliability": drawing.reliability(one.name, *smooth),
        "risk": drawing.risk_coverage(key, one.name, *risk),
    }


def _data(study: Study) -> str:
    """What the slider reads; no user text, so that nothing in it can end the script."""
    found = []
    for one in study.sets:
        counts = {
            when: accepted(confidence, one.correct)
            for when, confidence in (("before", one.before), ("after", one.after))
        }
        found.append(
            {
                "n": len(one.labels),
                **{
                    when: {"count": x.count.tolist(), "right": x.right.tolist()}
                    for when, x in counts.items()
                },
            }
        )
    return json.dumps(found, separators=(",", ":"))


def _comparison(study: Study) -> list[dict[str, Any]]:
    """One table a test set: a line a calibrator, a cell a metric."""
    tables = []
    for dataset in unique(row.dataset for row in study.comparison):
        here = [row for row in study.comparison if row.dataset == dataset and row.seed == 0]
        metrics = unique(row.metric for row in here)
        cells = {(row.calibrator, row.metric): row for row in here}
        lines = [
            {
                "name": name,
                "cells": [
                    (cells[name, m], _against(cells[name, m], cells[study.reference, m]))
                    for m in metrics
                ],
            }
            for name in unique(row.calibrator for row in here)
        ]
        tables.append({"name": dataset, "metrics": metrics, "lines": lines})
    return tables


def _against(row: Result, base: Result) -> str:
    if row.calibrator == base.calibrator:
        return "◆"
    change = row._replace(value=row.value - base.value, p=row.p_holm)
    return MARKS[_outcome(change)][:1]


def _outcome(change: Result) -> str:
    """What a difference means, by its p value and the metric's direction."""
    lower = METRICS[change.metric].lower_is_better
    if math.isnan(change.p) or lower is None:
        return ""
    if change.p > SIGNIFICANT or change.value == 0:
        return "same"
    return "better" if (change.value < 0) == lower else "worse"


def _cost(study: Study) -> dict[str, Any]:
    """Forward passes, and what they buy beside the reference."""
    lines = []
    for one in study.sets:
        rows = {
            (row.calibrator, row.metric): row
            for row in study.comparison
            if row.dataset == one.name and row.seed == 0
        }
        for name in ("brier", "auroc"):
            row, base = rows.get((study.method, name)), rows.get((study.reference, name))
            if row is not None and base is not None and study.method != study.reference:
                lines.append((one.name, name, base, row, _against(row, base)))
    return {"passes": 1 + len(study.view_names), "lines": lines}


def _heading(name: str) -> str:
    lower = METRICS[name].lower_is_better
    return name + ("" if lower is None else " ↓" if lower else " ↑")


def _percent(share: float, digits: int = 1) -> str:
    return "–" if math.isnan(share) else f"{100 * share:.{digits}f}"


def _scaled(row: Result, ends: Sequence[float], form: str, sign: str = "") -> list[str]:
    factor = 1 if row.metric == "nll" else 100
    return [format(factor * end, f"{sign}z{form}") for end in ends]  # z: no minus before zero


def _value(row: Result) -> str:
    return "n/a" if math.isnan(row.value) else _scaled(row, [row.value], ".2f")[0]


def _span(row: Result, digits: int = 1) -> str:
    if math.isnan(row.low):
        return ""
    return " to ".join(_scaled(row, [row.low, row.high], f".{digits}f"))


def _signed(row: Result) -> str:
    return "n/a" if math.isnan(row.value) else _scaled(row, [row.value], ".2f", "+")[0]
