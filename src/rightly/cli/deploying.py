"""Commands for the last mile: export, predict, budget, card."""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track
from rich.table import Table

from rightly.atomic_write import write_atomically
from rightly.calibrators import FittedCalibrator, load_calibrator
from rightly.classifiers import KNOWN, Preprocessing
from rightly.cli.calibrating import labelled, names_in
from rightly.cli.collecting import add_preprocessing, preprocessing_of
from rightly.cli.consoles import ERR, OUT
from rightly.datasets import UnreadableImage
from rightly.datasets.class_folders import pictures_in
from rightly.datasets.decoding import Files
from rightly.decisions.thresholds import operating_point
from rightly.deployment import CalibratedClassifier, Deployed, Verdicts, export, open_deployed
from rightly.deployment.hub import CALIBRATOR, CONFIG
from rightly.deployment.metadata import expected_preprocessing, identity_without_classifier
from rightly.deployment.model_card import Measured, block_of, card_of
from rightly.evaluation.measurement import TABLE_METRICS, measure, split_by_shift, uncalibrated
from rightly.evaluation.view_cost import METRICS, Point, cost_curve


def add_commands(commands: Any) -> None:
    """The commands of this module and their arguments."""
    add = commands.add_parser("export", help="classifier, views and calibrator in one file")
    source = add.add_mutually_exclusive_group(required=True)
    source.add_argument("--model", metavar="SPEC", help=KNOWN)
    source.add_argument("--graft", metavar="FILE", help="an ONNX classifier made elsewhere")
    add.add_argument("--calibrator", required=True, help="a saved calibrator (.safetensors)")
    add.add_argument("--out", required=True, metavar="FILE", help="where to write: .onnx or .pt2")
    add.add_argument(
        "--images", metavar="FOLDER", help="pictures on which file and torch must agree"
    )
    add.add_argument("--samples", type=int, default=16, help="how many of them")
    add.add_argument("--output", help="which of several outputs holds the logits")
    add_preprocessing(add)
    add.set_defaults(run=_export)

    add = commands.add_parser("predict", help="class and confidence of pictures")
    add.add_argument("model", help="a file that export wrote (.onnx or .pt2)")
    add.add_argument("pictures", nargs="+", help="picture files and folders of them")
    add.add_argument("--json", action="store_true", help="print JSON, one object a picture")
    add.add_argument("-b", "--batch-size", type=int, default=32)
    add.set_defaults(run=_predict)

    add = commands.add_parser("budget", help="what looking at views costs and what it gains")
    add.add_argument("cal", help="calibration predictions with views and labels")
    add.add_argument("--method", default="rightly", help="that looks at the views")
    add.add_argument("--views", help="use only these views, in this order")
    add.add_argument("--budgets", help="mean forward passes per image, joined by commas")
    add.add_argument("--plot", metavar="FILE", help="draw the curve: .pdf, .svg or .png")
    add.add_argument("--json", metavar="FILE", help="also write the values here")
    add.set_defaults(run=_budget)

    add = commands.add_parser("card", help="a model card: calibration, threshold, cost")
    add.add_argument("model", help="a .onnx or .pt2 file, a calibrator, or a saved folder")
    add.add_argument(
        "--on",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="test predictions to measure the calibrator on (with --calibrator for exported files)",
    )
    add.add_argument("--calibrator", help="the calibrator of an exported file, for --on")
    add.add_argument(
        "--block", action="store_true", help="only the block, without the Hub's header"
    )
    add.add_argument("--out", metavar="FILE", help="where to write; printed without it")
    add.set_defaults(run=_card)


def _export(chosen: argparse.Namespace) -> None:
    fitted = load_calibrator(chosen.calibrator)
    spec = chosen.model or f"onnx:{chosen.graft}"
    preprocessing, size = _told_of_images(chosen, fitted)
    model = CalibratedClassifier(
        spec, fitted, preprocessing=preprocessing, output=chosen.output, device="cpu"
    )
    pictures = [] if chosen.images is None else _some_pictures(Path(chosen.images), chosen.samples)
    with ERR.status(f"exporting {spec} with {fitted.title}"):
        identity = export(model, chosen.out, pictures, size)
    parity = identity["parity"]
    OUT.print(
        f"{spec} with {fitted.title} is in {chosen.out} "
        f"({Path(chosen.out).stat().st_size / 1e6:.1f} MB)\n"
        f"on {parity['images']} {parity['kind']} images its confidence differs from torch's by at "
        f"most {parity['confidence']:.1e}",
        soft_wrap=True,
        markup=False,
    )


