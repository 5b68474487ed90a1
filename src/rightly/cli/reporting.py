"""The command that writes a report: report."""

import argparse
import base64
import hashlib
import io
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rightly import __version__
from rightly.calibrators import AnyCalibrator
from rightly.cli.calibrating import bootstrap_for, compared, labelled, named_tests, names_in
from rightly.cli.consoles import ERR, OUT
from rightly.datasets import ImageDataset, UnreadableImage, open_images
from rightly.evaluation.measurement import TABLE_METRICS, TestSets, before_and_after, fitted_by
from rightly.evaluation.results import Bootstrap, Result, unique
from rightly.predictions import Predictions
from rightly.predictions.parquet import read_image_names
from rightly.reporting import html as report
from rightly.reporting.html.study import worst

BESIDE = ("uncalibrated", "temperature_scaling", "ensemble_temperature_scaling", "spline")
UNSHIFTED = "Pictures are shown as they are, without the shift."
SIDE = 128  # pixels of a thumbnail


def add_commands(commands: Any) -> None:
    """The command of this module and its arguments."""
    add = commands.add_parser("report", help="one HTML page: can this confidence be trusted?")
    add.add_argument("cal", help="calibration predictions with labels (.npz or folder)")
    add.add_argument("--on", action="append", required=True, metavar="[NAME=]FILE", help="test set")
    add.add_argument("--method", default="rightly", help="the calibrator the report is about")
    add.add_argument("--methods", default=",".join(BESIDE), help="calibrators to compare it with")
    add.add_argument("--views", help="use only these views, in this order")
    add.add_argument("--images", metavar="FOLDER", help="where the images that were collected are")
    add.add_argument("--layout", default="auto", help="of --images, as for collect")
    add.add_argument("--title", default="this classifier", help="what the model is called")
    add.add_argument("--resamples", type=int, help="of each test set, for intervals (1000)")
    add.add_argument("--seed", type=int, default=0, help="of the fit and of the resamples")
    add.add_argument("--out", required=True, metavar="FILE", help="where to write (.html)")
    add.set_defaults(run=_report)


def _report(chosen: argparse.Namespace) -> None:
    predictions, labels = labelled(chosen.cal, chosen.views)
    tests = named_tests(chosen.on, chosen.views)
    methods = unique([*names_in(chosen.methods), chosen.method])
    bootstrap = bootstrap_for(methods, chosen.resamples, chosen.seed)
    rows = compared(predictions, labels, tests, methods, TABLE_METRICS, 1, bootstrap)
    command = ["rightly", "report", chosen.cal]
    for name in ("on", "method", "methods", "views", "images", "title", "resamples", "seed", "out"):
        value = vars(chosen)[name]
        for one in value if isinstance(value, list) else [value]:
            command += [] if one is None else [f"--{name}", str(one)]
    files = [chosen.cal, *(item.rpartition("=")[2] for item in chosen.on)]
    study = study_of(
        predictions,
        labels,
        tests,
        fitted_by(chosen.method, predictions, labels, chosen.seed),
        rows,
        bootstrap,
        title=chosen.title,
        command=shlex.join(command),
        digests={path: digest(Path(path)) for path in files},
        pictures=_pictures(chosen),
        seed=chosen.seed,
    )
    report.write(Path(chosen.out), study)
    OUT.print(f"the report is in {chosen.out}", soft_wrap=True, markup=False)


class Pictures:
    """The images behind test sets, by the names that `collect` stored."""

    def __init__(self, images: ImageDataset, names: Mapping[str, Sequence[str]]) -> None:
        self.images, self.names = images, names
        self.index = {name: i for i, name in enumerate(images.names)}

    def example(self, dataset: str, row: int) -> report.Example:
        name = self.names[dataset][row] if dataset in self.names else ""
        picture = thumbnail(self.images, self.index[name]) if name in self.index else ""
        return report.Example(row, name, picture)


