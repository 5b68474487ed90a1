"""The metadata of an exported file or saved folder: what a reader may rely on.

Neither torch nor SciPy is loaded here; `provenance` writes what this reads.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rightly.checks import are_distinct_names, are_names, is_count, is_share, is_text
from rightly.classifiers.preprocessing import Preprocessing
from rightly.files import parse_json
from rightly.predictions.stored_decision import check_decision

FORMAT = "rightly-deployed"
VERSION = 2
ONNX_KEY = "rightly"  # the entry of an ONNX file's metadata
PROGRAM_FILE = "rightly.json"  # the file inside a .pt2 archive
CONFIG_FILE = "config.json"  # the file in a saved folder
CALIBRATOR_FILE = "calibrator.safetensors"  # what stands beside it
DRIFT_ARRAYS = {"reference", "centres", "scale", "allowance", "counts"}
DRIFT_ARRAYS |= {"rows", "row_classes", "row_labels"}
REMEDY = "write it with rightly export"


def _is_number(value: object) -> bool:
    return type(value) in (int, float)


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping)


def _is_measurement(value: Any) -> bool:
    """Samples, accuracy and metrics before and after, as a card prints them."""
    return (
        _is_table(value)
        and is_count(value.get("samples"))
        and is_share(value.get("accuracy"))
        and all(
            _is_table(value.get(when))
            and all(number is None or _is_number(number) for number in value[when].values())
            for when in ("before", "after")
        )
    )


def _is_threshold(value: Any) -> bool:
    """A confidence, and the record of the decision for it."""
    if not _is_table(value) or not is_share(value.get("value")):
        return False
    check_decision({**value, "threshold": value["value"]})
    measured = ("coverage", "accuracy", "accuracy_low", "accuracy_high")
    return value.get("accuracy") is None or all(is_share(value.get(name)) for name in measured)


def _is_parity(value: Any) -> bool:
    return (
        _is_table(value)
        and is_count(value.get("images"))
        and isinstance(value.get("kind"), str)
        and _is_number(value.get("confidence", 0.0))
    )


def _is_sets(value: Any) -> bool:
    """The coverage that prediction sets promise, by which score, on how many held-out images."""
    interval: Any = value.get("coverage_interval") if _is_table(value) else None
    return (
        _is_table(value)
        and is_share(value.get("coverage"))
        and isinstance(value.get("score"), str)
        and isinstance(value.get("class_conditional"), bool)
        and is_count(value.get("samples"), 1)
        and is_count(value.get("marginal_classes"))
        and _is_number(value.get("mean_size"))
        and (interval is None or are_numbers(interval, 2) and all(map(is_share, interval)))
    )


def _is_adaptation(value: Any) -> bool:
    """What a caller needs to estimate the shift of its images, and to adapt confidence to it."""
    return (
        _is_table(value)
        and all(_is_number(value.get(name)) for name in ("value", "noise"))
        and value["noise"] >= 0
        and are_numbers(value.get("weights"), 3)
        and are_numbers(value.get("limits"), 2)
        and value["limits"][0] <= value["limits"][1]
        and are_numbers(value.get("misses"))
        and (value.get("quantile") is None or _is_ranged(value))
    )


def _is_ranged(value: Any) -> bool:
    """Whether a shift adaptation gives the range of an expected accuracy."""
    kinds = len(value["misses"])
    return (
        kinds > 1
        and _is_number(value["quantile"])
        and are_numbers(value.get("kind_contexts"), kinds)
    )


def are_numbers(value: object, count: int | None = None) -> bool:
    """Whether a value is a list of numbers, so many of them."""
    return isinstance(value, list) and count in (None, len(value)) and all(map(_is_number, value))


def _is_drift(value: Any) -> bool:
    """The arrays of a DriftReference, and the reference of scores, of one number a class."""
    if not _is_table(value) or set(value) != DRIFT_ARRAYS:
        return False
    count, rows = len(value["reference"]), len(value["rows"])
    return (
        all(are_numbers(value[name], count) for name in ("reference", "counts"))
        and all(are_numbers(value[name], 3) for name in ("scale", "allowance"))
        and all(are_numbers(row, 3) for row in (*value["centres"], *value["rows"]))
        and len(value["centres"]) == count
        and all(map(is_count, value["counts"]))
        and sum(value["counts"]) > 0
        and min(value["scale"]) >= 0
        and all(
            len(value[name]) == rows > 0 and all(is_count(k) and k < count for k in value[name])
            for name in ("row_classes", "row_labels")
        )
    )


# What the entries must be: the first have to be there, the others may be left out or null.
REQUIRED: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "method": ("text", lambda value: isinstance(value, str)),
    "class_count": ("a number of classes from 2 on", lambda value: is_count(value, 2)),
    "views": ("a list of different names", are_distinct_names),
    "preprocessing": ("a table", _is_table),
    "has_temperature": ("true or false", lambda value: isinstance(value, bool)),
    "passes": ("a number from 1 on", lambda value: _is_number(value) and value >= 1),
}
OPTIONAL: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "class_names": ("a list of names", are_names),
    "threshold": ("a table whose value, coverage and accuracy lie in 0..1", _is_threshold),
    "no_threshold": ("text", is_text),  # why none could be promised
    "classifier": (
        "a table of text",
        lambda value: _is_table(value) and all(is_text(item) for item in value.values()),
    ),
    "calibration": ("samples, accuracy and metrics before and after", _is_measurement),
    "shift_adaptation": ("a table of value, weights, limits, noise and misses", _is_adaptation),
    "sets": ("a table of coverage, score, samples and what they promise", _is_sets),
    "drift": ("a table of what samples without drift look like", _is_drift),
    "adapted": ("a table", _is_table),
    "recalibrated": ("a table", _is_table),
    "parity": ("images, kind and confidence", _is_parity),
    "arguments": ("a table", _is_table),
    "keeps_class": ("true or false", lambda value: isinstance(value, bool)),
    "rightly": ("text", is_text),
}


def parse_metadata(text: str | None, path: object, remedy: str = REMEDY) -> dict[str, Any]:
    """The metadata in a file's JSON, checked; None where the file has none."""
    if text is None:
        return check_metadata(None, path, remedy)
    try:
        values = parse_json(text)
    except ValueError as error:
        raise ValueError(f"{path} has damaged metadata: {error}") from error
    return check_metadata(values, path, remedy)


