"""The metadata of an exported file or saved folder: what a reader may rely on.

Neither torch nor SciPy is loaded here; `provenance` writes what this reads.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rightly.checks import (
    Schema,
    are_distinct_names,
    are_names,
    are_numbers,
    check_number,
    check_table,
    check_version,
    is_count,
    is_flag,
    is_interval,
    is_number,
    is_share,
    is_table,
    is_text,
    or_null,
    table_of,
)
from rightly.classifiers.preprocessing import Preprocessing
from rightly.decisions import Decision
from rightly.decisions.decision import (
    ADAPTED,
    HOLDS_FOR,
    describe_set_guarantee,
    describe_void,
    drift_alarm,
)
from rightly.files import parse_json

FORMAT = "rightly-deployed"
VERSION = 3  # 2 had a threshold, no decision
ONNX_KEY = "rightly"  # the entry of an ONNX file's metadata
PROGRAM_FILE = "rightly.json"  # the file inside a .pt2 archive
CONFIG_FILE = "config.json"  # the file in a saved folder
CALIBRATOR_FILE = "calibrator.safetensors"  # what stands beside it
DRIFT_ARRAYS = {"reference", "centres", "scale", "allowance", "counts"}
DRIFT_ARRAYS |= {"rows", "row_classes", "row_labels"}
REMEDY = "write it with rightly export"
UNKNOWN = f"{HOLDS_FOR}, which the server cannot know"


def _are_metrics(value: Any) -> bool:
    return is_table(value) and all(map(or_null(is_number), value.values()))


# Samples, accuracy and metrics before and after, as a card prints them.
_is_measurement = table_of(
    samples=is_count, accuracy=is_share, before=_are_metrics, after=_are_metrics
)


# The coverage that prediction sets guarantee, by which score, on how many held-out images.
_is_sets = table_of(
    coverage=is_share,
    score=is_text,
    class_conditional=is_flag,
    samples=lambda value: is_count(value, 1),
    marginal_classes=is_count,
    mean_size=is_number,
    coverage_interval=or_null(is_interval),
    void=or_null(is_text),
)


def _is_adaptation(value: Any) -> bool:
    """What a caller needs to estimate the shift of its images, and to adapt confidence to it."""
    entries: dict[str, Callable[[Any], bool]] = {
        "estimate": is_number,
        "noise": lambda noise: is_number(noise) and noise >= 0,
        "weights": lambda weights: are_numbers(weights, 3),
        "limits": lambda limits: are_numbers(limits, 2) and limits[0] <= limits[1],
        "misses": are_numbers,
    }
    return table_of(**entries)(value) and (value.get("quantile") is None or _is_ranged(value))


def _is_ranged(value: Any) -> bool:
    """Whether a shift adaptation gives the range of an expected accuracy."""
    kinds = len(value["misses"])
    estimates = value.get("kind_estimates")
    return kinds > 1 and is_number(value["quantile"]) and are_numbers(estimates, kinds)


def _is_drift(value: Any) -> bool:
    """The arrays of a DriftReference, and the reference of scores, of one number per class."""
    if not is_table(value) or set(value) != DRIFT_ARRAYS:
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


REQUIRED: Schema = {
    "method": ("text", is_text),
    "class_count": ("a number of classes from 2 on", lambda value: is_count(value, 2)),
    "views": ("a list of different names", are_distinct_names),
    "preprocessing": ("a table", is_table),
    "has_temperature": ("true or false", is_flag),
    "passes": ("a number from 1 on", lambda value: is_number(value) and value >= 1),
}
# These may be left out or null.
OPTIONAL: Schema = {
    "class_names": ("a list of names", are_names),
    "decision": ("a table", is_table),
    "classifier": (
        "a table of text",
        lambda value: is_table(value) and all(map(or_null(is_text), value.values())),
    ),
    "calibration": ("samples, accuracy and metrics before and after", _is_measurement),
    "shift_adaptation": ("a table of estimate, weights, limits, noise and misses", _is_adaptation),
    "sets": ("a table of coverage, score and samples", _is_sets),
    "drift": ("a table of what samples without drift look like", _is_drift),
    "adapted": ("a table", is_table),
    "parity": (
        "images, kind and confidence",
        table_of(images=is_count, kind=is_text, confidence=or_null(is_number)),
    ),
    "arguments": ("a table", is_table),
    "keeps_class": ("true or false", is_flag),
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
    check_version(values.get("version"), VERSION, path, remedy)
    try:
        _check_entries(values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} has damaged metadata: {error}; {remedy}") from error
    return dict(values)


def _check_entries(values: Mapping[str, Any]) -> None:
    given = {name: value for name, value in values.items() if value is not None}
    check_table(given, {**REQUIRED, **OPTIONAL}, required=REQUIRED)
    read_decision(values)
    count, names = values["class_count"], values.get("class_names")
    if names is not None and len(names) != count:
        raise ValueError(f"class_names must have {count} names, one per class, got {len(names)}")
    drift = values.get("drift")
    if drift is not None and len(drift["reference"]) != count:
        raise ValueError(f"drift must be of {count} classes, got {len(drift['reference'])}")
    check_number(
        "passes", values["passes"], 1, 1 + len(values["views"]), "one for the image and each view"
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


def read_decision(metadata: Mapping[str, Any]) -> Decision | None:
    """The decision of a file or folder."""
    values = metadata.get("decision")
    return None if values is None else Decision.from_dict(values)


def void_reason(
    metadata: Mapping[str, Any], *, adapts: bool = False, alarm: str | None = None
) -> str | None:
    """Why no guarantee holds for what a model is shown now; None where no reason is known."""
    stored = [(metadata.get(name) or {}).get("void") for name in ("decision", "sets")]
    now = [ADAPTED if adapts else None, alarm and drift_alarm(alarm)]
    return next((reason for reason in (*stored, *now) if reason), None)


def describe_guarantees(metadata: Mapping[str, Any], void: str | None = None) -> list[str]:
    """The guarantees of threshold and prediction sets, or that they are void."""
    both = describe_guarantee(metadata, void), describe_coverage(metadata, void)
    return [text for text in both if text is not None]


def describe_guarantee(metadata: Mapping[str, Any], void: str | None) -> str | None:
    """The guarantee of the threshold, or that it is void; None where there is none."""
    decision = read_decision(metadata)
    if decision is None or not decision.has_guarantee:
        return None
    return describe_void(void) if void else f"{decision.describe()}; {UNKNOWN}"


def describe_coverage(metadata: Mapping[str, Any], void: str | None) -> str | None:
    """The coverage of prediction sets, or that it is void; None where there are none."""
    sets = metadata.get("sets")
    if sets is None:
        return None
    text = describe_set_guarantee(sets, metadata["class_count"])
    return describe_void(void) if void else f"{text}; {UNKNOWN}"
