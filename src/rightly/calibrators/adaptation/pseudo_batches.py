"""Pseudo-batches: batches with known labels that show what shifted ones look like."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

MIXES = (0.25, 0.5, 0.75)  # shares of shifted images in mixed batches
SKEW = 0.3  # of the Dirichlet distribution of classes in skewed batches
SKEWED = 8  # skewed batches of unshifted images
MOST = 2000  # rows of a pseudo-batch: more would only cost time
UNSHIFTED = ""  # the kind of a batch without shift


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Cross-fitted scores of one kind of rows."""

    score: Float[np.ndarray, " n"]
    predicted: Int[np.ndarray, " n"]
    label: Int[np.ndarray, " n"]
    image: Int[np.ndarray, " n"]  # 0..k-1: the row of the unshifted image
    agreement: Float[np.ndarray, " n"]  # share of views that agree; 1 without views

    @property
    def correct(self) -> Bool[np.ndarray, " n"]:
        correct: np.ndarray = self.predicted == self.label
        return correct

    def take(self, rows: np.ndarray) -> "ScoredRows":
        return ScoredRows(**{name: column[rows] for name, column in vars(self).items()})


@dataclass(frozen=True, eq=False)
class PseudoBatch:
    """Rows that came together, and the kind of shift in them."""

    kind: str
    rows: ScoredRows
    is_pure: bool = False  # all of them shifted, in the classes' own shares


def make_pseudo_batches(
    unshifted: ScoredRows, shifted: Mapping[str, ScoredRows], class_count: int, seed: int = 0
) -> list[PseudoBatch]:
    """Unshifted images; each kind of shift, pure and mixed with them; all with skewed classes too.

    A batch of hard classes is no shift: skewed batches keep the fit from taking it for one.
    """
    rng = np.random.default_rng(seed)
    batches = [PseudoBatch(UNSHIFTED, _thin(unshifted, rng))]
    batches += [PseudoBatch(UNSHIFTED, _skew(unshifted, class_count, rng)) for _ in range(SKEWED)]
    for kind, rows in shifted.items():
        thinned = _thin(rows, rng)
        batches.append(PseudoBatch(kind, thinned, is_pure=True))
        batches += [PseudoBatch(kind, _mix(unshifted, thinned, share, rng)) for share in MIXES]
        batches.append(PseudoBatch(kind, _skew(rows, class_count, rng)))
    return batches


def _thin(rows: ScoredRows, rng: np.random.Generator) -> ScoredRows:
    n = len(rows.score)
    return rows if n <= MOST else rows.take(np.sort(rng.permutation(n)[:MOST]))


def _skew(rows: ScoredRows, class_count: int, rng: np.random.Generator) -> ScoredRows:
    """As many rows, drawn with replacement so that the classes have random shares."""
    share = rng.dirichlet(np.full(class_count, SKEW))
    per_row = (share / np.maximum(np.bincount(rows.label, minlength=class_count), 1))[rows.label]
    if not per_row.sum() > 0:  # all weight on classes that are not there
        return _thin(rows, rng)
    count = min(len(per_row), MOST)
    return rows.take(rng.choice(len(per_row), count, p=per_row / per_row.sum()))


def _mix(
    unshifted: ScoredRows, shifted: ScoredRows, share: float, rng: np.random.Generator
) -> ScoredRows:
    """The same images, this share of them shifted."""
    is_shifted = rng.random(len(shifted.score)) < share
    same = unshifted.take(shifted.image)
    return _concatenate([shifted.take(is_shifted), same.take(~is_shifted)])


def _concatenate(parts: Sequence[ScoredRows]) -> ScoredRows:
    columns = zip(*(vars(part).values() for part in parts), strict=True)
    return ScoredRows(*(np.concatenate(column) for column in columns))
