"""The report: from calibrators and test sets to one HTML page."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

from rightly.calibrators import CALIBRATORS, Calibrator
from rightly.decisions.decision import ADAPTED
from rightly.evaluation.compare import Comparison, MethodLikes, compare, resolve_methods
from rightly.evaluation.data_sets import load_data_set, load_test_sets, open_data_sets
from rightly.evaluation.evaluate import Evaluation, evaluate, open_calibrator
from rightly.evaluation.groups import resolve_groups
from rightly.evaluation.measurement import resolve_metrics
from rightly.evaluation.results import FilePath, Result, ResultTable, unique
from rightly.files import check_target, write_atomically
from rightly.progress import Progress, track
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
from rightly.reporting.provenance import digest_files, read_versions

METHODS = ("uncalibrated", "temperature_scaling", "ensemble_temperature_scaling", "spline")
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

    def save(self, path: FilePath) -> None:
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
    calibrator: FilePath | Calibrator,
    tests: Mapping[str, Any],
    out: FilePath | None = None,
    *,
    cal: Any = None,
    methods: MethodLikes | None = METHODS,
    metrics: str | Sequence[str] = PAGE_METRICS,
    views: Sequence[str] | None = None,
    images: Any = None,
    groups: Any = None,
    class_names: Sequence[str] | None = None,
    title: str = "this classifier",
    resamples: int | None = None,
    seed: int = 0,
    any_classifier: bool = False,
    allow_overlap: bool = False,
    command: str = "",
    progress: Progress | bool = False,
) -> Report:
    """Make one HTML page about a calibrator on test sets, written to `out` where it is given.

    Args:
        calibrator: A fitted one, the path of a saved one, or with `cal` the name of a method.
        cal: Calibration data, to fit the methods on that the calibrator is compared with.
        methods: What to compare with, as for `compare`.
        views: Use only these views.
        images: The folder, or the images, that test sets were collected from, to show mistakes.
        groups: A table of groups of rows (`evaluation/groups.py`), or a mapping of names of tests
            to one group per row.
        class_names: In place of those that were collected.
        resamples: Bootstrap resamples of each test set; None for 1000, or more where many tests
            ask for it.
        seed: Of fits and resamples.
        any_classifier: Take test sets of another classifier.
        allow_overlap: Take test sets with more than 1 % of the calibration rows.
        command: What is named as the origin of the page.
        progress: True for a bar, or a function called with (step, done, total).
    """
    measured = unique([*resolve_metrics(metrics), *summary.TESTED])
    fitted, name = _open_calibrator(calibrator, cal)
    is_file = fitted is not None and isinstance(calibrator, str | os.PathLike)
    file = calibrator if is_file else None
    opened = open_data_sets(tests, views)
    loaded = load_test_sets(opened)
    data = None if cal is None else load_data_set(cal, views, argument="cal")
    read = [*([] if data is None else [data]), *opened.values()]
    paths = [predictions.source.path for predictions, _ in read]
    if out is not None:
        check_target(out, [file, images, groups, *paths])
    pictures = None if images is None else Pictures.open(images, loaded)
    of_rows = {} if groups is None else resolve_groups(groups, opened)
    allowed = {"any_classifier": any_classifier, "allow_overlap": allow_overlap}
    drawn: dict[str, Any] = {"resamples": resamples, "seed": seed, **allowed}
    comparison = evaluation = None
    if fitted is not None:  # first, as it may refuse the test sets
        evaluation = evaluate(fitted, opened, metrics=measured, **drawn)
    with track(progress) as step:
        if data is not None:
            selection = resolve_methods(methods, data, loaded)
            compared: dict[str, Any] = {**selection.methods}
            compared.pop(name, None)
            compared[name] = name if fitted is None else fitted  # the last
            comparison = compare(
                data,
                opened,
                methods=compared,
                metrics=measured,
                intervals=True,
                progress=step,
                **drawn,
            )
            comparison = replace(comparison, skipped=selection.skipped)
        if evaluation is None:
            assert comparison is not None
            evaluation = evaluate(comparison.calibrators[name], opened, metrics=measured, **drawn)
        fitted = evaluation.calibrator
        view_gains = rank_own_views(fitted, data, step)
    used = evaluation.resamples if comparison is None else comparison.resamples
    assert used is not None
    shown = Study(
        title=title,
        method=fitted.title,
        calibration_count=fitted.sample_count or 0,
        sets=build_sets(evaluation, pictures, of_rows),
        metrics=measured,
        provenance=Provenance(
            command, read_versions(), digest_files([file, groups, *paths]), seed, used
        ),
        comparison=() if comparison is None else comparison.results,
        reference="" if comparison is None else comparison.reference or "",
        fit_notes=() if comparison is None else comparison.notes,
        view_names=fitted.view_names,
        class_names=check_names(class_names or fitted.class_names, loaded),
        keeps_class=fitted.keeps_class,
        class_changes=evaluation.class_changes,
        decision=fitted.decision,
        file=str(file or ""),
        views=view_gains,
        coverage=None if fitted.sets is None else fitted.sets.describe(),
        void=_find_void(fitted),
        notes=note_pictures(evaluation, pictures),
    )
    made = Report(render(shown), evaluation, comparison, None if out is None else Path(out))
    if out is not None:
        made.save(out)
    return made


def _find_void(fitted: Calibrator) -> str | None:
    """Why the guarantee of the decision or the prediction sets is void, where there is one."""
    decision = fitted.decision
    if fitted.sets is None and (decision is None or not decision.has_guarantee):
        return None
    void = None if decision is None else decision.void
    return void or (ADAPTED if fitted.is_adapted else None)


def _open_calibrator(calibrator: Any, cal: Any) -> tuple[Calibrator | None, str]:
    """The calibrator, or None for a method that is fitted on `cal`, and its name in tables."""
    if not isinstance(calibrator, str) or calibrator not in CALIBRATORS:
        fitted = open_calibrator(calibrator)
        return fitted, fitted.title
    if cal is None:
        raise ValueError(
            f"calibrator must be fitted or a path without cal, got the method {calibrator!r}: pass "
            "cal= to fit it on"
        )
    return None, CALIBRATORS.find(calibrator).name
