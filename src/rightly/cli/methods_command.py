"""`rightly methods`: what calibrators there are."""

from rightly.cli.console import OUT

EXAMPLE = "rightly methods"


def run() -> None:
    """List the calibration methods and what each needs."""
    from rightly.calibrators import CALIBRATORS
    from rightly.reporting.terminal import render_methods, show

    show(OUT, render_methods, CALIBRATORS.values())
