"""The last samples of a stream, as sums that merge.

A batch holds its place in time, counts of predicted classes and of binned scores, and the sum of
its shift scores in fixed point, so that the sums of batches are the same in whatever order they are
added. Windows of several workers therefore merge to the same window in any order.
"""

import json
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from rightly.checks import check_count, check_length, check_version, is_count, is_number, refuse
from rightly.files import parse_json
from rightly.shapes import AnyArray

FORMAT, VERSION = "rightly-window", 2
SCALE = 2**24  # steps of a unit; sums stay exact, also for readers of JSON that know floats only
MAX_SCORE = 2.0**10  # magnitude of a shift score
MAX_SAMPLES = 2**19  # in a batch
BINS = 8  # of scores per unit of log-odds: half a bin moves a mean confidence by 0.0002 at most
MAX_AHEAD_S = 3600.0  # of the present clock: later times are ignored
UNKNOWN = 0.0  # in place of a time that is ignored


@dataclass(frozen=True)
class WindowBatch:
    """A batch of a stream: worker and number tell it from every other."""

    worker: str
    number: int  # larger than that of every batch its worker knew of
    at: int | float  # its time, or its sequence number
    counts: Mapping[int, int]  # samples of each predicted class
    bins: Mapping[int, int]  # samples of each bin of scores, the log-odds of confidence
    shift_score: int  # sum, in steps of 1 / SCALE

    @classmethod
    def of(
        cls,
        worker: str,
        number: int,
        at: int | float,
        classes: AnyArray,
        scores: AnyArray,
        shift_score: AnyArray,
    ) -> "WindowBatch":
        """The sums of a batch, with one value per sample of each quantity."""
        classes = np.asarray(classes)
        if not 0 < len(classes) <= MAX_SAMPLES:
            raise ValueError(
                f"a batch must hold 1 to {MAX_SAMPLES} samples, got {len(classes)}: split it"
            )
        bins = np.floor(_check_values("confidence", scores, len(classes)) * BINS)
        steps = np.rint(_check_values("shift_score", shift_score, len(classes)) * SCALE)
        total = int(steps.astype(np.int64).sum())
        return cls(worker, number, at, _count(classes), _count(bins.astype(int)), total)

    @cached_property
    def samples(self) -> int:
        return sum(self.counts.values())

    @property
    def age_order(self) -> tuple[int | float, int, str]:
        """What batches are sorted by, the oldest first."""
        return self.at, self.number, self.worker


