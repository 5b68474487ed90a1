"""Rows of a data set: their hashes, parts that share no image, their canonical order, chance.

Where two sets hold `image_hash`, it tells which rows show the same image; otherwise rows with the
same logits count as the same. A set whose logits repeat within itself, as those of a decision tree
do, proves nothing. Parts go by a hash of each image, not by where its rows are.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from rightly.predictions.predictions import Predictions
from rightly.predictions.validation import check_labels
from rightly.shapes import AnyArray
from rightly.tensor_shapes import Labels, PerSampleBool

MAX_OVERLAP = 0.01  # of the rows; CIFAR-10 itself has a few images twice
SAMPLE = 500  # hashes kept with a calibrator: 8 KB
LARGEST = np.iinfo(np.int64).max
HELD_OUT = 0.2  # share of a stratified split
COMPARED = 4  # largest logits of a row; rows that agree in their distances are rare beyond
CHANCE_LEVEL = 0.01  # of the test against chance
MIN_TESTED = 30  # samples: of fewer, good classifiers fail the test against chance too

Hashes = Int64[np.ndarray, " n"]


def hash_bytes(data: Any) -> int:
    """64 bits of BLAKE2b, as a signed number."""
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little", signed=True)


def hash_image(pixels: Any) -> int:
    """Hash an image in RGB: a Pillow image, or (h, w, 3) bytes."""
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
        """Hash all rows."""
        hashes = {kind: np.unique(rows) for kind, rows in hash_rows(predictions).items()}
        return cls(hashes)

    def merge(self, other: "RowHashes") -> "RowHashes":
        """Merge both sets; of a kind that only one has, take those of that one."""
        kinds = {**self.by_kind, **other.by_kind}
        for kind in self.by_kind.keys() & other.by_kind.keys():
            kinds[kind] = np.union1d(self.by_kind[kind], other.by_kind[kind])
        first = sorted(kinds, key=lambda kind: kind != "image_hash")
        return RowHashes({kind: kinds[kind] for kind in first})

    def to_record(self) -> dict[str, str]:
        """Return a sample of the hashes, as text for a calibrator's record."""
        return {kind: rows[:SAMPLE].tobytes().hex() for kind, rows in self.by_kind.items()}

    @classmethod
    def from_record(cls, record: Mapping[str, str]) -> "RowHashes":
        """Return the hashes that `to_record` wrote."""
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
    """Hash each row by kind: `image_hash` where known, `logits` where they hardly repeat."""
    hashes: dict[str, Hashes] = {}
    if predictions.image_hash is not None:
        hashes["image_hash"] = predictions.image_hash.cpu().numpy()
    # In float32, as files store them; 0 makes -0 the same.
    rows = np.ascontiguousarray(predictions.logits.float().cpu().numpy() + np.float32(0))
    logits = np.array([hash_bytes(row) for row in rows], np.int64)
    if 1 - len(np.unique(logits)) / len(logits) <= MAX_OVERLAP:
        hashes["logits"] = logits
    return hashes


def number_images(predictions: Predictions) -> Labels:
    """Number each image from 0 on, in an order that looks random.

    It goes by the image's hash or logits, so that shuffled rows have the same numbers, and equal
    images one; where logits repeat, as those of a decision tree do, by the number of the image.
    """
    image = predictions.image_ranks().cpu().numpy()
    hashes = hash_rows(predictions)
    keys = np.unique(image)
    for kind in ("image_hash", "logits"):
        if kind in hashes:
            as_is = predictions.unshifted().cpu().numpy()
            as_is |= ~np.isin(image, image[as_is])  # an image that only comes shifted
            keys = np.full(len(keys), LARGEST)
            np.minimum.at(keys, image[as_is], hashes[kind][as_is])
            break
    number = np.unique(_mix(keys), return_inverse=True)[1]
    return torch.as_tensor(number[image], device=predictions.logits.device)


def folds(predictions: Predictions, count: int) -> Labels:
    """Fold of each row, from 0 to count - 1; rows of one image share a fold."""
    return number_images(predictions) % count


def holdout_mask(predictions: Predictions, holdout: float) -> PerSampleBool:
    """Mark the rows of this share of the images; both parts have an unshifted image."""
    number = number_images(predictions)
    images = int(number[predictions.unshifted()].unique().numel())
    count = round(holdout * (int(number.max()) + 1))
    held_out: PerSampleBool = number < count
    for part in (held_out, ~held_out):
        if not bool((part & predictions.unshifted()).any()):
            raise ValueError(
                f"predictions must have images for two parts, one of them {holdout:g} of all, got "
                f"{images} unshifted: pass more, or another share"
            )
    return held_out


def first_row_per_image(predictions: Predictions) -> PerSampleBool:
    """Mark the first unshifted row of each image."""
    as_is = predictions.unshifted()
    rows = torch.nonzero(as_is)[:, 0]
    first = np.unique(number_images(predictions)[rows].cpu().numpy(), return_index=True)[1]
    marked = torch.zeros_like(as_is)
    marked[rows[torch.as_tensor(first, device=rows.device)]] = True
    return marked


