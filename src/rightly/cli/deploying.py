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
from rightly.classifiers import KNOWN
from rightly.cli.calibrating import labelled, names_in
from rightly.cli.collecting import add_preprocessing, preprocessing_of
from rightly.cli.consoles import ERR, OUT
from rightly.datasets import UnreadableImage
from rightly.datasets.class_folders import pictures_in
from rightly.datasets.decoding import Files
from rightly.deployment import ExportedModel, Outputs, export_model, make_card, open_exported
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
    if chosen.samples < 1:
        raise ValueError(f"--samples must be at least 1, got {chosen.samples}")
    spec = chosen.model or f"onnx:{chosen.graft}"
    only_size = chosen.resize is None and chosen.mean is None and chosen.std is None
    with ERR.status(f"exporting {spec}"):
        metadata = export_model(
            spec,
            chosen.calibrator,
            chosen.out,
            images=chosen.images or (),
            samples=chosen.samples,
            preprocessing=None if only_size else preprocessing_of(chosen),
            size=(chosen.size, chosen.size) if chosen.size else None,
            output=chosen.output,
        )
    parity = metadata["parity"]
    OUT.print(
        f"{spec} with {metadata['method']} is in {chosen.out} "
        f"({Path(chosen.out).stat().st_size / 1e6:.1f} MB)\n"
        f"on {parity['images']} {parity['kind']} images its confidence differs from torch's by at "
        f"most {parity['confidence']:.1e}",
        soft_wrap=True,
        markup=False,
    )


def _predict(chosen: argparse.Namespace) -> None:
    model = open_exported(chosen.model)
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


def _rows(model: ExportedModel, files: list[Path], unreadable: list[str]) -> list[dict[str, Any]]:
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
    outputs = model.predict(np.stack([pixels for _, pixels in read]))
    return [row_of(model, outputs, i, str(file)) for i, (file, _) in enumerate(read)]


def row_of(model: ExportedModel, outputs: Outputs, i: int, file: str) -> dict[str, Any]:
    """What is said about one picture, as plain values."""
    number = int(outputs.classes[i])
    names = model.class_names
    return {
        "file": file,
        "class": number,
        "name": None if names is None else names[number],
        "confidence": float(outputs.confidence[i]),
        "raw_confidence": float(outputs.raw_confidence[i]),
        "accept": None if outputs.accept is None else bool(outputs.accept[i]),
    }


def _predictions_table(rows: list[dict[str, Any]], model: ExportedModel) -> Table:
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
    tests = {}
    for item in chosen.on:
        name, _, file = item.rpartition("=")
        tests[name or Path(file).stem] = file
    if tests and chosen.calibrator is None and Path(chosen.model).suffix in (".onnx", ".pt2"):
        raise ValueError("--on needs --calibrator, because an exported file takes images")
    text = make_card(chosen.model, tests, chosen.calibrator, block_only=chosen.block)
    if chosen.out is None:
        OUT.print(text, markup=False, highlight=False, soft_wrap=True)
        return
    write_atomically(Path(chosen.out), lambda part: part.write_text(text))
    OUT.print(f"the card is in {chosen.out}", soft_wrap=True)
