"""The metadata of an exported file or saved folder: what a reader may rely on.

Neither torch nor SciPy is loaded here; `provenance` writes what this reads.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rightly.classifiers.preprocessing import Preprocessing

FORMAT = "rightly-deployed"
VERSION = 2
ONNX_KEY = "rightly"  # the entry of an ONNX file's metadata
PROGRAM_FILE = "rightly.json"  # the file inside a .pt2 archive
CONFIG_FILE = "config.json"  # the file in a saved folder
CALIBRATOR_FILE = "calibrator.safetensors"  # what stands beside it
REMEDY = "write it with rightly export"


def parse_metadata(text: str | None, path: object, remedy: str = REMEDY) -> dict[str, Any]:
    """The metadata in a file's JSON, checked; None where the file has none."""
    if text is None:
        return check_metadata(None, path, remedy)
    try:
        values = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{path} has damaged metadata: {error}") from error
    return check_metadata(values, path, remedy)


def check_metadata(values: Any, path: object, remedy: str = REMEDY) -> dict[str, Any]:
    """Refuses what this version cannot read."""
    if not isinstance(values, Mapping) or values.get("format") != FORMAT:
        raise ValueError(f"{path} has no Rightly metadata: {remedy}")
    if values.get("version") != VERSION:
        raise ValueError(
            f"{path} has format version {values.get('version')}, but this rightly reads "
            f"{VERSION}: use the rightly that wrote it, or {remedy}"
        )
    try:
        Preprocessing.from_dict(values["preprocessing"])
        str(values["method"]), int(values["class_count"]), list(values["views"])
        float(values["passes"])
        if values["threshold"] is not None:
            float(values["threshold"]["value"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} has damaged metadata: {error!r}") from error
    return dict(values)


def read_config(folder: Path) -> dict[str, Any]:
    """The metadata of a saved folder."""
    path = folder / CONFIG_FILE
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder} must hold a {CONFIG_FILE}, which save_pretrained writes, but has none"
        )
    return parse_metadata(path.read_text(encoding="utf-8"), path, "write it with save_pretrained")