def check_metadata(values: Any, path: object, remedy: str = REMEDY) -> dict[str, Any]:
    """Refuses what this version cannot read, and entries of another type or range."""
    if not isinstance(values, Mapping) or values.get("format") != FORMAT:
        raise ValueError(f"{path} has no Rightly metadata: {remedy}")
    if values.get("version") != VERSION:
        raise ValueError(
            f"{path} has format version {values.get('version')}, but this rightly reads "
            f"{VERSION}: use the rightly that wrote it, or {remedy}"
        )
    try:
        _check_entries(values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} has damaged metadata: {error}; {remedy}") from error
    return dict(values)


def _check_entries(values: Mapping[str, Any]) -> None:
    for name, (expected, is_right) in (REQUIRED | OPTIONAL).items():
        value = values.get(name)
        if value is None and name in OPTIONAL:
            continue
        if not is_right(value):
            raise ValueError(f"{name} must be {expected}, got {str(value)[:60]}")
    count, names = values["class_count"], values.get("class_names")
    if names is not None and len(names) != count:
        raise ValueError(f"class_names must have {count} names, one a class, got {len(names)}")
    drift = values.get("drift")
    if drift is not None and len(drift["reference"]) != count:
        raise ValueError(f"drift must be of {count} classes, got {len(drift['reference'])}")
    most = 1 + len(values["views"])
    if values["passes"] > most:
        raise ValueError(
            f"passes must be at most {most}, one for the image and each view, got "
            f"{str(values['passes'])[:60]}"
        )
    Preprocessing.from_dict(values["preprocessing"])


def read_config(folder: Path) -> dict[str, Any]:
    """The metadata of a saved folder."""
    path = folder / CONFIG_FILE
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder} must hold a {CONFIG_FILE}, which save_pretrained writes, but has none"
        )
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be text in UTF-8: {error}") from error
    return parse_metadata(text, path, "write it with save_pretrained")
