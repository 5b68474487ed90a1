"""Whether a file's graph, and what it computes, are what the file's metadata say."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rightly.deployment.outputs import OUTPUT_NAMES, REQUIRED, Outputs

INPUT, SHIFT_ESTIMATE = "images", "shift_estimate"
# The kind of each output's values, and its dimensions after that of the images: c classes, m views.
LAYOUTS = {
    "classes": ("integers", ""),
    "confidence": ("floats", ""),
    "raw_confidence": ("floats", ""),
    "temperature": ("floats", ""),
    "probabilities": ("floats", "c"),
    "accept": ("booleans", ""),
    "view_classes": ("integers", "m"),
    "view_confidence": ("floats", "m"),
    "shift_score": ("floats", ""),
    "unadapted_confidence": ("floats", ""),
    "in_set": ("booleans", "c"),
}
KINDS = {"f": "floats", "i": "integers", "b": "booleans"}
TOLERANCE = 1e-5  # by which float32 may leave [0, 1]
LARGEST_SCORE = 1e3  # far above any difference of bounded log-odds
REMEDY = "export it again"

# Kind of the values and size of each dimension, by name; a size that a graph leaves open is no int.
Tensors = Mapping[str, tuple[str, Sequence[Any]]]


def check_graph(
    inputs: Tensors, outputs: Tensors, metadata: Mapping[str, Any], source: Any
) -> None:
    """Refuses a graph with other inputs or outputs than its metadata describe."""
    size = metadata["preprocessing"].get("size")
    if size is None:
        raise ValueError(f"{source} has no size of images in its metadata: {REMEDY}")
    expected: Tensors = {INPUT: ("floats", [None, 3, *size])}
    if metadata.get("shift_adaptation") is not None:
        expected = {**expected, SHIFT_ESTIMATE: ("floats", [])}
    fits = set(inputs) == set(expected)
    if not fits or not all(_fits(inputs[name], expected[name]) for name in expected):
        raise ValueError(
            f"{source} takes {_format(inputs)}, but its metadata say {_format(expected)}: {REMEDY}"
        )
    _check_outputs(outputs, metadata, source, None)


def check_shift_estimate(shift_estimate: float, is_adaptable: bool) -> None:
    """Refuse a shift estimate that is no number, or for a model that cannot be adapted."""
    if not is_adaptable:
        raise ValueError(
            "shift_estimate needs a model that can be adapted, but this one cannot: leave it out, "
            "or export a calibrator that can be adapted without adaptable=False"
        )
    if isinstance(shift_estimate, bool) or not math.isfinite(shift_estimate):
        raise ValueError(f"shift_estimate must be a finite number, got {shift_estimate!r}")


def check_outputs(outputs: Outputs, rows: int, metadata: Mapping[str, Any], source: Any) -> None:
    """Refuses outputs of other types, shapes or ranges than those of so many images."""
    values = outputs.to_dict()
    found = {
        name: (KINDS.get(value.dtype.kind, str(value.dtype)), value.shape)
        for name, value in values.items()
    }
    _check_outputs(found, metadata, source, rows)
    last = metadata["class_count"] - 1
    for name, low, high, slack in (
        ("classes", 0, last, 0.0),
        ("view_classes", -1, last, 0.0),
        ("confidence", 0, 1, TOLERANCE),
        ("raw_confidence", 0, 1, TOLERANCE),
        ("probabilities", 0, 1, TOLERANCE),
        ("temperature", 0, math.inf, 0.0),
        ("unadapted_confidence", 0, 1, TOLERANCE),
        ("shift_score", -LARGEST_SCORE, LARGEST_SCORE, 0.0),
    ):
        if name in values:
            least, most = values[name].min(), values[name].max()
            if not low - slack <= least <= most <= high + slack:  # nor where any is nan
                raise ValueError(
                    f"{source} gave {name} from {least} to {most}, which must lie in {low}..{high}"
                )


def _check_outputs(
    found: Tensors, metadata: Mapping[str, Any], source: Any, rows: int | None
) -> None:
    conditions = {
        "temperature": metadata["has_temperature"],
        "accept": (metadata.get("decision") or {}).get("threshold") is not None,
        "view_classes": bool(metadata["views"]),
        "view_confidence": bool(metadata["views"]),
        "shift_score": metadata.get("shift_adaptation") is not None,
        "unadapted_confidence": metadata.get("shift_adaptation") is not None,
        "in_set": metadata.get("sets") is not None,
    }
    missing = [name for name in (*REQUIRED, *conditions) if name not in found]
    missing = [name for name in missing if conditions.get(name, True)]
    if missing:
        raise ValueError(
            f"{source} must have the outputs of its metadata, but lacks {missing}: {REMEDY}"
        )
    left_over = [name for name, is_there in conditions.items() if name in found and not is_there]
    if left_over:
        raise ValueError(
            f"{source} has the outputs {left_over}, but its metadata name no temperature, "
            f"threshold, views, adaptation or sets that they are for: {REMEDY}"
        )
    sizes = {"c": metadata["class_count"], "m": len(metadata["views"])}
    for name in (name for name in OUTPUT_NAMES if name in found):
        kind, letters = LAYOUTS[name]
        expected = (kind, [rows, *(sizes[letter] for letter in letters)])
        if not _fits(found[name], expected):
            raise ValueError(
                f"{source} gives {_format({name: found[name]})}, but its metadata say "
                f"{_format({name: expected})}: {REMEDY}"
            )


def _fits(found: tuple[str, Sequence[Any]], expected: tuple[str, Sequence[Any]]) -> bool:
    """Whether kind and sizes agree, as far as a graph says them; None is a size left open."""
    (kind, sizes), (right_kind, right_sizes) = found, expected
    return (
        kind == right_kind
        and len(sizes) == len(right_sizes)
        and all(
            size == right or not isinstance(size, int)
            for size, right in zip(sizes, right_sizes, strict=True)
        )
    )


def _format(tensors: Tensors) -> str:
    """Such as `images of floats (n, 3, 32, 32)`."""
    texts = []
    for name, (kind, sizes) in tensors.items():
        shown = [str(size) if isinstance(size, int) else size or "n" for size in sizes]
        texts.append(f"{name} of {kind} ({', '.join(shown)})")
    return " and ".join(texts) or "nothing"
