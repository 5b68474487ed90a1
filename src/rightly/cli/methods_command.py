"""`rightly methods`: what calibrators there are."""

from rightly.cli.console import OUT

EXAMPLE = "rightly methods"


def run() -> None:
    """List the calibration methods by group, with needs and cost."""
    from rightly.calibrators import CALIBRATORS
    from rightly.reporting.method_list import render_methods
    from rightly.reporting.terminal import show

    show(OUT, render_methods, CALIBRATORS.values())