def stratified_split(
    correct: PerSampleBool, seed: int, share: float = HELD_OUT, image: Labels | None = None
) -> tuple[Tensor, Tensor]:
    """Row numbers to train on and to hold out, with the same shares of correct samples.

    Rows that share a number of `image` are not parted; the first of them stands for all.
    """
    if image is not None and len(image.unique()) < len(image):
        group = image.unique(return_inverse=True)[1]
        first = _find_first(group, torch.arange(len(group), device=group.device))
        sides = stratified_split(correct[first], seed, share)
        train, held_out = (torch.isin(group, side).nonzero().squeeze(-1) for side in sides)
        return train, held_out
    generator = torch.Generator().manual_seed(seed)
    parts: tuple[list[Tensor], list[Tensor]] = [], []
    for side in (True, False):
        rows = (correct.cpu() == side).nonzero().squeeze(-1)
        rows = rows[torch.randperm(len(rows), generator=generator)]
        out = round(share * len(rows))
        parts[0].append(rows[out:])
        parts[1].append(rows[:out])
    train, held_out = (torch.cat(part).to(correct.device) for part in parts)
    return train, held_out if len(held_out) else train


def sort_rows(predictions: Predictions, labels: Labels) -> tuple[Predictions, Labels]:
    """Sort rows by the lead of their largest logit, rows of one image together.

    In this order, which depends on what is in the rows and not on where they are, folds,
    minibatches and views that take turns are the same however a file was shuffled. Neither unit
    nor offset of logits nor masked classes matter. Ties go by the lead over further logits, class,
    label and shift; rows that have all of it in common stay as they came. Images are numbered in
    the same order.
    """
    order = _argsort_rows(predictions, labels)
    if predictions.image is None:
        return predictions[order], labels[order]
    image = predictions.image_ranks()
    number = _find_first(image, order.argsort()).argsort().argsort()[image]
    order = order[number[order].argsort(stable=True)]
    ordered = predictions[order]
    others = {field.name: getattr(ordered, field.name) for field in fields(ordered)}
    del others["logits"]
    source = replace(ordered.source, path=None, numbering=None)
    others |= {"image": number[order], "source": source}
    return Predictions.unchecked(ordered.logits, **others), labels[order]


def warn_at_chance(name: str, predictions: Predictions, labels: AnyArray) -> None:
    """Warn if accuracy is not above chance."""
    warn_of_counts(name, *_count(predictions, labels))


def find_chance(predictions: Predictions, labels: AnyArray) -> float | None:
    """Accuracy of chance, if that of the predictions is not above it."""
    return _find_chance(*_count(predictions, labels))


def warn_of_counts(name: str, right: int, by_label: np.ndarray, by_class: np.ndarray) -> None:
    """Warn if so many correct predictions are not above chance; counts by label and by class."""
    chance = _find_chance(right, by_label, by_class)
    if chance is not None:
        warnings.warn(
            f"{name} has {right / by_label.sum():.1%} accuracy, which is not above chance "
            f"({chance:.1%}): check that labels and predictions are in the same order and number "
            "the classes alike",
            UserWarning,
            stacklevel=4,
        )


def _mix(keys: Int64[np.ndarray, " k"]) -> Int64[np.ndarray, " k"]:
    """Numbers whose every bit depends on all bits of the key (splitmix64: Steele et al., 2014)."""
    x = keys.view(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x ^ (x >> np.uint64(31))).view(np.int64)


def _find_first(group: Labels, place: Tensor) -> Tensor:
    """First place of each group; groups are numbered from 0 on."""
    first = torch.full_like(place[: int(group.max()) + 1], len(place))
    return first.scatter_reduce(0, group, place, "amin")


def _argsort_rows(predictions: Predictions, labels: Labels) -> Tensor:
    largest = predictions.logits.topk(min(COMPARED, predictions.class_count)).values.double()
    leads = (largest[:, :1] - largest[:, 1:]).unbind(1)
    shift = () if predictions.shift is None else (predictions.shift,)
    order = torch.arange(len(labels), device=labels.device)
    for key in reversed((*leads, predictions.classes, labels, *shift)):
        order = order[key[order].argsort(stable=True)]
    return order


def _count(predictions: Predictions, labels: AnyArray) -> tuple[int, np.ndarray, np.ndarray]:
    """Correct predictions; labels and predictions by class."""
    truth, size = check_labels(labels, predictions), predictions.class_count
    counts = [torch.bincount(x, minlength=size).cpu().numpy() for x in (truth, predictions.classes)]
    return int((predictions.classes == truth).sum()), counts[0], counts[1]


def _find_chance(right: int, by_label: np.ndarray, by_class: np.ndarray) -> float | None:
    """Accuracy of chance, if so many correct predictions are not above it.

    Chance is what the same labels in another order would give, the expected agreement of Cohen's
    kappa: it knows how frequent classes are. Not above it means that a one-sided binomial test
    does not tell the two apart.
    """
    from scipy.special import bdtrc

    count = int(by_label.sum())
    chance = float((by_label / count) @ (by_class / count))
    if (by_label > 0).sum() < 2 or count < MIN_TESTED:  # one class has no wrong order
        return None
    return chance if right == 0 or bdtrc(right - 1, count, chance) > CHANCE_LEVEL else None
