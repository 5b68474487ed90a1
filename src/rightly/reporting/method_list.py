"""The methods there are, group by group, for a terminal."""

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rightly.reporting.terminal import natural_width

if TYPE_CHECKING:
    from rightly.calibrators import Method

GROUPS = {
    "baseline": "the table's baselines",
    "binary": "the probability of class 1 of two",
    "scaling": "logits scaled by class, or by a function",
    "binning": "bins and isotonic regressions",
    "literature": "networks and features",
    "paper": "the paper's own",
    "ablation": "its ablations, and controls",
    "released": "its released code to the letter",
    "own": "this project's, and yours",
}
COLUMNS = ("name", "needs", "class", "cost", "parameters", "paper", "note")


def render_methods(methods: "Iterable[Method]", width: int | None) -> RenderableType:
    """All that is known of each, by group; below each other where there is no room."""
    records = sorted(methods, key=lambda one: _place(one.group))  # stable within a group
    groups = {group: list(some) for group, some in groupby(records, lambda one: one.group)}
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    for heading in COLUMNS:
        table.add_column(heading, no_wrap=True)
    for group, some in groups.items():
        table.add_row(Text(_title(group), style="bold"))
        for one in some:
            table.add_row(*map(Text, _describe(one)))
    if width is None or natural_width(table) <= width:
        return table
    lines: list[RenderableType] = []
    for group, some in groups.items():
        lines.append(Text(_title(group), style="bold underline"))
        for one in some:
            name, needs, kept, cost, parameters, paper, note = _describe(one)
            head = Text(name, style="bold")
            head.append(f"  needs {needs}; class {kept}; cost {cost}", style="not bold")
            about = ": ".join(part for part in (paper, note) if part)
            about += f" [{parameters}]" if parameters else ""
            lines += [head, Padding(Text(about, style="dim"), (0, 0, 0, 2))]
    return Group(*lines)


def _place(group: str) -> tuple[int, str]:
    """Groups in their order, then those of somebody else's by name."""
    return (list(GROUPS).index(group) if group in GROUPS else len(GROUPS), group)


def _title(group: str) -> str:
    return f"{group}: {GROUPS[group]}" if group in GROUPS else f"{group}:"


def _describe(method: "Method") -> tuple[str, ...]:
    aliases = f" ({', '.join(method.aliases)})" if method.aliases else ""
    optional = "".join(f" ({use})" for use in method.uses)
    classes = f" of {method.fits_classes} classes" if method.fits_classes else ""
    return (
        method.name + aliases,
        ", ".join((f"logits{classes}", *method.needs)) + optional,
        "kept" if method.keeps_class else "may change",
        method.cost,
        method.parameters,
        method.paper,
        method.note,
    )
