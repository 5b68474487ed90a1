"""What a report is made from: plain arrays and results, and where they come from."""

import base64
import hashlib
import io
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from rightly.datasets import ImageDataset, UnreadableImage, open_images
from rightly.evaluation.data_sets import name_shift
from rightly.evaluation.measurement import BeforeAfter
from rightly.evaluation.results import Bootstrap, Result
from rightly.predictions.parquet import read_image_names
from rightly.reporting.evaluation_table import Evaluation
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
class StudySet:
    """One test set: confidence before and after calibration, classes, and the metrics."""

    name: str
    before: Confidence
    after: Confidence
    predicted: TrueClasses
    labels: TrueClasses
    results: BeforeAfter
    examples: Sequence[Example] = ()

    @property
    def correct(self) -> Correct:
        return self.predicted == self.labels


@dataclass(frozen=True)
class Provenance:
    """How a report came about."""

    command: str
    versions: Mapping[str, str]
    digests: Mapping[str, str]  # SHA-256 by file
    seed: int  # of fits
    bootstrap: Bootstrap


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
    view_names: Sequence[str] = ()
    class_names: Sequence[str] | None = None
    notes: Sequence[str] = field(default_factory=tuple)

    def class_name(self, k: int | np.integer) -> str:
        return str(k) if self.class_names is None else self.class_names[int(k)]


def build_sets(evaluation: Evaluation, pictures: "Pictures | None" = None) -> list[StudySet]:
    """The arrays behind an evaluation, with its most confident mistakes."""
    fitted = evaluation.calibrator
    sets = []
    for name, (test, truth) in evaluation.tests.items():
        one = StudySet(
            name,
            test.confidence.cpu().numpy(),
            fitted.confidence(test).cpu().numpy(),
            fitted.classes(test).cpu().numpy(),
            truth.cpu().numpy(),
            evaluation.sets[name],
        )
        rows = find_worst_mistakes(one)
        examples = [
            Example(row) if pictures is None else pictures.find_example(name, row) for row in rows
        ]
        sets.append(replace(one, examples=examples))
    return sets


def find_worst_mistakes(one: StudySet, most: int = WORST) -> list[int]:
    """Rows of the wrong predictions that stay most confident after calibration."""
    wrong = np.flatnonzero(~one.correct)
    return [int(i) for i in wrong[np.argsort(-one.after[wrong], kind="stable")][:most]]


class Pictures:
    """The images behind test sets, by the names that `collect` stored."""

    def __init__(self, images: ImageDataset, names: Mapping[str, Sequence[str]]) -> None:
        self.images, self.names = images, names
        self.index = {name: i for i, name in enumerate(images.names)}

    @classmethod
    def open(cls, images: Any, tests: Mapping[str, Any]) -> "Pictures":
        """Pictures of a folder, or of open images, for the test sets that are folders."""
        names: dict[str, Sequence[str]] = {}
        for test, source in tests.items():
            if isinstance(source, str | os.PathLike) and Path(source).is_dir():
                of_rows, shift, shift_names = read_image_names(Path(source))
                for value in np.unique(shift).tolist():
                    title = name_shift(test, value, shift_names)
                    names[title] = [of_rows[i] for i in np.flatnonzero(shift == value)]
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
    from PIL import Image

    try:
        pixels = images.read(i)
    except UnreadableImage:
        return ""
    picture = Image.fromarray(pixels) if isinstance(pixels, np.ndarray) else pixels.copy()
    picture.thumbnail((THUMBNAIL_SIDE, THUMBNAIL_SIDE))
    encoded = io.BytesIO()
    picture.convert("RGB").save(encoded, "JPEG", quality=80)
    return f"data:image/jpeg;base64,{base64.b64encode(encoded.getvalue()).decode()}"


def read_versions() -> dict[str, str]:
    """Of what computed the numbers."""
    import torch

    from rightly import __version__

    return {
        "rightly": __version__,
        "Python": platform.python_version(),
        "torch": torch.__version__,
        "NumPy": np.__version__,
    }


def digest_files(sources: Iterable[Any]) -> dict[str, str]:
    """SHA-256 of those data that are files or folders, by their paths."""
    paths = [Path(source) for source in sources if isinstance(source, str | os.PathLike)]
    return {str(path): digest_file(path) for path in paths}


def digest_file(path: Path) -> str:
    """SHA-256 of a file, or of all files of a folder with their names."""
    digest = hashlib.sha256()
    for file in [path] if path.is_file() else sorted(path.iterdir()):
        if path.is_dir():
            digest.update(file.name.encode())
        with file.open("rb") as opened:
            while block := opened.read(2**20):
                digest.update(block)
    return digest.hexdigest()
