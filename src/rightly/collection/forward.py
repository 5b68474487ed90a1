"""Forward passes: every batch through shifts, views and the classifier, into blocks of rows."""

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rightly.classifiers.classifier import Classifier
from rightly.collection.decoding import Batch, CollectionLog, decode_batches
from rightly.collection.plan import PRECISIONS, Plan, parse_shift
from rightly.collection.repeatability import check_repeatable
from rightly.datasets.image_dataset import ImageDataset
from rightly.predictions.masking import bound_masked
from rightly.predictions.store import Block
from rightly.progress import Progress, ignore
from rightly.transforms.image_tensors import Images
from rightly.transforms.shifts import SHIFTS
from rightly.transforms.views import VIEWS

IN_FLIGHT = 1  # batches handed to a GPU before the results of the oldest are waited for


def compute_blocks(
    classifier: Classifier,
    images: ImageDataset,
    plan: Plan,
    shards: Iterable[int],
    batch_size: int = 256,
    workers: int | None = None,
    progress: Progress = ignore,
    log: CollectionLog | None = None,
) -> Generator[tuple[int, Block], None, None]:
    """The classifier's outputs for each of these shards of images."""
    rows_of = {k: plan.rows(k, len(images)) for k in shards}
    gathered: list[Block] = []
    done, total = 0, sum(map(len, rows_of.values()))
    for k, rows, block in compute_batches(
        classifier, images, plan, rows_of, batch_size, workers, log
    ):
        gathered.append(block)
        done += len(rows)
        progress("collecting", done, total)
        if rows.stop == rows_of[k].stop:
            yield k, combine_blocks(gathered)
            gathered = []


