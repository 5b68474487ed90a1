"""`rightly demo`: the main job, on data in the package."""

from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from rightly.cli.console import ERR, OUT, print_line, print_skipped, show_steps
from rightly.cli.inputs import Methods, select_given, select_names

EXAMPLE = "rightly demo --out report.html"


def run(
    methods: Methods = None,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where to write the report (.html).")
    ] = Path("rightly-demo-report.html"),
) -> None:
    """Compare calibrators on data in the package and write a report."""
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
    print_skipped(comparison.skipped)
    show(OUT, render_comparison, comparison)
    if find_spec("jinja2") is None:
        print_line("no report: it needs jinja2, pip install 'rightly[report]'", ERR)
        return
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
