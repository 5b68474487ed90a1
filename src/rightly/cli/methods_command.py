"""`rightly methods`: what calibrators there are."""

from rightly.cli.console import make_table, print_table

EXAMPLE = "rightly methods"


def run() -> None:
    """List the calibration methods and what each needs."""
    from rightly.calibrators import CALIBRATORS

    table = make_table("name", "needs", text=2)
    table.add_column("paper")
    table.add_column("note")
    for name, method in CALIBRATORS.items():
        needs = "logits" + "".join(f", {need}" for need in method.needs)
        needs += "".join(f" ({use})" for use in method.uses)
        table.add_row(name, needs, method.paper, method.note)
    print_table(table)
