"""An experiment as data: classifiers, and what they are calibrated and tested on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

VIEWS = ("rotation", "grayscale", "color_jitter")  # the paper's three


@dataclass(frozen=True)
class Classifier:
    """A trained classifier: its name in tables, and the spec that `rightly collect` opens."""

    name: str
    spec: str


@dataclass(frozen=True)
class Images:
    """Images that a classifier is asked about, and where they lie below --data.

    `half` marks a test set that is cut from the calibration set: calibrators are then fitted on
    one random half of each class and tested on the other. `in_distribution` marks images of the
    calibration set's kind, which analyses keep apart from shifted ones. `published` is the test
    set of the paper whose values stand beside ours: the same, or the nearest for orientation.
    """

    name: str
    folder: str
    layout: str
    split: str | None = None
    severity: int | None = None
    shifts: tuple[str, ...] = ()
    half: bool = False
    in_distribution: bool = False
    published: str | None = None


@dataclass(frozen=True)
class Setup:
    """One of the paper's experiments, or one like it on data that can be had."""

    name: str
    about: str
    classifiers: Sequence[Classifier]
    calibration: Images
    tests: Sequence[Images]
    published: str | None = None  # the paper's setup whose tables these results belong to
    same_as_published: bool = True  # False: other classifiers or images than the paper's
    views: tuple[str, ...] = VIEWS
    features: bool = False
    # Makes folders of images out of what lies in --data: (data, where to put them) -> folder.
    unpack: Callable[[Path, Path], Path] | None = None
    batch_size: int = 256


def name_factories(module: str, names: Sequence[str]) -> tuple[Classifier, ...]:
    """Classifiers that no package holds: a module of the user's has a function for each."""
    return tuple(
        Classifier(name, f"py:{module}:{name.lower().replace('-', '_')}") for name in names
    )
