"""Hashes of rows: they tell which rows of two data sets show the same image.

Where both sets hold `image_hash`, that settles it; else rows with the same logits count as the
same. A set whose logits repeat within itself, as those of a decision tree do, proves nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from jaxtyping import Int64

from rightly.predictions.predictions import Predictions

MAX_SHARED = 0.01  # of the rows; CIFAR-10 itself has a few images twice
SAMPLE = 500  # hashes kept with a calibrator: 8 KB
LARGEST = np.iinfo(np.int64).max

Hashes = Int64[np.ndarray, " n"]


def hash_bytes(data: Any) -> int:
    """64 bits of BLAKE2b, as a signed number."""
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little", signed=True)


def hash_image(pixels: Any) -> int:
    """A hash of an image in RGB: a Pillow image, or (h, w, 3) bytes."""
    height = pixels.shape[0] if isinstance(pixels, np.ndarray) else pixels.height
    return hash_bytes(height.to_bytes(4, "little") + pixels.tobytes())


@dataclass(frozen=True, eq=False)
class RowHashes:
    """Distinct hashes of a data set by kind, sorted: all of them, or the smallest as a sample.

    The smallest hashes are a random sample of the rows: a row of another set is looked up only
    if its hash is not above them all.
    """

    by_kind: Mapping[str, Hashes]
    is_sample: bool = False

    @classmethod
    def compute(cls, predictions: Predictions) -> "RowHashes":
        """The hashes of all rows."""
        hashes = {kind: np.unique(rows) for kind, rows in hash_rows(predictions).items()}
        return cls(hashes)

    def merge(self, other: "RowHashes") -> "RowHashes":
        """Those of both sets; of a kind that only one has, those of that one."""
        kinds = {**self.by_kind, **other.by_kind}
        for kind in self.by_kind.keys() & other.by_kind.keys():
            kinds[kind] = np.union1d(self.by_kind[kind], other.by_kind[kind])
        first = sorted(kinds, key=lambda kind: kind != "image_hash")
        return RowHashes({kind: kinds[kind] for kind in first})

    def to_record(self) -> dict[str, str]:
        """A sample of the hashes, as text for a calibrator's record."""
        return {kind: rows[:SAMPLE].tobytes().hex() for kind, rows in self.by_kind.items()}

    @classmethod
    def from_record(cls, record: Mapping[str, str]) -> "RowHashes":
        """What `to_record` gave."""
        hashes = {
            kind: np.frombuffer(bytes.fromhex(text), np.int64) for kind, text in record.items()
        }
        return cls(hashes, is_sample=True)

    def measure_shared(self, predictions: Predictions) -> tuple[float, str]:
        """Share of these rows that are in the set, and the kind of hash that tells."""
        others = hash_rows(predictions)
        for kind, own in self.by_kind.items():  # image_hash comes first
            if kind in others and len(own):
                last = own[-1] if self.is_sample and len(own) >= SAMPLE else LARGEST
                rows = others[kind][others[kind] <= last]
                return float(np.isin(rows, own).mean()) if len(rows) else 0.0, kind
        return 0.0, ""


def hash_rows(predictions: Predictions) -> dict[str, Hashes]:
    """A hash of each row by kind: `image_hash` where known, `logits` where they hardly repeat."""
    hashes: dict[str, Hashes] = {}
    if predictions.image_hash is not None:
        hashes["image_hash"] = predictions.image_hash.cpu().numpy()
    # In float32, as files store them; 0 makes -0 the same.
    rows = np.ascontiguousarray(predictions.logits.float().cpu().numpy() + np.float32(0))
    logits = np.array([hash_bytes(row) for row in rows], np.int64)
    if 1 - len(np.unique(logits)) / len(logits) <= MAX_SHARED:
        hashes["logits"] = logits
    return hashes