def _pictures(chosen: argparse.Namespace) -> Pictures | None:
    if chosen.images is None:
        return None
    names: dict[str, Sequence[str]] = {}
    for item in chosen.on:
        given, _, path = item.rpartition("=")
        if Path(path).is_dir():
            found, shift, titles = read_image_names(Path(path))
            for value in np.unique(shift).tolist():
                title = titles[value - 1] if value else given or Path(path).stem
                names[title] = [found[i] for i in np.flatnonzero(shift == value)]
    if not names:
        raise ValueError(
            "--images needs test sets that know the names of their images: folders that collect "
            "wrote; .npz files hold none"
        )
    images = open_images(chosen.images, layout=chosen.layout)
    known = set(images.names)
    if not any(name in known for some in names.values() for name in some):
        raise ValueError(
            f"--images {chosen.images} holds none of the images that were collected, such as "
            f"{next(iter(names.values()))[0]}: give the folder that collect read"
        )
    return Pictures(images, names)


def thumbnail(images: ImageDataset, i: int) -> str:
    """A small JPEG as a data URI; nothing where the picture cannot be read."""
    from PIL import Image

    try:
        read = images.read(i)
    except UnreadableImage:
        return ""
    picture = Image.fromarray(read) if isinstance(read, np.ndarray) else read.copy()
    picture.thumbnail((SIDE, SIDE))
    held = io.BytesIO()
    picture.convert("RGB").save(held, "JPEG", quality=80)
    return f"data:image/jpeg;base64,{base64.b64encode(held.getvalue()).decode()}"


def study_of(
    predictions: Predictions,
    labels: Any,
    tests: TestSets,
    fitted: AnyCalibrator,
    rows: Sequence[Result],
    bootstrap: Bootstrap,
    *,
    title: str,
    command: str,
    digests: Mapping[str, str],
    pictures: Pictures | None = None,
    seed: int = 0,
) -> report.Study:
    """What a report about one fitted calibrator is made from."""
    sets = []
    for name, (test, truth) in tests.items():
        with ERR.status(f"measuring {fitted.title} on {name}"):
            sets.append(_test_set(name, test, truth, fitted, bootstrap, pictures))
    shifted = any(test.shift is not None and bool(test.shift.any()) for test, _ in tests.values())
    return report.Study(
        title=title,
        method=fitted.title,
        calibration_count=int(predictions.unshifted().sum()),
        sets=sets,
        comparison=rows,
        reference=bootstrap.reference or rows[0].calibrator,
        view_names=fitted.view_names,
        class_names=predictions.class_names,
        made=report.Made(command, versions(), digests, seed, bootstrap),
        notes=(UNSHIFTED,) if pictures is not None and shifted else (),
    )


def _test_set(
    name: str,
    test: Predictions,
    truth: Any,
    fitted: AnyCalibrator,
    bootstrap: Bootstrap,
    pictures: Pictures | None,
) -> report.TestSet:
    own = Bootstrap(bootstrap.resamples, bootstrap.seed)
    before, after, changes = before_and_after(fitted, name, test, truth, own)
    one = report.TestSet(
        name,
        test.confidence.cpu().numpy(),
        fitted.confidence(test).cpu().numpy(),
        test.classes.cpu().numpy(),
        truth.cpu().numpy(),
        before,
        after,
        changes,
    )
    examples = [
        report.Example(row) if pictures is None else pictures.example(name, row)
        for row in worst(one)
    ]
    return report.TestSet(**{**vars(one), "examples": examples})


def versions() -> dict[str, str]:
    """Of what computed the numbers."""
    import platform

    import torch

    return {
        "rightly": __version__,
        "Python": platform.python_version(),
        "torch": torch.__version__,
        "NumPy": np.__version__,
    }


def digest(path: Path) -> str:
    """SHA-256 of a file, or of all files of a folder with their names."""
    found = hashlib.sha256()
    for file in [path] if path.is_file() else sorted(path.iterdir()):
        if path.is_dir():
            found.update(file.name.encode())
        with file.open("rb") as opened:
            while block := opened.read(2**20):
                found.update(block)
    return found.hexdigest()
