"""The command that shows the main job on data in the package: demo."""

import argparse
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rightly.calibrators import CALIBRATORS
from rightly.cli.calibrating import bootstrap_for, compared
from rightly.cli.consoles import ERR, OUT
from rightly.cli.reporting import digest, study_of
from rightly.demo_data import TESTS, load_demo_set
from rightly.evaluation.measurement import TABLE_METRICS, fitted_by
from rightly.reporting import html as report
from rightly.reporting import tables

REPORT = "rightly-demo-report.html"
SHOWN = "rightly"  # what the report is about: the default of fit


def add_commands(commands: Any) -> None:
    """The command of this module and its arguments."""
    add = commands.add_parser("demo", help="compare all calibrators on data in the package")
    add.set_defaults(run=_demo)


def _demo(chosen: argparse.Namespace) -> None:
    predictions, labels = load_demo_set("cal")
    tests = {title: load_demo_set(name) for name, title in TESTS.items()}
    OUT.print(
        f"A ResNet-20 on CIFAR-10: every calibrator fitted on {len(predictions)} predictions, "
        "tested in distribution and under two shifts.\n"
    )
    methods = list(CALIBRATORS)
    bootstrap = bootstrap_for(methods, None, 0)
    rows = compared(predictions, labels, tests, methods, TABLE_METRICS, 1, bootstrap)
    tables.print_comparison(rows, OUT)
    OUT.print("\nAll values times 100; ece uses 25 bins; ↓ lower is better. The best is bold.")
    if find_spec("jinja2") is None:
        ERR.print("no report: it needs jinja2, pip install 'rightly[report]'", markup=False)
        return
    data = files("rightly.demo_data")
    study = study_of(
        predictions,
        labels,
        tests,
        fitted_by(SHOWN, predictions, labels),
        rows,
        bootstrap,
        title="a ResNet-20 on CIFAR-10",
        command="rightly demo",
        digests={
            f"{name}.npz": digest(Path(str(data / f"{name}.npz"))) for name in ("cal", *TESTS)
        },
    )
    report.write(Path(REPORT), study)
    OUT.print(f"\nThe same as a page to read: {Path(REPORT).resolve()}", soft_wrap=True)
