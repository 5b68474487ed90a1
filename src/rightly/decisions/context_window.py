"""The last images of a stream, as sums: what its context is computed from.

A block holds one batch: its place in time, counts of predicted classes, and a sum of each quantity
in fixed point, so that the sums of blocks are the same in whatever order they are added. Windows of
several workers therefore merge to the same window in any order.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rightly.checks import is_count
from rightly.files import parse_json
from rightly.shapes import AnyArray

FORMAT, VERSION = "rightly-window", 1
SCALE = 2**24  # steps of a unit; sums stay exact, also for readers of JSON that know floats only
LARGEST = 2.0**10  # magnitude of a value
MOST_SAMPLES = 2**19  # in a block


@dataclass(frozen=True)
class Block:
    """A batch of a stream: `at` is its time or number, `id` tells it from every other block."""

    id: str
    at: int | float
    counts: Mapping[int, int]  # samples of each predicted class
    sums: Mapping[str, int]  # of each quantity, in steps of 1 / SCALE

    @classmethod
    def of(cls, id: str, at: int | float, classes: AnyArray, **values: AnyArray) -> "Block":
        """The block of a batch, with one value a sample of each quantity."""
        classes = np.asarray(classes)
        if not 0 < len(classes) <= MOST_SAMPLES:
            raise ValueError(f"a block must hold 1 to {MOST_SAMPLES} samples, got {len(classes)}")
        sums = {name: _sum_steps(name, value, len(classes)) for name, value in values.items()}
        found, counts = np.unique(classes, return_counts=True)
        return cls(id, at, dict(zip(found.tolist(), counts.tolist(), strict=True)), sums)

    @property
    def samples(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True)
class ContextWindow:
    """The newest blocks of a stream, as few as hold `size` samples.

    `source` names what the values came from: windows of another calibrator do not merge with it.
    """

    size: int = 512
    source: str = ""
    blocks: tuple[Block, ...] = field(default=())

    def __post_init__(self) -> None:
        if not is_count(self.size, 1):
            raise ValueError(f"size must be a number of samples from 1 on, got {self.size!r}")
        seen = Counter(block.id for block in self.blocks)
        twice = sorted(id for id, count in seen.items() if count > 1)
        if twice:
            raise ValueError(
                f"a block must be added once, but {twice[0]!r} came again"
                + (f", and {len(twice) - 1} others" if len(twice) > 1 else "")
            )
        object.__setattr__(self, "blocks", _keep_newest(self.blocks, self.size))

    @property
    def samples(self) -> int:
        return sum(block.samples for block in self.blocks)

    @property
    def counts(self) -> dict[int, int]:
        """Samples of each predicted class."""
        total: Counter[int] = Counter()
        for block in self.blocks:
            total.update(block.counts)
        return dict(sorted(total.items()))

    def mean(self, name: str) -> float:
        """Mean of a quantity over the window; nan where it is empty."""
        total = sum(block.sums[name] for block in self.blocks)
        return total / SCALE / self.samples if self.blocks else float("nan")

    def add(self, *blocks: Block) -> "ContextWindow":
        """The window with these blocks too; refuses one that it has."""
        return ContextWindow(self.size, self.source, (*self.blocks, *blocks))

    def merge(self, other: "ContextWindow") -> "ContextWindow":
        """The window of both streams; refuses a block that both have."""
        for name, mine, its in (
            ("size", self.size, other.size),
            ("source", self.source, other.source),
        ):
            if mine != its:
                raise ValueError(
                    f"windows must have one {name} to be merged, got {mine!r} and {its!r}"
                )
        return self.add(*other.blocks)

    def to_json(self) -> str:
        """A snapshot, for `from_json`; the same text for the same blocks."""
        blocks = [
            {
                "id": block.id,
                "at": block.at,
                "counts": {str(c): block.counts[c] for c in sorted(block.counts)},
                "sums": dict(sorted(block.sums.items())),
            }
            for block in self.blocks
        ]
        head = {"format": FORMAT, "version": VERSION, "size": self.size, "source": self.source}
        return json.dumps({**head, "blocks": blocks})

    @classmethod
    def from_json(cls, text: str | bytes) -> "ContextWindow":
        values = parse_json(text)
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            raise ValueError("a snapshot must be JSON of a context window, as to_json writes it")
        if values.get("version") != VERSION:
            raise ValueError(
                f"a snapshot has version {values.get('version')!r}, but this rightly reads "
                f"{VERSION}: use the rightly that wrote it, or start a new one"
            )
        try:
            blocks = tuple(_read_block(block) for block in values["blocks"])
            return cls(values["size"], str(values["source"]), blocks)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"a snapshot is damaged ({error}): start a new one") from error


def shrink_context(mean_residual: float, samples: int, constants: Mapping[str, Any]) -> float:
    """The context of so many samples: clipped to `limits`, shrunk by `noise` samples' worth."""
    if not samples:
        return 0.0
    low, high = constants["limits"]
    clipped = min(max(mean_residual, low), high)
    return float(clipped * samples / (samples + constants["noise"]))


def _keep_newest(blocks: Iterable[Block], size: int) -> tuple[Block, ...]:
    """As few of the newest as hold `size` samples, the oldest first."""
    kept, samples = [], 0
    for block in sorted(blocks, key=lambda block: (block.at, block.id), reverse=True):
        if samples >= size:
            break
        kept.append(block)
        samples += block.samples
    return tuple(reversed(kept))


def _sum_steps(name: str, values: AnyArray, count: int) -> int:
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.shape != (count,):
        raise ValueError(f"{name} must have one value for each of {count}, got {numbers.shape}")
    if not np.all(np.abs(numbers) <= LARGEST):
        raise ValueError(f"{name} must hold numbers of at most {LARGEST:g}, but some are not")
    return int(np.rint(numbers * SCALE).astype(np.int64).sum())


def _read_block(values: Mapping[str, Any]) -> Block:
    counts = {int(c): n for c, n in values["counts"].items()}
    right = (
        isinstance(values["id"], str)
        and type(values["at"]) in (int, float)
        and all(is_count(n, 1) for n in counts.values())
        and all(type(total) is int for total in values["sums"].values())
    )
    if not right or not counts:
        raise TypeError(f"block {str(values['id'])[:60]!r}")
    return Block(values["id"], values["at"], counts, dict(values["sums"]))
