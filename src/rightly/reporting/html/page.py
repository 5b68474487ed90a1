"""The report: from data to a page, and the page itself."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from rightly.atomic_write import write_atomically
from rightly.calibrators import CALIBRATORS, FittedCalibrator
from rightly.evaluation.data_sets import TestSets, load_data_set, load_test_sets
from rightly.evaluation.measurement import Progress, compare_methods, resolve_metrics
from rightly.evaluation.method_selection import resolve_methods
from rightly.evaluation.results import Bootstrap, Result, unique
from rightly.metrics import METRICS, curves
from rightly.optional import require
from rightly.reporting import formatting
from rightly.reporting.comparison import Comparison
from rightly.reporting.evaluation_table import Evaluation, evaluate_sets, open_calibrator
from rightly.reporting.html import drawing, study, summary
from rightly.reporting.html.study import Pictures, Provenance, Study, StudySet

METHODS = ("uncalibrated", "temperature_scaling", "ensemble_temperature_scaling", "spline")
METHOD = "correctness_logistic"
PAGE_METRICS = ("ece", "brier", "ks", "auroc", "aurc")


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """One HTML page, and the results that it shows."""

    html: str
    evaluation: Evaluation
    comparison: Comparison | None = None
    path: Path | None = None  # where it was written

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page as one HTML file that needs nothing else."""
        write_atomically(Path(path), lambda part: part.write_text(self.html, encoding="utf-8"))

    def _repr_html_(self) -> str:
        source = escape(self.html, quote=True)
        return f'<iframe srcdoc="{source}" width="100%" height="800"></iframe>'

    def __repr__(self) -> str:
        place = "not saved" if self.path is None else f"in {self.path}"
        title, names = self.evaluation.calibrator.title, ", ".join(self.evaluation.sets)
        return f"<Report: {title} on {names}, {place}>"


def report(
    tests: Mapping[str, Any],
    *,
    cal: Any = None,
    calibrator: Any = None,
    out: str | os.PathLike[str] | None = None,
    methods: str | Sequence[str] | None = METHODS,
    method: str = METHOD,
    metrics: str | Sequence[str] = PAGE_METRICS,
    images: Any = None,
    title: str = "this classifier",
    bootstrap: Bootstrap | None = None,
    progress: Progress | None = None,
    command: str = "",
) -> Report:
    """Makes a page about a fitted or saved `calibrator`, or about `method` fitted on `cal`.

    With `cal`, it is compared with `methods`; without, `calibrator` stands alone. `images` is the
    folder, or the images, that the test sets were collected from, to show mistakes. The page is
    written to `out` where it is given.
    """
    if cal is None and calibrator is None:
        raise ValueError("report needs cal, to fit a method on, or calibrator: give one of them")
    measured = unique([*resolve_metrics(metrics), *summary.TESTED])
    fitted = None if calibrator is None else open_calibrator(calibrator)
    loaded = load_test_sets(tests)
    pictures = None if images is None else Pictures.open(images, tests)
    asked = bootstrap or Bootstrap()
    comparison = None
    if cal is not None:
        comparison = _compare_with(
            fitted or CALIBRATORS.find(method).name, methods, cal, loaded, measured, asked, progress
        )
        fitted = fitted or open_calibrator(comparison.calibrators[CALIBRATORS.find(method).name])
    assert fitted is not None
    evaluation = evaluate_sets(fitted, loaded, measured, asked)
    resolved = evaluation.bootstrap if comparison is None else comparison.bootstrap
    assert resolved is not None
    sources = [cal, calibrator, *tests.values()]
    shown = Study(
        title=title,
        method=fitted.title,
        calibration_count=fitted.calibrator.sample_count or 0,
        sets=study.build_sets(evaluation, pictures),
        metrics=measured,
        provenance=Provenance(
            command, study.read_versions(), study.digest_files(sources), 0, resolved
        ),
        comparison=() if comparison is None else comparison.results,
        reference=resolved.reference or "",
        view_names=fitted.view_names,
        class_names=fitted.class_names,
        notes=_note_pictures(evaluation, pictures),
    )
    made = Report(render(shown), evaluation, comparison, None if out is None else Path(out))
    if out is not None:
        made.save(out)
    return made


def _compare_with(
    reported: FittedCalibrator | str,
    methods: str | Sequence[str] | None,
    cal: Any,
    tests: TestSets,
    metrics: Sequence[str],
    bootstrap: Bootstrap,
    progress: Progress | None,
) -> Comparison:
    """The calibrator that a report is about, last, beside methods fitted on calibration data."""
    data = load_data_set(cal, argument="cal")
    title = reported if isinstance(reported, str) else reported.title
    names, skipped = resolve_methods(methods, data, tests)
    names = [name for name in names if name != title]
    others = {} if isinstance(reported, str) else {title: reported}
    names += [] if others else [title]
    results, calibrators = compare_methods(
        data, tests, names, metrics, 1, bootstrap, progress, others
    )
    resolved = bootstrap.resolve([*names, *others])
    return Comparison(results, resolved, skipped, calibrators, data, tests)


def _note_pictures(evaluation: Evaluation, pictures: Pictures | None) -> tuple[str, ...]:
    sets = [test for test, _ in evaluation.tests.values()]
    is_shifted = any(test.shift is not None and bool(test.shift.any()) for test in sets)
    return (study.UNSHIFTED_PICTURES,) if pictures is not None and is_shifted else ()


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
