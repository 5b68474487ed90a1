"""`rightly demo`: the main job, on data in the package."""

from dataclasses import replace
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated

import typer

from rightly.cli.console import ERR, OUT, print_line, print_skipped, show_steps
from rightly.cli.inputs import Methods, select_given, select_names

if TYPE_CHECKING:
    from rightly.reporting import Comparison

EXAMPLE = "rightly demo --out report.html"
ADAPTED = ("temperature_scaling", "correctness_logistic")  # shown adapted to each test set too
STREAM = ("ind", "gaussian_blur", "ind", "gaussian_noise")
WINDOW = 250


def run(
    methods: Methods = None,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where to write the report (.html).")
    ] = Path("rightly-demo-report.html"),
) -> None:
    """Compare calibrators on packaged data and write a report."""
    from rightly.demo_data import CALIBRATION, TESTS
    from rightly.reporting import compare, report
    from rightly.reporting.terminal import render_comparison, show

    folder = Path(str(files("rightly.demo_data")))
    cal = folder / f"{CALIBRATION}.npz"
    tests = {title: folder / f"{name}.npz" for name, title in TESTS.items()}
    OUT.print(
        "A ResNet-20 on CIFAR-10: each calibrator fitted on 5,000 predictions, tested in "
        "distribution and under two shifts.\n"
    )
    with show_steps() as progress:
        comparison = compare(cal, tests, methods=select_names(methods), progress=progress)
        if methods is None:
            adapted = compare(cal, tests, methods=ADAPTED, adapt=True, progress=progress)
            comparison = append_adapted(comparison, adapted)
    print_skipped(comparison.skipped)
    show(OUT, render_comparison, comparison)
    if methods is None:
        for sentence in summarise(comparison):
            print_line("\n" + fill(sentence, min(OUT.width, 100)))
    if find_spec("jinja2") is None:
        print_line("no report: it needs jinja2, pip install 'rightly[report]'", ERR)
    else:
        with show_steps() as progress:
            report(
                tests,
                cal=cal,
                out=out,
                title="a ResNet-20 on CIFAR-10",
                progress=progress,
                command="rightly demo" + (f" --methods {methods}" if methods else ""),
                **select_given(methods=methods),
            )
        print_line(f"\nA report on correctness_logistic: {out.resolve()}")
    if methods is None:
        _draw_weather(comparison, out.with_name(f"{out.stem}-stream.svg"))


def append_adapted(comparison: "Comparison", adapted: "Comparison") -> "Comparison":
    """The rows of one comparison, then those of another, named as adapted."""
    rows = [row._replace(calibrator=f"{row.calibrator}, adapted") for row in adapted.results]
    note = "Adapted: to each test set as a batch, without its labels."
    results = [*comparison.results, *rows]
    return replace(comparison, results=results, notes=[*comparison.notes, note])


def summarise(comparison: "Comparison") -> list[str]:
    """What the table means, in three sentences."""
    ece = {
        (row.calibrator, row.dataset): f"{100 * row.value:.1f} %"
        for row in comparison.results
        if row.metric == "ece"
    }
    known, *shifts = comparison.datasets
    named = " and ".join(shifts)

    def under_shift(name: str) -> str:
        return " and ".join(ece[name, shift] for shift in shifts)

    right = {name: f"{100 * share:.0f} %" for name, share in comparison.accuracy.items()}
    base, own = ADAPTED
    return [
        f"In distribution calibration is easy: confidence misses accuracy by "
        f"{ece['uncalibrated', known]} before (ECE) and {ece[base, known]} after temperature "
        f"scaling.",
        f"Under {named} the classifier is right only {' and '.join(right[s] for s in shifts)} of "
        f"the time instead of {right[known]}, and does not notice: after temperature scaling "
        f"confidence misses by {under_shift(base)}, with the paper's ca_views by "
        f"{under_shift('ca_views')}, with {own} by {under_shift(own)}.",
        f"A batch tells what one image cannot: adapted to each test set without its labels, "
        f"{own} misses by {under_shift(f'{own}, adapted')} (rightly adapt, serve --adapt).",
    ]


def _draw_weather(comparison: "Comparison", path: Path) -> None:
    """A stream that changes from set to set and back."""
    from rightly.demo_data import TESTS

    if find_spec("matplotlib") is None:
        print_line("no picture: it needs matplotlib, pip install 'rightly[plots]'", ERR)
        return
    from rightly.reporting.figures.stream import draw_stream, measure_stream
    from rightly.reporting.figures.style import save

    stream = [TESTS[name] for name in STREAM]
    fitted = comparison.calibrators[ADAPTED[1]]
    save(draw_stream(measure_stream(fitted, comparison.tests, stream, WINDOW), WINDOW), path)
    print_line(f"A stream whose weather changes: {path.resolve()}")