@dataclass(frozen=True)
class Window:
    """The newest batches of a stream, as few as hold `size` samples.

    `source` names what the values came from: windows of another calibrator do not merge with it.
    """

    size: int = 512
    source: str = ""
    batches: tuple[WindowBatch, ...] = field(default=())

    def __post_init__(self) -> None:
        check_count("window", self.size, remedy="pass a number of samples")
        object.__setattr__(self, "batches", _keep_newest(_unite(self.batches), self.size))

    @cached_property
    def samples(self) -> int:
        return sum(batch.samples for batch in self.batches)

    @property
    def counts(self) -> dict[int, int]:
        """Samples of each predicted class."""
        return _add_counts(batch.counts for batch in self.batches)

    @cached_property
    def mean_shift_score(self) -> float:
        """Mean over the window; nan where it is empty."""
        total = sum(batch.shift_score for batch in self.batches)
        return total / SCALE / self.samples if self.batches else float("nan")

    def scores(self) -> tuple[Float[np.ndarray, " b"], Int[np.ndarray, " b"]]:
        """Log-odds of confidence, to the middle of their bins, and how many samples have each."""
        bins = _add_counts(batch.bins for batch in self.batches)
        return (np.array(list(bins), float) + 0.5) / BINS, np.array(list(bins.values()), int)

    def place(self, at: int | float) -> tuple[int | float, int]:
        """Time and number of a batch that arrives now: never before those that are there."""
        newest = max((batch.at for batch in self.batches), default=at)
        last = max((batch.number for batch in self.batches), default=-1)
        return max(at, newest), last + 1

    def ignore_times_ahead(self, now: float) -> "Window":
        """The window in which batches from more than an hour ahead of the clock are the oldest."""
        latest = now + MAX_AHEAD_S
        if all(batch.at <= latest for batch in self.batches):
            return self
        warnings.warn(
            "the times of some batches lie more than an hour ahead of the present clock and are "
            "ignored: they count as older than all others; set the clocks of all machines alike",
            UserWarning,
            stacklevel=3,
        )
        known = (
            batch if batch.at <= latest else replace(batch, at=UNKNOWN) for batch in self.batches
        )
        return Window(self.size, self.source, tuple(known))

    def add(self, *batches: WindowBatch) -> "Window":
        """The window with these batches too; one that it has counts once."""
        return Window(self.size, self.source, (*self.batches, *batches))

    def merge(self, other: "Window") -> "Window":
        """The window of both streams; a batch that both have counts once."""
        if self.source != other.source:
            raise ValueError(
                f"windows must have one source to be merged, got {self.source!r} and "
                f"{other.source!r}: merge those of one calibrator"
            )
        return self.add(*other.batches)

    def divide(self, most: int, least: int) -> "list[Window]":
        """Parts of whole batches, oldest first: at most so many, of at least so many samples."""
        least = max(-(-self.samples // most), min(least, self.samples // 3))
        parts: list[list[WindowBatch]] = []
        samples = least
        for batch in self.batches:
            if samples >= least:
                parts.append([])
                samples = 0
            parts[-1].append(batch)
            samples += batch.samples
        if len(parts) > 1 and samples < least:  # the newest join those before
            last = parts.pop()
            parts[-1] += last
        return [Window(self.size, self.source, tuple(part)) for part in parts]

    def to_json(self) -> str:
        """A snapshot, for `from_json`; the same text for the same batches."""
        batches = [
            {
                "worker": batch.worker,
                "number": batch.number,
                "at": batch.at,
                "counts": {str(k): count for k, count in sorted(batch.counts.items())},
                "bins": {str(k): count for k, count in sorted(batch.bins.items())},
                "shift_score": batch.shift_score,
            }
            for batch in self.batches
        ]
        head = {"format": FORMAT, "version": VERSION, "size": self.size, "source": self.source}
        return json.dumps({**head, "batches": batches})

    @classmethod
    def from_json(cls, text: str | bytes) -> "Window":
        values = parse_json(text)
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            raise ValueError("a snapshot must be JSON of a window, as to_json writes it")
        check_version(values.get("version"), VERSION, "the snapshot", "start a new one")
        with refuse(
            KeyError,
            TypeError,
            AttributeError,
            what="a snapshot is damaged",
            remedy="start a new one",
        ):
            batches = tuple(_read_batch(batch) for batch in values["batches"])
            return cls(values["size"], str(values["source"]), batches)


def _unite(batches: Iterable[WindowBatch]) -> Iterable[WindowBatch]:
    """Each batch once; at the later time, where a reader ignored the time of one of them."""
    known: dict[tuple[str, int], WindowBatch] = {}
    for batch in batches:
        other = known.setdefault((batch.worker, batch.number), batch)
        if other is batch:
            continue
        if replace(batch, at=other.at) != other:
            raise ValueError(
                f"batch {batch.number} of worker {batch.worker!r} must hold the same in both "
                "windows: start one of them anew"
            )
        if batch.at > other.at:
            known[batch.worker, batch.number] = batch
    return known.values()


def _keep_newest(batches: Iterable[WindowBatch], size: int) -> tuple[WindowBatch, ...]:
    """As few of the newest as hold `size` samples, the oldest first."""
    kept, samples = [], 0
    for batch in sorted(batches, key=lambda batch: batch.age_order, reverse=True):
        if samples >= size:
            break
        kept.append(batch)
        samples += batch.samples
    return tuple(reversed(kept))


def _check_values(name: str, values: AnyArray, count: int) -> Float[np.ndarray, " n"]:
    numbers = np.asarray(values, dtype=np.float64)
    check_length(name, len(np.atleast_1d(numbers)), count, "values, one per sample")
    if not np.all(np.abs(numbers) <= MAX_SCORE):
        raise ValueError(f"{name} must hold numbers of at most {MAX_SCORE:g}, but some are not")
    return numbers


def _count(values: Int[np.ndarray, " n"]) -> dict[int, int]:
    found, counts = np.unique(values, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


def _add_counts(parts: Iterable[Mapping[int, int]]) -> dict[int, int]:
    total: Counter[int] = Counter()
    for part in parts:
        total.update(part)
    return dict(sorted(total.items()))


def _read_batch(values: Mapping[str, Any]) -> WindowBatch:
    counts, bins = (
        {int(k): count for k, count in values[name].items()} for name in ("counts", "bins")
    )
    is_right = (
        isinstance(values["worker"], str)
        and is_count(values["number"])
        and is_number(values["at"])
        and all(is_count(count, 1) for count in (*counts.values(), *bins.values()))
        and 0 < sum(counts.values()) == sum(bins.values())
        and type(values["shift_score"]) is int
    )
    if not is_right:
        raise TypeError(f"batch {str(values['number'])[:60]}")
    return WindowBatch(
        values["worker"], values["number"], values["at"], counts, bins, values["shift_score"]
    )
