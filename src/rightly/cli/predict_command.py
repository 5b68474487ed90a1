"""`rightly predict`: class and confidence of pictures."""

import json as jsons
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rightly.cli.console import OUT, show_progress, write_json

if TYPE_CHECKING:
    from rightly.deployment.outputs import Outputs
    from rightly.deployment.runtime import ExportedModel
    from rightly.reporting.layout import Layout

EXAMPLE = "rightly predict model.onnx photo.jpg folder --jsonl"


def run(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="What export wrote (.onnx or .pt2).")
    ],
    pictures: Annotated[
        list[Path], typer.Argument(metavar="PICTURE...", help="Pictures, and folders of them.")
    ],
    jsonl: Annotated[
        bool,
        typer.Option("--jsonl", help="Print JSON lines, one object a picture, instead of a table."),
    ] = False,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write all of them here.")
    ] = None,
    shift_estimate: Annotated[
        float | None,
        typer.Option(help="Shift estimate that confidence is adapted to.", show_default="own"),
    ] = None,
    batch_size: Annotated[
        int, typer.Option("--batch-size", "-b", min=1, help="Pictures run at once.")
    ] = 32,
) -> None:
    """Predict class and confidence of pictures."""
    from rightly.deployment.runtime import open_exported
    from rightly.reporting.terminal import render_layout, show

    exported = open_exported(model)
    files = [file for path in pictures for file in list_pictures(path)]
    unreadable: list[str] = []
    rows: list[dict[str, Any]] = []
    with show_progress(len(files), "predicting") as advance:
        for start in range(0, len(files), batch_size):
            batch = files[start : start + batch_size]
            added = _predict(exported, batch, unreadable, shift_estimate)
            if jsonl:
                for row in added:
                    typer.echo(jsons.dumps(row))
            rows += added
            advance(len(batch))
    if not jsonl:
        show(OUT, render_layout, _lay_out(rows, exported.threshold))
    if json:
        write_json(json, "rightly-predictions", {"model": str(model), "rows": rows})
    if unreadable:
        raise ValueError(f"{len(unreadable)} of {len(files)} pictures: {'; '.join(unreadable)}")


def list_pictures(path: Path) -> list[Path]:
    """A picture, or those of a folder and the folders in it."""
    from rightly.datasets.class_folders import list_images

    if path.is_dir():
        files = [path / name for name in list_images(path)[0]]
        if not files:
            raise ValueError(f"{path} holds no pictures")
        return files
    if not path.is_file():
        raise FileNotFoundError(f"there is no picture {path}")
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
            picture = ImageFiles(file.parent, [file.name])(0)
        except UnreadableImage as error:
            unreadable.append(str(error))
            continue
        decoded.append((file, model.preprocessing.pixels(picture)))
    if not decoded:
        return []
    outputs = model.predict(np.stack([pixels for _, pixels in decoded]), shift_estimate)
    files = [file for file, _ in decoded]
    rows = zip(outputs.rows(), files, strict=True)
    return [_make_row(model, row, str(file)) for row, file in rows]


def _make_row(model: "ExportedModel", outputs: "Outputs", file: str) -> dict[str, Any]:
    """The outputs for one picture, as plain values."""
    from rightly.deployment.outputs import describe_row

    row = describe_row(outputs)
    names = model.class_names
    name = None if names is None else names[row["class"]]
    if names is not None and row["prediction_set"] is not None:
        row["prediction_set"] = [names[k] for k in row["prediction_set"]]
    return {"file": file, "name": name, **row}


def _lay_out(rows: Sequence[dict[str, Any]], threshold: float | None) -> "Layout":
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
    )
