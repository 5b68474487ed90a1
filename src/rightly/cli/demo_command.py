"""`rightly demo`: the main job, on data in the package."""

from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from rightly.cli.console import ERR, OUT, print_line
from rightly.cli.inputs import Methods

EXAMPLE = "rightly demo --out report.html"
REPORTED = "rightly"  # what the report is about: the default of fit


def run(
    methods: Methods = None,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where to write the report (.html).")
    ] = Path("rightly-demo-report.html"),
) -> None:
    """Compare calibrators on data in the package and write a report."""
    from rightly.cli import _legacy_reporting as reporting
    from rightly.demo_data import TESTS, load_demo_set
    from rightly.evaluation.measurement import TABLE_METRICS, fitted_by
    from rightly.reporting import html, tables

    predictions, labels = load_demo_set("cal")
    tests = {title: load_demo_set(name) for name, title in TESTS.items()}
    OUT.print(
        f"A ResNet-20 on CIFAR-10: each calibrator fitted on {len(predictions)} predictions, "
        "tested in distribution and under two shifts.\n"
    )
    names = reporting.select_methods(methods, predictions, tests)
    bootstrap = reporting.make_bootstrap(names, None, 0)
    rows = reporting.compare_with_progress(
        predictions, labels, tests, names, TABLE_METRICS, 1, bootstrap
    )
    tables.print_comparison(rows, OUT)
    OUT.print("\nAll values in %; ece uses 25 bins; ↓ lower is better. The best is bold.")
    if find_spec("jinja2") is None:
        print_line("no report: it needs jinja2, pip install 'rightly[report]'", ERR)
        return
    data = files("rightly.demo_data")
    study = reporting.study_of(
        predictions,
        labels,
        tests,
        fitted_by(REPORTED, predictions, labels),
        rows,
        bootstrap,
        title="a ResNet-20 on CIFAR-10",
        command="rightly demo" + (f" --methods {methods}" if methods else ""),
        digests={
            f"{name}.npz": reporting.digest(Path(str(data / f"{name}.npz")))
            for name in ("cal", *TESTS)
        },
    )
    html.write(out, study)
    print_line(f"\nThe same as a page to read: {out.resolve()}")
