"""Predictions of a setup's classifiers: read where they are stored, collected where not."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

import rightly
from benchmarks.paper.setups import Classifier, Images, Setup
from rightly.calibrators import CALIBRATORS
from rightly.datasets import ImageDataset, open_images
from rightly.evaluation.data_sets import split_by_shift
from rightly.progress import Progress, ignore

Labelled = tuple[rightly.Predictions, Tensor]
# What the paper compares with and what came of it; scaling and binning of all classes can be asked
# for by name.
METHODS = tuple(
    name
    for name, method in CALIBRATORS.items()
    if method.group not in ("scaling", "binning", "binary")
)
Notify = Callable[[str], object]
# A title and a total go in, what counts up comes out.
BeginProgress = Callable[[str, int], Progress]


def ignore_progress(title: str, total: int) -> Progress:
    """Counts nothing, for work that nobody watches."""
    return ignore


class MissingError(Exception):
    """Neither predictions nor what they are collected from; the message says where both belong."""


@dataclass(frozen=True)
class Trial:
    """What calibrators are fitted on, and the test sets that belong to it.

    `task` names the one test set for which the calibration set was cut or restricted.
    """

    calibration: Labelled
    tests: Mapping[str, Labelled]
    task: str = ""


@dataclass(frozen=True)
class Places:
    """Where data lie, which are only read, and where collected predictions go."""

    data: Path
    predictions: Path


def gather_trials(
    setup: Setup,
    classifier: Classifier,
    places: Places,
    notify: Notify,
    begin_progress: BeginProgress = ignore_progress,
    every_view: bool = False,
) -> list[Trial]:
    """One trial for each task that the test sets make of the calibration set."""
    calibration = gather(
        setup, classifier, setup.calibration, places, notify, begin_progress, every_view
    )
    plain: dict[str, Labelled] = {}
    narrowed: list[Trial] = []
    for images in setup.tests:
        if images.half:
            fitting, testing = split_in_halves(*calibration)
            narrowed.append(Trial(fitting, {images.name: testing}, images.name))
            continue
        try:
            test = gather(setup, classifier, images, places, notify, begin_progress, every_view)
        except MissingError as missing:
            notify(f"skipped: {missing}")
            continue
        if test[0].class_count == calibration[0].class_count:
            plain |= split_by_shift(images.name, *test)
        else:
            source = _open_source(setup, images, places)
            fitting = restrict_classes(calibration, test[0], source)
            narrowed.append(Trial(fitting, {images.name: test}, images.name))
    return [Trial(calibration, plain), *narrowed] if plain else narrowed


def gather(
    setup: Setup,
    classifier: Classifier,
    images: Images,
    places: Places,
    notify: Notify,
    begin_progress: BeginProgress = ignore_progress,
    every_view: bool = False,
) -> Labelled:
    """A classifier's labelled predictions for images: read where stored, collected where not.

    Only the views of the setup are kept, unless `every_view` that is stored is asked for.
    """
    views = None if every_view else setup.views
    stored = places.data / classifier.name / images.name
    collected = places.predictions / setup.name / classifier.name / images.name
    for path in (stored.with_name(f"{images.name}.npz"), stored, collected):
        if path.is_file() or (path.is_dir() and any(path.glob("part-*.parquet"))):
            try:
                return _check_labelled(path, *rightly.load(path), views)
            except ValueError as error:
                if "is unfinished" not in str(error):
                    raise
    source = _open_source(setup, images, places)
    if source is None:
        raise MissingError(
            f"{classifier.name} on {images.name}: no predictions at {stored}(.npz), and no images "
            f"at {places.data / images.folder} to collect them from (layout {images.layout})"
        )
    collected.parent.mkdir(parents=True, exist_ok=True)
    notify(f"collecting {classifier.name} on {images.name}: {len(source)} images")
    try:
        collection = rightly.collect(
            classifier.spec,
            source,
            views=setup.views,
            shifts=images.shifts,
            batch_size=setup.batch_size,
            out=collected,
            features=setup.features,
            progress=begin_progress(f"collecting {classifier.name}: {images.name}", len(source)),
        )
    except ImportError as error:
        raise MissingError(
            f"{classifier.name} on {images.name}: {classifier.spec} cannot be opened: {error}"
        ) from error
    return _check_labelled(collected, *collection, views)


def split_in_halves(predictions: rightly.Predictions, labels: Tensor) -> tuple[Labelled, Labelled]:
    """Two random halves, each class in equal shares."""
    generator = torch.Generator().manual_seed(0)
    shuffled = torch.randperm(len(labels), generator=generator)
    by_class = shuffled[labels[shuffled].argsort(stable=True)]
    one, other = by_class[::2].sort().values, by_class[1::2].sort().values
    return (predictions[one], labels[one]), (predictions[other], labels[other])


def restrict_classes(
    calibration: Labelled, test: rightly.Predictions, source: ImageDataset | None
) -> Labelled:
    """The calibration samples of the classes that a test set has, with the logits of these only."""
    predictions, labels = calibration
    names = predictions.class_names
    if source is not None and source.kept_classes is not None:
        groups = source.kept_classes
    elif names and test.class_names and set(test.class_names) <= set(names):
        groups = tuple((names.index(name),) for name in test.class_names)
    else:
        raise MissingError(
            f"predictions of {test.class_count} classes cannot be matched with the "
            f"{predictions.class_count} of the calibration set: the images must be there too"
        )
    narrow = ImageDataset(["all"], lambda i: None, kept_classes=groups)
    number = torch.full((predictions.class_count,), -1)
    for i, group in enumerate(groups):
        number[list(group)] = i
    rows = number[labels] >= 0
    kept = predictions[rows]
    views = kept.view_logits
    restricted = rightly.Predictions(
        narrow.restrict(kept.logits),
        None if views is None else narrow.restrict(views),
        kept.features,
        kept.view_names or None,
        test.class_names,
    )
    return restricted, number[labels[rows]]


def _open_source(setup: Setup, images: Images, places: Places) -> ImageDataset | None:
    root = places.data
    if setup.unpack is not None:
        root = setup.unpack(places.data, places.predictions / setup.name / "images")
    if not (root / images.folder).is_dir():
        return None
    return open_images(
        root / images.folder,
        layout=images.layout,
        split=images.split,
        severity=images.severity,
    )


def _check_labelled(
    path: Path,
    predictions: rightly.Predictions,
    labels: Tensor | None,
    views: Sequence[str] | None,
) -> Labelled:
    if labels is None:
        raise ValueError(f"{path} must hold labels to fit or measure with, but it has none")
    if predictions.view_logits is not None and views is not None:
        predictions = predictions.with_views(views)
    return predictions, labels
