"""What `rightly compare`, `report` and `demo` call, until it moves to rightly.reporting."""

import base64
import hashlib
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rightly import __version__
from rightly.calibrators import CALIBRATORS, Calibrator
from rightly.cli.console import ERR, print_line, show_progress, show_status, write_json
from rightly.cli.inputs import split_names, split_test_set
from rightly.datasets import ImageDataset, UnreadableImage, open_images
from rightly.evaluation.measurement import (
    TABLE_METRICS,
    TestSets,
    before_and_after,
    compare,
    is_random,
    missing,
)
from rightly.evaluation.results import SIGNIFICANT, Bootstrap, Result
from rightly.metrics import METRICS
from rightly.metrics.bootstrap import least_resamples
from rightly.predictions import Predictions
from rightly.predictions.parquet import image_names
from rightly.reporting import html as report
from rightly.reporting import tables, terminal
from rightly.reporting.html.study import worst

REFERENCE = "temperature_scaling"  # what one does without thinking
RESULTS = "rightly-results"
DEFAULT_METHODS = (  # baselines, the paper's, and Rightly's own
    "uncalibrated",
    "temperature_scaling",
    "ensemble_temperature_scaling",
    "multi_isotonic",
    "spline",
    "ca_only",
    "ca_views",
    "rightly",
)
UNSHIFTED = "Pictures are shown as they are, without the shift."
SIDE = 128  # pixels of a thumbnail


def select_methods(asked: str | None, predictions: Predictions, tests: TestSets) -> list[str]:
    """The methods named, or of all or the usual those whose inputs are there."""
    if asked not in (None, "all"):
        return split_names(asked)
    lacking = {
        name: missing(name, predictions, tests)
        for name in (CALIBRATORS if asked else DEFAULT_METHODS)
    }
    for need in ("view_logits", "features"):
        skipped = [name for name, needs in lacking.items() if need in needs]
        if skipped:
            print_line(f"skipped: needs {need} ({', '.join(skipped)})", ERR, style="dim")
    return [name for name, needs in lacking.items() if not needs]


def select_metrics(asked: str | None) -> Sequence[str]:
    if asked is None:
        return TABLE_METRICS
    return list(METRICS) if asked == "all" else split_names(asked)


def make_bootstrap(
    methods: Sequence[str], resamples: int | None, seed: int, reference: str | None = None
) -> Bootstrap:
    """Enough resamples to tell these methods from the reference, if not said otherwise."""
    enough = max(1000, least_resamples(len(methods) - 1, SIGNIFICANT))
    default = REFERENCE if REFERENCE in methods else methods[0]
    return Bootstrap(enough if resamples is None else resamples, seed, reference or default)


def compare_with_progress(
    predictions: Predictions,
    labels: Any,
    tests: TestSets,
    methods: Sequence[str],
    metrics: Sequence[str],
    seeds: int,
    bootstrap: Bootstrap | None = None,
) -> list[Result]:
    """Compares with a progress bar."""
    total = sum(seeds if is_random(name) else 1 for name in methods)
    with show_progress(total) as advance:
        begun = 0

        def announce(name: str) -> None:
            nonlocal begun
            advance(int(begun > 0), f"fitting {name}".ljust(36))
            begun += 1

        return compare(predictions, labels, tests, methods, metrics, seeds, announce, bootstrap)


def print_results(rows: Sequence[Result], console: Any, bootstrap: Bootstrap | None) -> None:
    if bootstrap is None:
        tables.print_comparison(rows, console)
    else:
        assert bootstrap.reference is not None
        terminal.print_verdicts(rows, console, bootstrap.reference, bootstrap)


def write_results(path: Path, rows: Sequence[Result], bootstrap: Bootstrap | None) -> None:
    content = {
        "rows": [row._asdict() for row in rows],
        "bootstrap": None if bootstrap is None else vars(bootstrap),
    }
    write_json(path, RESULTS, content)


def read_results(path: Path) -> list[Result]:
    """Results that `write_results` wrote."""
    try:
        document = json.loads(path.read_text())
        kind, version = document["format"], document["version"]
        rows: list[dict[str, Any]] = [
            {key: math.nan if value is None else value for key, value in row.items()}
            for row in document["rows"]
        ]
        if kind != RESULTS:
            raise KeyError(kind)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} must be JSON that rightly compare --json wrote, got something else ({error})"
        ) from error
    if version != 1:
        raise ValueError(
            f"{path} has version {version} of {RESULTS}, but this Rightly reads version 1: "
            "write it again with rightly compare --json"
        )
    return [Result(**row) for row in rows]


class Pictures:
    """The images behind test sets, by the names that `collect` stored."""

    def __init__(self, images: ImageDataset, names: Mapping[str, Sequence[str]]) -> None:
        self.images, self.names = images, names
        self.index = {name: i for i, name in enumerate(images.names)}

    def example(self, dataset: str, row: int) -> report.Example:
        name = self.names[dataset][row] if dataset in self.names else ""
        picture = thumbnail(self.images, self.index[name]) if name in self.index else ""
        return report.Example(row, name, picture)


def open_pictures(folder: Path, layout: str, tests: Sequence[str]) -> Pictures:
    """The images that --images names."""
    names: dict[str, Sequence[str]] = {}
    for item in tests:
        given, path = split_test_set(item)
        if path.is_dir():
            found, shift, titles = image_names(path)
            for value in np.unique(shift).tolist():
                title = titles[value - 1] if value else given
                names[title] = [found[i] for i in np.flatnonzero(shift == value)]
    if not names:
        raise ValueError(
            "--images needs test sets that know the names of their images: folders that collect "
            "wrote; .npz files hold none"
        )
    images = open_images(folder, layout=layout)
    known = set(images.names)
    if not any(name in known for some in names.values() for name in some):
        raise ValueError(
            f"--images {folder} holds none of the images that were collected, such as "
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
    fitted: Calibrator,
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
        with show_status(f"measuring {fitted.title} on {name}"):
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
    fitted: Calibrator,
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
