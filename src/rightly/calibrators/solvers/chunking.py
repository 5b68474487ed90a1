"""Slices of rows that keep what is worked on at a time small."""

from collections.abc import Iterator

import torch

from rightly.tensor_shapes import Features, Logits

CHUNK = 2**19  # entries worked on at a time: two megabytes stay in a processor's cache
BLOCK = 1024  # samples that are compared with all others at a time


def iterate_chunks(logits: Logits) -> Iterator[slice]:
    """Slices of rows small enough to stay in cache; all rows at once in a graph being traced."""
    if torch.compiler.is_exporting():
        return iter([slice(None)])
    n, c = logits.shape
    rows = max(1, CHUNK // c)
    return (slice(start, min(start + rows, n)) for start in range(0, n, rows))


def iterate_blocks(points: Features) -> Iterator[slice]:
    """Slices of rows that are compared with any number of others; all at once when traced."""
    if torch.compiler.is_exporting():
        return iter([slice(None)])
    return (slice(start, start + BLOCK) for start in range(0, len(points), BLOCK))
