"""What a report is made from: plain arrays and results, and where they come from."""

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Int

from rightly.classifiers.preprocessing import turn_upright
from rightly.datasets import ImageDataset, UnreadableImage, open_images
from rightly.decisions import Decision, exact_interval
from rightly.decisions.outcome import DecisionOutcome
from rightly.evaluation.data_sets import TestSets
from rightly.evaluation.measurement import BeforeAfter
from rightly.evaluation.results import Result
from rightly.evaluation.set_quality import ClassCoverage, cover_classes
from rightly.evaluation.views import ViewRanking
from rightly.optional import require
from rightly.predictions.files import read_image_names
from rightly.shapes import Confidence, Correct, TrueClasses

UNSHIFTED_PICTURES = "Pictures are shown as they are, without the shift."
THUMBNAIL_SIDE = 128  # pixels
WORST = 12  # mistakes shown of each test set


@dataclass(frozen=True, eq=False)
class Example:
    """A confident mistake, by its row in the test set, with a picture where there is one."""

    row: int
    name: str = ""
    picture: str = ""  # a data URI


@dataclass(frozen=True, eq=False)
class SetSizes:
    """The prediction sets of one test set: their sizes, and how many hold the true class."""

    sizes: Int[np.ndarray, " n"]
    covered: Correct

    @property
    def interval(self) -> tuple[float, float]:
        """Exact 95 % interval of the coverage."""
        return exact_interval(int(self.covered.sum()), len(self.covered))

    def by_class(
        self, labels: TrueClasses, names: Sequence[str] | None
    ) -> tuple[ClassCoverage, ...]:
        """The coverage of each true class, the least covered first."""
        return cover_classes(self.covered, labels, names)

    def share(self, least: int, most: int | None = None) -> float:
        """Of the sets, how many have so many classes."""
        small = self.sizes <= (least if most is None else most)
        return float((small & (self.sizes >= least)).mean())


@dataclass(frozen=True, eq=False)
class StudySet:
    """One test set: confidence before and after calibration, classes, and the metrics."""

    name: str
    before: Confidence
    after: Confidence
    predicted: TrueClasses
    labels: TrueClasses
    correct: Correct
    results: BeforeAfter
    examples: Sequence[Example] = ()
    correct_before: Correct | None = None  # of the classifier's own class, where that differs

    groups: np.ndarray | None = None  # the name of each sample's group, or ""
    passes: float = 1.0  # forward passes for each sample, on average
    prediction_sets: SetSizes | None = None
    decision: DecisionOutcome | None = None  # of the calibrator's decision

    @property
    def outcomes(self) -> dict[str, tuple[Confidence, Correct]]:
        """Confidence and whether it is right, before and after."""
        own = self.correct if self.correct_before is None else self.correct_before
        return {"before": (self.before, own), "after": (self.after, self.correct)}


@dataclass(frozen=True)
class Provenance:
    """How a report came about."""

    command: str
    versions: Mapping[str, str]
    digests: Mapping[str, str]  # SHA-256 by file
    seed: int  # of fits and resamples
    resamples: int


@dataclass(frozen=True, eq=False)
class Study:
    """A calibrator on some test sets, beside others where there are any."""

    title: str
    method: str
    calibration_count: int
    sets: Sequence[StudySet]
    metrics: Sequence[str]
    provenance: Provenance
    comparison: Sequence[Result] = ()
    reference: str = ""  # of the comparison
    fit_notes: Sequence[str] = ()  # of the comparison
    view_names: Sequence[str] = ()
    class_names: Sequence[str] | None = None
    keeps_class: bool = True
    class_changes: Sequence[str] = ()  # where that changed accuracy
    decision: Decision | None = None  # of the calibrator
    file: str = ""  # that the calibrator was read from
    coverage: Mapping[str, Any] | None = None  # what its prediction sets guarantee
    void: str | None = None  # why no guarantee holds
    views: ViewRanking | None = None  # what each of its views gains on the calibration data
    notes: Sequence[str] = field(default_factory=tuple)


class Pictures:
    """The images behind test sets, by the names that `collect` stored."""

    def __init__(self, images: ImageDataset, names: Mapping[str, Sequence[str]]) -> None:
        self.images, self.names = images, names
        self.index = {name: i for i, name in enumerate(images.names)}

    @classmethod
    def open(cls, images: Any, tests: TestSets) -> "Pictures":
        """Pictures of a folder, or of open images, for the test sets that are folders."""
        found = {test: read_image_names(predictions) for test, (predictions, _) in tests.items()}
        names = {test: of_rows for test, of_rows in found.items() if of_rows is not None}
        if not names:
            raise ValueError(
                "images needs tests that hold the names of their images: folders that collect "
                "wrote; .npz files and arrays hold none"
            )
        opened = images if isinstance(images, ImageDataset) else open_images(images)
        stored = set(opened.names)
        if not any(name in stored for of_set in names.values() for name in of_set):
            raise ValueError(
                f"images holds none of the images that were collected, such as "
                f"{next(iter(names.values()))[0]}: give the folder that collect read, got {images}"
            )
        return cls(opened, names)

    def find_example(self, dataset: str, row: int) -> Example:
        name = self.names[dataset][row] if dataset in self.names else ""
        picture = make_thumbnail(self.images, self.index[name]) if name in self.index else ""
        return Example(row, name, picture)


def make_thumbnail(images: ImageDataset, i: int) -> str:
    """A small JPEG as a data URI; nothing where the picture cannot be read."""
    pillow = require("PIL.Image", "collect")
    try:
        pixels = images.read(i)
    except UnreadableImage:
        return ""
    picture = (
        pillow.fromarray(pixels) if isinstance(pixels, np.ndarray) else turn_upright(pixels).copy()
    )
    picture.thumbnail((THUMBNAIL_SIDE, THUMBNAIL_SIDE))
    encoded = io.BytesIO()
    picture.convert("RGB").save(encoded, "JPEG", quality=80)
    return f"data:image/jpeg;base64,{base64.b64encode(encoded.getvalue()).decode()}"
