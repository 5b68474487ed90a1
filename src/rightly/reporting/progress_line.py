"""A line that shows how far something is, in a terminal and in a notebook."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rightly.evaluation.measurement import Progress

WIDTH = 20


@contextmanager
def follow(progress: Progress | bool | None) -> Iterator[Progress | None]:
    """What to call with each step: the given function or, for True, one that prints a bar."""
    if not isinstance(progress, bool):
        yield progress
        return
    if not progress:
        yield None
        return
    longest = 0

    def show(step: str, done: int, total: int) -> None:
        nonlocal longest
        filled = WIDTH * done // max(total, 1)
        line = f"{'█' * filled}{'░' * (WIDTH - filled)} {done}/{total} {step}"
        longest = max(longest, len(line))
        # Notebooks obey a carriage return as terminals do, without widgets.
        print(f"\r{line:<{longest}}", end="", file=sys.stderr, flush=True)  # noqa: T201

    try:
        yield show
    finally:
        print(f"\r{'':<{longest}}\r", end="", file=sys.stderr, flush=True)  # noqa: T201
