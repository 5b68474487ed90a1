"""Where commands write: results to standard output, everything else to standard error."""

from typing import TextIO

from rich.console import Console

OUT = Console(highlight=False)
ERR = Console(stderr=True, highlight=False)


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Warnings as one plain line."""
    ERR.print(f"warning: {message}", style="yellow", soft_wrap=True)
