"""`rightly predict`: confidence of stored predictions, or class and confidence of images."""

import json as jsons
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rightly.cli.console import OUT, print_line, write_json
from rightly.cli.options import (
    AnyClassifier,
    Engine,
    Import,
    Json,
    Probabilities,
    RayAddress,
    RayWorkers,
    check_outputs,
    make_cluster,
    option,
)
from rightly.progress import track

if TYPE_CHECKING:
    from rightly.deployment.outputs import Outputs
    from rightly.deployment.runtime import ExportedModel
    from rightly.reporting.layout import Layout

EXAMPLE = "rightly predict calibrator.safetensors test.npz --out confidence.csv"
FUNCTIONS = (
    "rightly.deployment.batch_inference:apply",
    "rightly.deployment.runtime:ExportedModel.predict",
)
EXPORTED = (".onnx", ".pt2")


def run(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="CALIBRATOR|MODEL",
            help="Saved calibrator (.safetensors), or exported model (.onnx, .pt2).",
        ),
    ],
    data: Annotated[
        list[Path],
        typer.Argument(
            metavar="DATA...",
            help="Stored predictions for a calibrator; images and folders of them for a model.",
        ),
    ],
    modules: Import = None,
    out: Annotated[
        Path | None, option("out", metavar="FILE|FOLDER", show_default="printed, for images")
    ] = None,
    jsonl: Annotated[bool, option("jsonl")] = False,
    json: Json = None,
    probabilities: Probabilities = False,
    shift_estimate: Annotated[
        float | None,
        typer.Option(help="Shift estimate to adapt to, for a model.", show_default="its own"),
    ] = None,
    batch_size: Annotated[int, option("batch-size", "--batch-size", "-b", metavar="N", min=1)] = 32,
    engine: Engine = "local",
    ray_address: RayAddress = None,
    ray_workers: RayWorkers = None,
    any_classifier: AnyClassifier = False,
) -> None:
    """Write a confidence for every prediction, or classify images.

    With a calibrator, --out is a .csv file, or for a folder of predictions a Parquet data set.
    """
    check_outputs([out, json], [model, *data])
    cluster = make_cluster(engine, ray_address, ray_workers)
    if model.suffix in EXPORTED:
        if out is not None or cluster is not None or any_classifier or probabilities:
            raise ValueError(
                "out, engine, any_classifier and probabilities are for a calibrator and stored "
                f"predictions, but {model} takes images: use --json FILE or --jsonl"
            )
        _predict_images(model, data, jsonl, json, shift_estimate, batch_size)
        return
    if jsonl or json or shift_estimate is not None:
        raise ValueError(
            "jsonl, json and shift_estimate are for an exported model (.onnx or .pt2) and images, "
            f"got {model}: use --out FILE.csv"
        )
    if out is None or len(data) > 1:
        raise ValueError("predict needs one DATA and --out FILE with a calibrator")
    from rightly.deployment.batch_inference import apply

    (source,) = data
    if cluster and not source.is_dir():
        raise ValueError(f"engine ray is for folders that collect wrote, got {source}")
    rows = apply(
        model,
        source,
        out,
        cluster=cluster,
        progress=True,
        any_classifier=any_classifier,
        probabilities=probabilities,
    )
    subject = f"the confidences of {source}" if rows is None else f"{rows} confidences"
    print_line(f"{subject} are in {out}")


def _predict_images(
    model: Path,
    images: list[Path],
    jsonl: bool,
    json: Path | None,
    shift_estimate: float | None,
    batch_size: int,
) -> None:
    from rightly.deployment.metadata import describe_guarantees, void_reason
    from rightly.deployment.runtime import open_exported
    from rightly.reporting.terminal import render_layout, show

    exported = open_exported(model)
    void = void_reason(exported.metadata, adapts=bool(shift_estimate))
    files = [file for path in images for file in list_images_of(path)]
    unreadable: list[str] = []
    rows: list[dict[str, Any]] = []
    with track(True) as step:
        for start in range(0, len(files), batch_size):
            batch = files[start : start + batch_size]
            predicted = _predict(exported, batch, unreadable, shift_estimate)
            added = [{**row, "void": void} for row in predicted]
            if jsonl:
                for row in added:
                    typer.echo(jsons.dumps(row))
            rows += added
            step("predicting", start + len(batch), len(files))
    if not jsonl:
        notes = describe_guarantees(exported.metadata, void) if void else []
        show(OUT, render_layout, _lay_out(rows, exported.threshold, list(dict.fromkeys(notes))))
    if json:
        write_json(json, "rightly-predictions", {"model": str(model), "rows": rows})
    if unreadable:
        raise ValueError(f"{len(unreadable)} of {len(files)} images: {'; '.join(unreadable)}")


def list_images_of(path: Path) -> list[Path]:
    """One image file, or those of a folder and the folders in it."""
    from rightly.datasets.class_folders import list_images

    if path.is_dir():
        files = [path / name for name in list_images(path)[0]]
        if not files:
            raise ValueError(f"{path} holds no images")
        return files
    if not path.is_file():
        raise FileNotFoundError(f"there is no image {path}")
    return [path]


def _predict(
    model: "ExportedModel",
    files: Sequence[Path],
    unreadable: list[str],
    shift_estimate: float | None,
) -> list[dict[str, Any]]:
    import numpy as np

    from rightly.datasets import UnreadableImage
    from rightly.datasets.decoding import ImageFiles

    decoded: list[tuple[Path, np.ndarray]] = []
    for file in files:
        try:
            image = ImageFiles(file.parent, [file.name])(0)
        except UnreadableImage as error:
            unreadable.append(str(error))
            continue
        decoded.append((file, model.preprocessing.pixels(image)))
    if not decoded:
        return []
    outputs = model.predict(np.stack([pixels for _, pixels in decoded]), shift_estimate)
    files = [file for file, _ in decoded]
    rows = zip(outputs.rows(), files, strict=True)
    return [_make_row(model, row, str(file)) for row, file in rows]


def _make_row(model: "ExportedModel", outputs: "Outputs", file: str) -> dict[str, Any]:
    """The outputs for one image, as plain values."""
    from rightly.deployment.outputs import describe_row

    row = describe_row(outputs)
    names = model.class_names
    name = None if names is None else names[row["class"]]
    if names is not None and row["prediction_set"] is not None:
        row["prediction_set"] = [names[k] for k in row["prediction_set"]]
    return {"file": file, "name": name, **row}


def _lay_out(
    rows: Sequence[dict[str, Any]], threshold: float | None, notes: Sequence[str]
) -> "Layout":
    from rightly.reporting.layout import Cell, Column, Layout

    columns = {
        "class": [row["name"] or str(row["class"]) for row in rows],
        "confidence": [f"{row['confidence']:.3f}" for row in rows],
        "uncalibrated": [f"{row['raw_confidence']:.3f}" for row in rows],
    }
    if threshold is not None:
        heading = f"accept (from {threshold:.3f})"
        columns[heading] = ["yes" if row["accept"] else "no" for row in rows]
    if any(row["prediction_set"] is not None for row in rows):
        columns["prediction set"] = [
            ", ".join(map(str, row["prediction_set"])) or "empty" for row in rows
        ]
    return Layout(
        "image",
        [row["file"] for row in rows],
        [Column(heading, [Cell(text) for text in texts]) for heading, texts in columns.items()],
        notes=notes,
    )
