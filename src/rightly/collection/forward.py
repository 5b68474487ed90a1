"""Running: every batch through shifts, views and the classifier, into blocks of rows."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rightly.classifiers import Classifier
from rightly.collection.decoding import Batch, Report, decoded
from rightly.collection.plan import PRECISIONS, Plan, severity_of
from rightly.datasets import ImageDataset
from rightly.predictions.store import Block
from rightly.transforms.shifts import shift as shift_of
from rightly.transforms.views import view as view_of

IN_FLIGHT = 1  # batches handed to a device before the results of the oldest are waited for


def blocks_of(
    classifier: Classifier,
    images: ImageDataset,
    plan: Plan,
    shards: Iterable[int],
    batch_size: int = 256,
    workers: int | None = None,
    advance: Callable[[int], object] = lambda count: None,
    report: Report | None = None,
) -> Generator[tuple[int, Block], None, None]:
    """What the classifier says about each of the given shards of images.

    Results of a batch are fetched after the next one was handed to the device, so that neither
    waits for the other.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    report = report if report is not None else Report()
    batches = (
        (k, rows[start : start + batch_size])
        for k in shards
        for rows in [plan.rows(k, len(images))]
        for start in range(0, len(rows), batch_size)
    )
    on_gpu = classifier.device.type == "cuda"
    # Channels last, as pictures come: convolutions are faster so, on CPUs as on GPUs.
    prepared = classifier.prepared(PRECISIONS[plan.precision], channels_last=True)
    gathered: dict[int, list[Block]] = {}
    with prepared:
        running: deque[tuple[int, _Running]] = deque()
        for k, batch in decoded(
            images, classifier.preprocessing, batches, plan.unreadable, workers, report, on_gpu
        ):
            # Not around the yields, where it would hold for whoever takes the blocks as well.
            with torch.no_grad():
                running.append((k, _run(classifier, images, plan, batch)))
            yield from _finished(running, gathered, images, plan, advance, keep=IN_FLIGHT)
        yield from _finished(running, gathered, images, plan, advance, keep=0)


@dataclass(frozen=True)
class _Running:
    """A batch whose results may still be on their way from the device."""

    batch: Batch
    logits: Tensor | None = None  # (shifts + 1, n, c)
    view_logits: Tensor | None = None  # (shifts + 1, n, m, c)
    features: Tensor | None = None  # (shifts + 1, n, d)
    ready: torch.cuda.Event | None = None


def _run(classifier: Classifier, images: ImageDataset, plan: Plan, batch: Batch) -> _Running:
    if batch.pixels is None:
        return _Running(batch)
    clean = batch.pixels.to(classifier.device, non_blocking=True).float().div_(255)
    logits: list[Tensor] = []
    views: list[Tensor] = []
    features: list[Tensor] = []
    for text in (None, *plan.shifts):
        shown = clean
        if text is not None:
            name, severity = severity_of(text)
            shown = shift_of(name)(clean, severity, plan.seed)
        own, kept = classifier.forward(shown, plan.features)
        if not logits:
            images.check_classes(own.shape[1])
        logits.append(images.restrict(own))
        seen = [classifier.forward(view_of(name)(shown))[0] for name in plan.views]
        if seen:
            views.append(images.restrict(torch.stack(seen, 1)))
        if kept is not None:
            features.append(kept)
    return _Running(
        batch,
        _leaving(logits),
        _leaving(views),
        _leaving(features),
        _mark(classifier.device),
    )


def _leaving(parts: list[Tensor]) -> Tensor | None:
    """The parts, on their way to the CPU: a GPU goes on, and the copy is ready at the mark."""
    return torch.stack(parts).float().to("cpu", non_blocking=True) if parts else None


def _mark(device: torch.device) -> torch.cuda.Event | None:
    if device.type != "cuda":
        return None
    mark = torch.cuda.Event()
    mark.record(torch.cuda.current_stream(device))
    return mark


def _finished(
    running: deque[tuple[int, _Running]],
    gathered: dict[int, list[Block]],
    images: ImageDataset,
    plan: Plan,
    advance: Callable[[int], object],
    keep: int,
) -> Iterator[tuple[int, Block]]:
    """Takes results off the device; gives a shard when its last batch is there."""
    while len(running) > keep:
        k, result = running.popleft()
        gathered.setdefault(k, []).append(_block(result, images))
        advance(len(result.batch.rows))
        if result.batch.rows.stop == plan.rows(k, len(images)).stop:
            yield k, stacked(gathered.pop(k))


def _block(result: _Running, images: ImageDataset) -> Block:
    kept, skipped = result.batch.kept, tuple(result.batch.skipped)
    if result.logits is None:
        nothing = np.zeros(0, np.int64)
        return Block(nothing, [], None, nothing, np.zeros((0, 0)), None, None, skipped)
    if result.ready is not None:
        result.ready.synchronize()
    shifts, _, class_count = result.logits.shape
    names = [images.names[i] for i in kept]
    labels = None if images.labels is None else np.array([images.labels[i] for i in kept])
    if labels is not None and labels.max() >= class_count:
        raise ValueError(
            f"labels must lie in 0..{class_count - 1} for {class_count} classes, got "
            f"{labels.max()} for {names[int(labels.argmax())]}: do they count from 1?"
        )

    def rows(values: Tensor, kind: str) -> np.ndarray:
        # A finite sum proves that every entry is finite, at a fraction of the cost.
        if torch.isfinite(values.sum()):
            return values.flatten(0, 1).numpy()
        bad = ~torch.isfinite(values).flatten(2).all(-1).all(0)
        if bad.any():
            raise ValueError(
                f"the classifier gave NaN or infinite {kind} for {int(bad.sum())} images, the "
                f"first is {names[int(bad.nonzero()[0])]}: collect with precision='float32', or "
                "mend the classifier"
            )
        return values.flatten(0, 1).numpy()

    return Block(
        np.tile(kept, shifts),
        names * shifts,
        None if labels is None else np.tile(labels, shifts),
        np.repeat(np.arange(shifts), len(kept)),
        rows(result.logits, "logits"),
        None if result.view_logits is None else rows(result.view_logits, "logits of views"),
        None if result.features is None else rows(result.features, "features"),
        skipped,
    )


def stacked(blocks: list[Block]) -> Block:
    """One block of many, images as they are first, then shift by shift."""
    filled = [block for block in blocks if len(block.image)] or blocks[:1]

    def joined(name: str) -> Any:
        parts = [getattr(block, name) for block in filled]
        return None if parts[0] is None else np.concatenate(parts)

    whole = Block(
        joined("image"),
        [name for block in filled for name in block.names],
        joined("labels"),
        joined("shift"),
        joined("logits"),
        joined("view_logits"),
        joined("features"),
        tuple(item for block in blocks for item in block.skipped),
    )
    order = np.lexsort((whole.image, whole.shift))

    def sorted_rows(values: np.ndarray | None) -> Any:
        return None if values is None else values[order]

    return replace(
        whole,
        image=whole.image[order],
        names=[whole.names[i] for i in order],
        labels=sorted_rows(whole.labels),
        shift=whole.shift[order],
        logits=whole.logits[order],
        view_logits=sorted_rows(whole.view_logits),
        features=sorted_rows(whole.features),
    )
