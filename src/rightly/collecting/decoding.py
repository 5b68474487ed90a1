"""Decoding: threads turn pictures into batches a little ahead of the model."""

import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import torch
from torch import Tensor

from rightly.images import ImageSet, UnreadableImage, converted_from
from rightly.models import Preprocessing

AHEAD = 3  # batches decoded before the model asks for them


@dataclass
class Report:
    """What happened on the way, for the user to be told."""

    images: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)
    converted: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Batch:
    """Decoded images of one shard, in order; those that could not be decoded are listed."""

    rows: range
    kept: list[int]
    pixels: Tensor | None
    skipped: list[tuple[str, str]]


def decoded(
    images: ImageSet,
    preprocessing: Preprocessing,
    batches: Iterable[tuple[int, range]],
    unreadable: str,
    workers: int | None,
    report: Report,
) -> Iterator[tuple[int, Batch]]:
    """Batches, decoded by threads a little ahead of whoever takes them."""

    def read(i: int) -> Tensor:
        picture = images.read(i)
        mode = converted_from(picture)
        if mode is not None:
            report.converted[mode] += 1
        return preprocessing.geometry(picture)

    pool = ThreadPoolExecutor(workers or os.cpu_count() or 1, "rightly-decode")
    try:
        waiting: deque[tuple[int, range, list[Future[Tensor]]]] = deque()
        for k, rows in batches:
            waiting.append((k, rows, [pool.submit(read, i) for i in rows]))
            if len(waiting) > AHEAD:
                yield _gathered(images, unreadable, *waiting.popleft(), report)
        while waiting:
            yield _gathered(images, unreadable, *waiting.popleft(), report)
    finally:
        pool.shutdown(cancel_futures=True)


def _gathered(
    images: ImageSet,
    unreadable: str,
    k: int,
    rows: range,
    futures: list[Future[Tensor]],
    report: Report,
) -> tuple[int, Batch]:
    kept: list[int] = []
    pixels: list[Tensor] = []
    skipped: list[tuple[str, str]] = []
    for i, future in zip(rows, futures, strict=True):
        try:
            picture = future.result()
        except UnreadableImage as error:
            if unreadable == "stop":
                raise ValueError(
                    f"{error}; with unreadable='skip' such images are left out and listed"
                ) from error
            skipped.append((error.name, error.reason))
            continue
        if pixels and picture.shape != pixels[0].shape:
            raise ValueError(
                f"images must have one size to form a batch, but {images.names[i]} is "
                f"{tuple(picture.shape[1:])} and others are {tuple(pixels[0].shape[1:])}: "
                "give the model's input size in preprocessing"
            )
        kept.append(i)
        pixels.append(picture)
    report.skipped += skipped
    return k, Batch(rows, kept, torch.stack(pixels) if pixels else None, skipped)
