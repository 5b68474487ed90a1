"""Running: every batch through shifts, views and the classifier, into blocks of rows."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rightly.collecting.decoding import Batch, Report, decoded
from rightly.collecting.plan import PRECISIONS, SHARD, Plan, severity_of
from rightly.images import ImageSet
from rightly.models import Classifier
from rightly.shifts import shift as shift_of
from rightly.storage.parquet import Block
from rightly.views import view as view_of


def blocks_of(
    classifier: Classifier,
    images: ImageSet,
    plan: Plan,
    shards: Iterable[int],
    batch_size: int = 256,
    workers: int | None = None,
    advance: Callable[[int], object] = lambda count: None,
    report: Report | None = None,
) -> Iterator[tuple[int, Block]]:
    """What the classifier says about each of the given shards of images.

    Results of a batch are fetched after the next one was handed to the device, so that neither
    waits for the other.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    report = report if report is not None else Report()
    batches = (
        (k, range(start, min(start + batch_size, (k + 1) * SHARD, len(images))))
        for k in shards
        for start in range(k * SHARD, min((k + 1) * SHARD, len(images)), batch_size)
    )
    prepared = classifier.prepared(
        PRECISIONS[plan.precision], channels_last=classifier.device.type == "cuda"
    )
    gathered: dict[int, list[Block]] = {}
    with prepared, torch.no_grad():
        running: deque[tuple[int, _Running]] = deque()
        for k, batch in decoded(
            images, classifier.preprocessing, batches, plan.unreadable, workers, report
        ):
            running.append((k, _run(classifier, images, plan, batch)))
            if len(running) > 1:
                yield from _finished(running, gathered, images, advance, keep=1)
        yield from _finished(running, gathered, images, advance, keep=0)


@dataclass(frozen=True)
class _Running:
    """A batch whose results may still be on their way from the device."""

    batch: Batch
    logits: Tensor | None = None  # (shifts + 1, n, c)
    view_logits: Tensor | None = None  # (shifts + 1, n, m, c)
    features: Tensor | None = None  # (shifts + 1, n, d)


def _run(classifier: Classifier, images: ImageSet, plan: Plan, batch: Batch) -> _Running:
    if batch.pixels is None:
        return _Running(batch)
    pixels = batch.pixels
    if classifier.device.type == "cuda":
        pixels = pixels.pin_memory().to(classifier.device, non_blocking=True)
    clean = pixels.float().div_(255)
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
        torch.stack(logits),
        torch.stack(views) if views else None,
        torch.stack(features) if features else None,
    )


def _finished(
    running: deque[tuple[int, _Running]],
    gathered: dict[int, list[Block]],
    images: ImageSet,
    advance: Callable[[int], object],
    keep: int,
) -> Iterator[tuple[int, Block]]:
    """Takes results off the device; gives a shard when its last batch is there."""
    while len(running) > keep:
        k, result = running.popleft()
        gathered.setdefault(k, []).append(_block(result, images))
        advance(len(result.batch.rows))
        if result.batch.rows.stop == min((k + 1) * SHARD, len(images)):
            yield k, stacked(gathered.pop(k))


def _block(result: _Running, images: ImageSet) -> Block:
    kept, skipped = result.batch.kept, tuple(result.batch.skipped)
    if result.logits is None:
        nothing = np.zeros(0, np.int64)
        return Block(nothing, [], None, nothing, np.zeros((0, 0)), None, None, skipped)
    logits = result.logits.float().cpu()
    finite = torch.isfinite(logits).all(-1).all(0)
    if not finite.all():
        first = images.names[kept[int((~finite).nonzero()[0])]]
        raise ValueError(
            f"the classifier gave NaN or infinite logits for {int((~finite).sum())} images, the "
            f"first is {first}: collect with precision='float32', or mend the classifier"
        )
    shifts = len(logits)
    labels = None if images.labels is None else np.array([images.labels[i] for i in kept])

    def rows(values: Tensor | None) -> np.ndarray | None:
        return None if values is None else values.float().cpu().flatten(0, 1).numpy()

    return Block(
        np.tile(kept, shifts),
        [images.names[i] for i in kept] * shifts,
        None if labels is None else np.tile(labels, shifts),
        np.repeat(np.arange(shifts), len(kept)),
        logits.flatten(0, 1).numpy(),
        rows(result.view_logits),
        rows(result.features),
        skipped,
    )


def stacked(blocks: list[Block]) -> Block:
    """One block of many, images as they are first, then shift by shift."""
    filled = [block for block in blocks if len(block.index)] or blocks[:1]

    def joined(name: str) -> Any:
        parts = [getattr(block, name) for block in filled]
        return None if parts[0] is None else np.concatenate(parts)

    whole = Block(
        joined("index"),
        [name for block in filled for name in block.names],
        joined("labels"),
        joined("shift"),
        joined("logits"),
        joined("view_logits"),
        joined("features"),
        tuple(item for block in blocks for item in block.skipped),
    )
    order = np.lexsort((whole.index, whole.shift))

    def sorted_rows(values: np.ndarray | None) -> Any:
        return None if values is None else values[order]

    return replace(
        whole,
        index=whole.index[order],
        names=[whole.names[i] for i in order],
        labels=sorted_rows(whole.labels),
        shift=whole.shift[order],
        logits=whole.logits[order],
        view_logits=sorted_rows(whole.view_logits),
        features=sorted_rows(whole.features),
    )
