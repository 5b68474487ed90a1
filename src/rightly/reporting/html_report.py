"""The report: from calibrators and test sets to one HTML page."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from rightly.calibrators import CALIBRATORS, FittedCalibrator
from rightly.decisions.decision import ADAPTED
from rightly.evaluation.data_sets import (
    LabelledSet,
    TestSets,
    load_data_set,
    load_test_sets,
    measure_accuracies,
    open_data_sets,
)
from rightly.evaluation.groups import resolve_groups
from rightly.evaluation.leakage import CalibrationData, check_test_sets
from rightly.evaluation.measurement import Progress, compare_methods, resolve_metrics
from rightly.evaluation.method_selection import resolve_methods
from rightly.evaluation.results import Bootstrap, Result, unique
from rightly.files import check_target, write_atomically
from rightly.reporting.comparison import Comparison
from rightly.reporting.evaluation_table import Evaluation, evaluate_sets, open_calibrator
from rightly.reporting.html import summary
from rightly.reporting.html.page import render
from rightly.reporting.html.study import Pictures, Provenance, Study
from rightly.reporting.html.study_sets import (
    build_sets,
    check_names,
    note_pictures,
    rank_own_views,
)
from rightly.reporting.layout import Layout
from rightly.reporting.progress_line import follow
from rightly.reporting.provenance import digest_files, read_versions
from rightly.reporting.result_table import ResultTable

METHODS = ("uncalibrated", "temperature_scaling", "ensemble_temperature_scaling", "spline")
METHOD = "correctness_logistic"
PAGE_METRICS = ("ece", "brier", "ks", "auroc", "aurc")


@dataclass(frozen=True, eq=False, repr=False)
class Report(ResultTable[Result]):
    """One HTML page, and the results that it shows."""

    kind = "report"

    html: str
    evaluation: Evaluation
    comparison: Comparison | None = None
    path: Path | None = None  # where it was written

    @property
    def rows(self) -> Sequence[Result]:
        return self.evaluation.rows

    def to_records(self) -> list[dict[str, Any]]:
        return self.evaluation.to_records()

    def lay_out(self) -> Layout:
        return self.evaluation.lay_out()

    def describe(self) -> dict[str, Any]:
        return self.evaluation.describe()

    def plot(self, kind: str = "reliability", **options: Any) -> Any:
        """Draws a figure of its evaluation."""
        return self.evaluation.plot(kind, **options)

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
    views: Sequence[str] | None = None,
    images: Any = None,
    groups: Any = None,
    class_names: Sequence[str] | None = None,
    title: str = "this classifier",
    bootstrap: Bootstrap | None = None,
    progress: Progress | bool | None = None,
    command: str = "",
    any_classifier: bool = False,
    allow_overlap: bool = False,
) -> Report:
    """Makes a page about a fitted or saved `calibrator`, or about `method` fitted on `cal`.

    With `cal`, it is compared with `methods`; without, `calibrator` stands alone. `images` is the
    folder, or the images, that the test sets were collected from, to show mistakes. `groups` is a
    table of them (`evaluation/groups.py`), or maps names of tests to one group a row.
    `class_names` stand in for those that were collected. The page is written to `out` where it is
    given; with `views`, only these are used. Test sets of another classifier, or with more than
    1 % of the calibration rows, are refused unless `any_classifier` or `allow_overlap`.
    """
    if cal is None and calibrator is None:
        raise ValueError("report needs cal, to fit a method on, or calibrator: give one of them")
    measured = unique([*resolve_metrics(metrics), *summary.TESTED])
    fitted = None if calibrator is None else open_calibrator(calibrator)
    opened = open_data_sets(tests, views)
    loaded = load_test_sets(opened)
    data = None if cal is None else load_data_set(cal, views, argument="cal")
    read = [*([] if data is None else [data]), *opened.values()]
    paths = [predictions.source.path for predictions, _ in read]
    if out is not None:
        check_target(out, [calibrator, images, groups, *paths])
    known = [] if data is None else [CalibrationData.of_predictions(data[0])]
    known += [] if fitted is None else [CalibrationData.of_calibrator(fitted)]
    check_test_sets(known, loaded, any_classifier, allow_overlap)
    pictures = None if images is None else Pictures.open(images, loaded)
    of_rows = {} if groups is None else resolve_groups(groups, opened)
    asked = bootstrap or Bootstrap()
    comparison = None
    if data is not None:
        about = fitted or CALIBRATORS.find(method).name
        with follow(progress) as step:
            comparison = _compare_with(about, methods, data, loaded, measured, asked, step)
        fitted = fitted or open_calibrator(comparison.calibrators[CALIBRATORS.find(method).name])
    assert fitted is not None
    evaluation = evaluate_sets(fitted, loaded, measured, asked)
    with follow(progress) as step:
        view_gains = rank_own_views(fitted, data, step)
    resolved = evaluation.bootstrap if comparison is None else comparison.bootstrap
    assert resolved is not None
    shown = Study(
        title=title,
        method=fitted.title,
        calibration_count=fitted.calibrator.sample_count or 0,
        sets=build_sets(evaluation, pictures, of_rows),
        metrics=measured,
        provenance=Provenance(
            command, read_versions(), digest_files([calibrator, groups, *paths]), 0, resolved
        ),
        comparison=() if comparison is None else comparison.results,
        reference=resolved.reference or "",
        fit_notes=() if comparison is None else comparison.notes,
        view_names=fitted.view_names,
        class_names=check_names(class_names or fitted.class_names, loaded),
        keeps_class=fitted.keeps_class,
        class_changes=evaluation.class_changes,
        decision=fitted.decision,
        file=str(calibrator) if isinstance(calibrator, str | os.PathLike) else "",
        views=view_gains,
        coverage=None if fitted.sets is None else fitted.sets.describe(),
        void=_find_void(fitted),
        notes=note_pictures(evaluation, pictures),
    )
    made = Report(render(shown), evaluation, comparison, None if out is None else Path(out))
    if out is not None:
        made.save(out)
    return made


def _find_void(fitted: FittedCalibrator) -> str | None:
    """Why the guarantee of the decision or the prediction sets is void, where there is one."""
    decision = fitted.decision
    if fitted.sets is None and (decision is None or decision.kind != "guaranteed"):
        return None
    void = None if decision is None else decision.void
    return void or (ADAPTED if fitted.calibrator.is_adapted else None)


def _compare_with(
    reported: FittedCalibrator | str,
    methods: str | Sequence[str] | None,
    data: LabelledSet,
    tests: TestSets,
    metrics: Sequence[str],
    bootstrap: Bootstrap,
    progress: Progress | None,
) -> Comparison:
    """The calibrator that a report is about, last, beside methods fitted on calibration data."""
    title = reported if isinstance(reported, str) else reported.title
    names, skipped = resolve_methods(methods, data, tests)
    names = [name for name in names if name != title]
    others = {} if isinstance(reported, str) else {title: reported}
    names += [] if others else [title]
    results, calibrators, notes = compare_methods(
        data, tests, names, metrics, 1, bootstrap, progress, others
    )
    resolved = bootstrap.resolve([*names, *others])
    accuracy = measure_accuracies(tests)
    return Comparison(results, resolved, skipped, calibrators, data, tests, accuracy, notes)