def compute_batches(
    classifier: Classifier,
    images: ImageDataset,
    plan: Plan,
    rows_of: Mapping[int, range],
    batch_size: int = 256,
    workers: int | None = None,
    log: CollectionLog | None = None,
) -> Generator[tuple[int, range, Block], None, None]:
    """The classifier's outputs for these images of shards, batch by batch in their order.

    Results of a batch are fetched from a GPU after the next one was handed to it, so that neither
    waits for the other.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    log = log if log is not None else CollectionLog()
    batches = (
        (k, rows[start : start + batch_size])
        for k, rows in rows_of.items()
        for start in range(0, len(rows), batch_size)
    )
    on_gpu = classifier.device.type == "cuda"
    is_checked = plan.allow_random
    # Channels last, as images come: convolutions are faster so, on CPUs as on GPUs.
    with classifier.prepare(PRECISIONS[plan.precision], channels_last=True):
        running: deque[tuple[int, _RunningBatch]] = deque()
        for k, batch in decode_batches(
            images, classifier.preprocessing, batches, plan.unreadable, workers, log, on_gpu
        ):
            # Not around the yields, where it would hold for whoever takes the blocks as well.
            with torch.no_grad():
                if batch.pixels is not None and not is_checked:
                    pixels = _scale(batch.pixels, classifier.device)
                    check_repeatable(classifier, pixels, plan.precision)
                    is_checked = True
                running.append((k, _run_batch(classifier, images, plan, batch)))
            # On a CPU results are there at once, and so is the progress.
            yield from _take_finished(running, images, IN_FLIGHT if on_gpu else 0)
        yield from _take_finished(running, images, keep=0)


@dataclass(frozen=True)
class _RunningBatch:
    """A batch whose results may still be on their way from the device."""

    batch: Batch
    logits: Tensor | None = None  # (shifts + 1, n, c)
    view_logits: Tensor | None = None  # (shifts + 1, n, m, c)
    features: Tensor | None = None  # (shifts + 1, n, d)
    ready: torch.cuda.Event | None = None


def _run_batch(
    classifier: Classifier, images: ImageDataset, plan: Plan, batch: Batch
) -> _RunningBatch:
    if batch.pixels is None:
        return _RunningBatch(batch)
    clean = _scale(batch.pixels, classifier.device)
    logits: list[Tensor] = []
    views: list[Tensor] = []
    features: list[Tensor] = []
    for text in (None, *plan.shifts):
        inputs = clean
        if text is not None:
            name, severity = parse_shift(text)
            inputs = SHIFTS.find(name)(clean, severity, plan.seed)
        image_logits, image_features = classifier.forward(inputs, plan.features)
        if not logits:
            images.check_classes(image_logits.shape[1])
        logits.append(images.restrict(image_logits))
        view_logits = [classifier.forward(VIEWS.find(name)(inputs))[0] for name in plan.views]
        if view_logits:
            views.append(images.restrict(torch.stack(view_logits, 1)))
        if image_features is not None:
            features.append(image_features)
    return _RunningBatch(
        batch,
        _copy_to_cpu(logits),
        _copy_to_cpu(views),
        _copy_to_cpu(features),
        _record_event(classifier.device),
    )


def _scale(pixels: Tensor, device: torch.device) -> Images:
    """Bytes as images in [0, 1] on the device."""
    return pixels.to(device, non_blocking=True).float().div_(255)


def _copy_to_cpu(parts: list[Tensor]) -> Tensor | None:
    """Starts copies to the CPU, which are complete at the event recorded after them."""
    return torch.stack(parts).float().to("cpu", non_blocking=True) if parts else None


def _record_event(device: torch.device) -> torch.cuda.Event | None:
    if device.type != "cuda":
        return None
    event = torch.cuda.Event()
    event.record(torch.cuda.current_stream(device))
    return event


def _take_finished(
    running: deque[tuple[int, _RunningBatch]], images: ImageDataset, keep: int
) -> Iterator[tuple[int, range, Block]]:
    """Waits for all but the last `keep` batches."""
    while len(running) > keep:
        k, result = running.popleft()
        yield k, result.batch.rows, _make_block(result, images)


def _make_block(result: _RunningBatch, images: ImageDataset) -> Block:
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

    def to_rows(values: Tensor, kind: str) -> np.ndarray:
        if kind != "features":
            values = bound_masked(values)  # -inf: a class that cannot be
        # A finite sum proves that every entry is finite, at a fraction of the cost.
        if torch.isfinite(values.sum()):
            return values.flatten(0, 1).numpy()
        bad = ~torch.isfinite(values).flatten(2).all(-1).all(0)
        if bad.any():
            raise ValueError(
                f"the classifier gave NaN or infinite {kind} for {int(bad.sum())} images, the "
                f"first is {names[int(bad.nonzero()[0])]}: collect with precision='float32', or "
                "correct the classifier"
            )
        return values.flatten(0, 1).numpy()

    return Block(
        np.tile(kept, shifts),
        names * shifts,
        None if labels is None else np.tile(labels, shifts),
        np.repeat(np.arange(shifts), len(kept)),
        to_rows(result.logits, "logits"),
        None if result.view_logits is None else to_rows(result.view_logits, "logits of views"),
        None if result.features is None else to_rows(result.features, "features"),
        skipped,
        np.tile(np.array(result.batch.hashes, np.int64), shifts),
    )


def combine_blocks(blocks: list[Block]) -> Block:
    """One block of many: unshifted images first, then shift by shift."""
    filled = [block for block in blocks if len(block.image)] or blocks[:1]

    def join(name: str) -> Any:
        parts = [getattr(block, name) for block in filled]
        return None if parts[0] is None else np.concatenate(parts)

    whole = Block(
        join("image"),
        [name for block in filled for name in block.names],
        join("labels"),
        join("shift"),
        join("logits"),
        join("view_logits"),
        join("features"),
        tuple(item for block in blocks for item in block.skipped),
        join("image_hash"),
    )
    order = np.lexsort((whole.image, whole.shift))

    def sort(values: np.ndarray | None) -> Any:
        return None if values is None else values[order]

    return replace(
        whole,
        image=whole.image[order],
        names=[whole.names[i] for i in order],
        labels=sort(whole.labels),
        shift=whole.shift[order],
        logits=whole.logits[order],
        view_logits=sort(whole.view_logits),
        features=sort(whole.features),
        image_hash=sort(whole.image_hash),
    )