def _told_of_images(
    chosen: argparse.Namespace, fitted: FittedCalibrator
) -> tuple[Preprocessing | None, tuple[int, int] | None]:
    """How the classifier wants its images, and their size where it takes any."""
    size = (chosen.size, chosen.size) if chosen.size else None
    expected = expected_preprocessing(fitted)
    only_size = chosen.resize is None and chosen.mean is None and chosen.std is None
    if only_size and expected is not None and expected.size is None:
        return None, size
    return preprocessing_of(chosen), size


def _some_pictures(folder: Path, count: int) -> list[Any]:
    if count < 1:
        raise ValueError(f"--samples must be at least 1, got {count}")
    files = _files(folder)
    chosen = files[:: max(1, len(files) // count)][:count]
    return [Files(file.parent, [file.name])(0) for file in chosen]


def _predict(chosen: argparse.Namespace) -> None:
    model = open_deployed(chosen.model)
    files = [file for given in chosen.pictures for file in _files(Path(given))]
    unreadable: list[str] = []
    rows = []
    for batch in _batches(files, chosen.batch_size):
        rows += _rows(model, batch, unreadable)
    if chosen.json:
        OUT.print_json(json.dumps(rows))
    else:
        OUT.print(_predictions_table(rows, model))
    if unreadable:
        raise ValueError(f"{len(unreadable)} of {len(files)} pictures: {'; '.join(unreadable)}")


def _files(given: Path) -> list[Path]:
    if given.is_dir():
        found = [given / name for name in pictures_in(given)[0]]
        if not found:
            raise ValueError(f"{given} holds no pictures")
        return found
    if not given.is_file():
        raise FileNotFoundError(f"there is no picture {given}")
    return [given]


def _batches(files: list[Path], size: int) -> Iterator[list[Path]]:
    starts = range(0, len(files), size)
    for start in track(starts, "predicting", console=ERR, transient=True):
        yield files[start : start + size]


def _rows(model: Deployed, files: list[Path], unreadable: list[str]) -> list[dict[str, Any]]:
    read: list[tuple[Path, np.ndarray]] = []
    for file in files:
        try:
            picture = Files(file.parent, [file.name])(0)
        except UnreadableImage as error:
            unreadable.append(str(error))
            continue
        read.append((file, model.preprocessing.pixels(picture)))
    if not read:
        return []
    verdicts = model.predict(np.stack([pixels for _, pixels in read]))
    return [row_of(model, verdicts, i, str(file)) for i, (file, _) in enumerate(read)]


def row_of(model: Deployed, verdicts: Verdicts, i: int, file: str) -> dict[str, Any]:
    """What is said about one picture, as plain values."""
    number = int(verdicts.classes[i])
    names = model.class_names
    return {
        "file": file,
        "class": number,
        "name": None if names is None else names[number],
        "confidence": float(verdicts.confidence[i]),
        "raw_confidence": float(verdicts.raw_confidence[i]),
        "accept": None if verdicts.accept is None else bool(verdicts.accept[i]),
    }


def _predictions_table(rows: list[dict[str, Any]], model: Deployed) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("picture", "class"):
        table.add_column(name, overflow="fold")
    for name in ("confidence", "classifier's own"):
        table.add_column(name, justify="right")
    if model.threshold is not None:
        table.add_column(f"accept (from {model.threshold:.3f})")
    for row in rows:
        cells = [row["file"], row["name"] or str(row["class"])]
        cells += [f"{row['confidence']:.3f}", f"{row['raw_confidence']:.3f}"]
        if model.threshold is not None:
            cells.append("yes" if row["accept"] else "no")
        table.add_row(*cells)
    return table


def _budget(chosen: argparse.Namespace) -> None:
    predictions, labels = labelled(chosen.cal, chosen.views)
    budgets = [float(text) for text in names_in(chosen.budgets)] if chosen.budgets else ()
    with ERR.status(f"fitting {chosen.method} on halves of {len(predictions)} predictions"):
        points = cost_curve(predictions, labels, chosen.method, budgets)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("budget", "passes", "views looked at where", "brier ↓", "auroc ↑", "ece ↓"):
        table.add_column(name, justify="right")
    for point in points:
        band = "never" if point.band is None else f"{point.band[0]:.3f} to {point.band[1]:.3f}"
        band = "everywhere" if point.band == (0.0, 1.0) else band
        values = [f"{100 * value:.2f}" for value in (point.brier, point.auroc, point.ece)]
        table.add_row(f"{point.budget:g}", f"{point.passes:.2f}", band, *values)
    OUT.print(
        f"{chosen.method} over {len(predictions.view_names)} views "
        f"({', '.join(predictions.view_names)}), judged on samples not fitted on",
        soft_wrap=True,
    )
    OUT.print(table)
    OUT.print("passes: mean forward passes per image. All metrics times 100.", style="dim")
    if chosen.json:
        text = json.dumps([asdict(point) for point in points], indent=1) + "\n"
        write_atomically(Path(chosen.json), lambda part: part.write_text(text))
    if chosen.plot:
        _plot_budget(points, Path(chosen.plot))
        OUT.print(f"the curve is in {chosen.plot}", soft_wrap=True)


def _plot_budget(points: list[Point], path: Path) -> None:
    from rightly.reporting import figures as plots

    panels = plots.grid_of(1, len(METRICS), 2.4)[0]
    passes = np.array([point.passes for point in points])
    for ax, name in zip(panels, METRICS, strict=True):
        values = 100 * np.array([getattr(point, name) for point in points])
        plots.budget_curve(passes, values, values, values, ax, label=f"{name} x 100")
    plots.save(panels[0], path)


def _card(chosen: argparse.Namespace) -> None:
    path = Path(chosen.model)
    identity = _identity(path)
    results = []
    if chosen.on:
        results = _measured(_calibrator_path(path, chosen.calibrator), chosen.on)
    text = (block_of if chosen.block else card_of)(identity, results)
    if chosen.out is None:
        OUT.print(text, markup=False, highlight=False, soft_wrap=True)
        return
    write_atomically(Path(chosen.out), lambda part: part.write_text(text))
    OUT.print(f"the card is in {chosen.out}", soft_wrap=True)


def _identity(path: Path) -> Any:
    if path.is_dir():
        try:
            return json.loads((path / CONFIG).read_text())
        except (OSError, ValueError) as error:
            raise ValueError(f"{path} must hold a {CONFIG} of save_pretrained: {error}") from error
    if path.suffix in (".onnx", ".pt2"):
        return open_deployed(path).identity
    return identity_without_classifier(load_calibrator(path))


def _calibrator_path(path: Path, given: str | None) -> Path:
    if given is not None:
        return Path(given)
    if path.is_dir():
        return path / CALIBRATOR
    if path.suffix in (".onnx", ".pt2"):
        raise ValueError("--on needs --calibrator, because an exported file takes images")
    return path


def _measured(path: Path, tests: list[str]) -> list[Measured]:
    fitted = load_calibrator(path)
    results = []
    for item in tests:
        name, _, file = item.rpartition("=")
        loaded = labelled(file, ",".join(fitted.view_names) or None)
        for title, (shown, truth) in split_by_shift(name or Path(file).stem, *loaded).items():
            own = uncalibrated(shown, truth)
            correct = shown.correct(truth)
            point = None
            if fitted.threshold is not None:
                point = operating_point(fitted.confidence(shown), correct, fitted.threshold)
            results.append(
                Measured(
                    title,
                    len(shown),
                    float(correct.double().mean()),
                    measure(own, shown, truth, TABLE_METRICS),
                    measure(fitted, shown, truth, TABLE_METRICS),
                    None if point is None else point.coverage,
                    None if point is None or not point.accepted else point.accuracy,
                )
            )
    return results
