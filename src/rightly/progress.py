"""Progress: one protocol for everything that takes a while, and one bar."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar

# Called with what is being done, how many steps are done, and of how many; 0 where none knows.
Progress = Callable[[str, int, int], object]


def ignore(step: str, done: int, total: int) -> None:
    """Report progress to nobody."""


@contextmanager
def track(progress: Progress | bool, step: str = "", *, keep: bool = False) -> Iterator[Progress]:
    """Yield what to call with each step: the given callable, or one that moves a bar for True.

    The bar is on standard error, in terminals and notebooks only, and wiped at the end unless
    `keep`: then it is printed elsewhere too. With `step` it is there at once, of unknown length.
    """
    if not isinstance(progress, bool):
        yield progress
        return
    console = _open_console() if progress else None
    if console is None or not (keep or console.is_terminal):
        yield ignore
        return
    with _make_bar(console, keep) as bar:
        task = bar.add_task(step, total=None)
        yield lambda step, done, total: bar.update(
            task, description=step, completed=done, total=total or None
        )


def _make_bar(console: "Console", keep: bool) -> "Bar":
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar
    from rich.text import Text

    class Speed(ProgressColumn):
        """Steps per second of this run: what an earlier one did counts for nothing."""

        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            if not speed:
                return Text("")
            return Text(f"{speed:,.0f}/s" if speed >= 10 else f"{speed:.2g}/s")

    # Names may hold what Rich would take for markup.
    title = TextColumn("{task.description}", markup=False)
    columns = (title, BarColumn(), MofNCompleteColumn(), Speed(), TimeRemainingColumn())
    return Bar(*columns, console=console, transient=not keep)


def _open_console() -> "Console":
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    if not console.is_jupyter:
        return console
    # Without this Rich wants widgets; notebooks obey a carriage return as terminals do.
    return Console(file=sys.stderr, force_terminal=True, force_jupyter=False, color_system=None)
