"""From a setup and a classifier to predictions: stored ones where they are, else collected."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

import rightly
from rightly.datasets import ImageDataset, open_images
from rightly.evaluation.measurement import split_by_shift
from setups import Classifier, Images, Setup

Labelled = tuple[rightly.Predictions, Tensor]
Say = Callable[[str], object]
Begin = Callable[[str, int], Callable[[int], object]]  # a title and a total -> what counts up


def unseen(title: str, total: int) -> Callable[[int], object]:
    """Work that nobody watches."""
    return lambda count: None


class MissingError(Exception):
    """Neither predictions nor what they are collected from; the message says where both belong."""


@dataclass(frozen=True)
class Trial:
    """What calibrators are fitted on, and the test sets that belong to it."""

    calibration: Labelled
    tests: Mapping[str, Labelled]


@dataclass(frozen=True)
class Places:
    """Where things lie: given data, which is only read, and predictions that are collected."""

    data: Path
    predictions: Path


def trials(
    setup: Setup,
    classifier: Classifier,
    places: Places,
    say: Say,
    begin: Begin = unseen,
    every_view: bool = False,
) -> list[Trial]:
    """Fitting on the calibration set, once for each task that its test sets make of it."""
    calibration = gather(setup, classifier, setup.calibration, places, say, begin, every_view)
    plain: dict[str, Labelled] = {}
    found: list[Trial] = []
    for images in setup.tests:
        if images.half:
            fitting, testing = halves(*calibration)
            found.append(Trial(fitting, {images.name: testing}))
            continue
        try:
            test = gather(setup, classifier, images, places, say, begin, every_view)
        except MissingError as missing:
            say(f"skipped: {missing}")
            continue
        if test[0].class_count == calibration[0].class_count:
            plain |= split_by_shift(images.name, *test)
        else:
            source = _opened(setup, images, places)
            fitting = restricted(calibration, test[0], source)
            found.append(Trial(fitting, {images.name: test}))
    return [Trial(calibration, plain), *found] if plain else found


def gather(
    setup: Setup,
    classifier: Classifier,
    images: Images,
    places: Places,
    say: Say,
    begin: Begin = unseen,
    every_view: bool = False,
) -> Labelled:
    """What a classifier said about images: read where it is stored, collected where it is not.

    Only the views of the setup are kept, unless `every_view` that is stored is asked for.
    """
    views = None if every_view else setup.views
    stored = places.data / classifier.name / images.name
    collected = places.predictions / setup.name / classifier.name / images.name
    for path in (stored.with_name(f"{images.name}.npz"), stored, collected):
        if path.is_file() or (path.is_dir() and any(path.glob("part-*.parquet"))):
            try:
                return _labelled(path, *rightly.load(path), views)
            except ValueError as error:
                if "is unfinished" not in str(error):
                    raise
    source = _opened(setup, images, places)
    if source is None:
        raise MissingError(
            f"{classifier.name} on {images.name}: no predictions at {stored}(.npz), and no images "
            f"at {places.data / images.folder} to collect them from (layout {images.layout})"
        )
    collected.parent.mkdir(parents=True, exist_ok=True)
    say(f"collecting {classifier.name} on {images.name}: {len(source)} images")
    try:
        made = rightly.collect(
            classifier.spec,
            source,
            setup.views,
            images.shifts,
            setup.batch_size,
            out=collected,
            features=setup.features,
            advance=begin(f"collecting {classifier.name}: {images.name}", len(source)),
        )
    except ImportError as error:
        raise MissingError(
            f"{classifier.name} on {images.name}: {classifier.spec} cannot be opened: {error}"
        ) from error
    return _labelled(collected, *made, views)


def halves(predictions: rightly.Predictions, labels: Tensor) -> tuple[Labelled, Labelled]:
    """Two random halves, each class in equal shares."""
    generator = torch.Generator().manual_seed(0)
    shuffled = torch.randperm(len(labels), generator=generator)
    by_class = shuffled[labels[shuffled].argsort(stable=True)]
    one, other = by_class[::2].sort().values, by_class[1::2].sort().values
    return (predictions[one], labels[one]), (predictions[other], labels[other])


def restricted(
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
    fewer = rightly.Predictions(
        narrow.restrict(kept.logits),
        None if views is None else narrow.restrict(views),
        kept.features,
        kept.view_names or None,
        test.class_names,
    )
    return fewer, number[labels[rows]]


def _opened(setup: Setup, images: Images, places: Places) -> ImageDataset | None:
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


def _labelled(
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
