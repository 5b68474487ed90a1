"""The text of a model card, in Markdown with the header that the Hub reads."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rightly.decisions.decision import HOLDS_FOR, describe_set_guarantee, describe_void
from rightly.deployment.metadata import read_decision, void_reason
from rightly.reporting.formatting import format_number, format_title
from rightly.reporting.markup import escape_markdown, to_line

CARD_METRICS = ("ece", "brier", "ks", "auroc")


@dataclass(frozen=True)
class CardRow:
    """What was measured on one set of samples."""

    name: str
    samples: int
    accuracy: float
    before: Mapping[str, float | None]
    after: Mapping[str, float | None]
    decision: str = ""  # what the threshold accepts and whether its guarantee is met
    sets: str = ""  # coverage and size of prediction sets, where there are any


def render_card(metadata: Mapping[str, Any], rows: Sequence[CardRow] = ()) -> str:
    """A whole card: the header that the Hub reads, then the block for people."""
    header: dict[str, Any] = {
        "library_name": "rightly",
        "pipeline_tag": "image-classification",
        "tags": ["calibration", "confidence", "selective-prediction"],
    }
    if rows:
        header["model-index"] = [_describe_results(metadata, rows)]
    # JSON is YAML, and needs no package to be written right; names may hold what YAML does not.
    lines = [
        f"{name}: {to_line(json.dumps(value, ensure_ascii=False))}"
        for name, value in header.items()
    ]
    return "\n".join(["---", *lines, "---", "", render_block(metadata, rows)])


def render_block(metadata: Mapping[str, Any], rows: Sequence[CardRow] = ()) -> str:
    """The Markdown block: calibration, range, threshold, sets, cost, metadata."""
    parts = [
        "## Confidence calibration",
        _render_opening(metadata),
        _render_table([*_read_calibration(metadata), *rows]),
        _render_range(rows),
        _render_decision(metadata, rows),
        _render_sets(metadata, rows),
        _render_cost(metadata),
        _render_metadata(metadata),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _render_opening(metadata: Mapping[str, Any]) -> str:
    classifier = (metadata.get("classifier") or {}).get("name") or "a classifier"
    whose = "is always the classifier's own"
    if not metadata.get("keeps_class", True):
        whose = "is the calibrator's, which may differ from the classifier's own"
    return (
        f"The confidence of {_quote(classifier)} is calibrated by Rightly's "
        f"{_quote(metadata['method'])}: it is the probability that the predicted class is right. "
        f"The predicted class {whose}."
    )


def _read_calibration(metadata: Mapping[str, Any]) -> list[CardRow]:
    """What was measured when the calibrator was fitted."""
    record = metadata.get("calibration")
    if not record:
        return []
    name = "calibration samples (fitted on these)"
    return [CardRow(name, record["samples"], record["accuracy"], record["before"], record["after"])]


def _render_table(rows: Sequence[CardRow]) -> str:
    if not rows:
        return ""
    head = ["measured on", "samples", "accuracy", *(format_title(name) for name in CARD_METRICS)]
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    for row in rows:
        values = [
            f"{_format_number(name, row.before.get(name))} → "
            f"{_format_number(name, row.after.get(name))}"
            for name in CARD_METRICS
        ]
        lines.append(
            [escape_markdown(row.name), f"{row.samples:,}", f"{row.accuracy:.1%}", *values]
        )
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{table}\n\nBefore → after calibration, in %; ECE with 25 bins."


def _render_range(rows: Sequence[CardRow]) -> str:
    text = "**Intended range.** Images like those of the calibration set"
    if rows:
        text += " and of the sets in the table: " + ", ".join(
            escape_markdown(row.name) for row in rows
        )
    return (
        f"{text}. On other images (other cameras, seasons, classes that the classifier never saw) "
        "confidence has not been measured; expect it to be too high there."
    )


def _render_decision(metadata: Mapping[str, Any], rows: Sequence[CardRow]) -> str:
    decision = read_decision(metadata)
    if decision is not None and decision.threshold is None:
        return f"**Decision.** No threshold: {escape_markdown(decision.reason)}."
    if decision is None:
        return (
            "**Decision.** No threshold was asked for: the model reports confidence and leaves "
            "accepting to its user."
        )
    text = f"**Decision.** Accept where confidence ≥ {decision.threshold:.4f}."
    if decision.accuracy is not None and decision.accuracy_interval is not None:
        low, high = decision.accuracy_interval
        samples = escape_markdown(decision.measured_on or "the calibration samples")
        text += (
            f" On {samples} that accepts {decision.coverage:.1%}, of which "
            f"{decision.accuracy:.1%} are correct (95 % interval {low:.1%} to {high:.1%})."
        )
    if decision.kind != "manual" or decision.void:
        line = decision.describe()
        text += f" {line[0].upper()}{line[1:]}"
        text += f"; this {HOLDS_FOR}." if decision.is_guaranteed else "."
    for row in rows:
        text += f" On {escape_markdown(row.name)}: {row.decision}" if row.decision else ""
    return text


def _render_sets(metadata: Mapping[str, Any], rows: Sequence[CardRow]) -> str:
    sets = metadata.get("sets")
    if sets is None:
        return ""
    void = void_reason(metadata)
    if void is None:
        text = f"{describe_set_guarantee(sets, metadata['class_count'])}; this {HOLDS_FOR}."
    else:
        text = f"No coverage is claimed; {describe_void(void)}."
    text += (
        f" On the {sets['samples']:,} images held out when it was fitted, sets have "
        f"{sets['mean_size']:.2f} classes on average."
    )
    for row in rows:
        text += f" On {escape_markdown(row.name)}, {row.sets}." if row.sets else ""
    return f"**Prediction sets.** {text}"


def _render_cost(metadata: Mapping[str, Any]) -> str:
    views, passes = metadata["views"], float(metadata["passes"])
    if not views:
        return "**Cost.** One forward pass per image; calibration adds next to nothing."
    most = len(views) + 1
    text = f"**Cost.** {passes:.2f} forward passes per image on average"
    if passes < most:
        text += f" (of {most}: the views are looked at only where they pay)"
    return f"{text}. Views: {', '.join(map(escape_markdown, views))}."


def _render_metadata(metadata: Mapping[str, Any]) -> str:
    classifier = metadata.get("classifier") or {}
    rows = {
        "classes": metadata["class_count"],
        "classifier": classifier.get("name"),
        "weights (fingerprint)": (classifier.get("fingerprint") or "unknown")[:16],
        "preprocessing": json.dumps(metadata["preprocessing"]),
        "rightly": metadata.get("rightly"),
        "format version": metadata.get("version"),
    }
    parity = metadata.get("parity")
    if parity:
        rows["parity with torch"] = (
            f"{parity['confidence']:.1e} in confidence over {parity['images']} "
            f"{parity['kind']} images"
        )
    lines = ["| metadata | |", "|---|---|"]
    return "\n".join(
        [*lines, *(f"| {name} | {escape_markdown(str(value))} |" for name, value in rows.items())]
    )


def _describe_results(metadata: Mapping[str, Any], rows: Sequence[CardRow]) -> dict[str, Any]:
    """The Hub's model-index."""
    name = (metadata.get("classifier") or {}).get("name") or "classifier"
    entries = []
    for row in rows:
        values: dict[str, tuple[str, float | None]] = {"accuracy": ("Accuracy", row.accuracy)}
        for key in CARD_METRICS:
            title = format_title(key).split()[0]
            values[key] = (f"{title} after calibration", row.after.get(key))
        metrics = [
            {"type": key, "name": title, "value": value}
            for key, (title, value) in values.items()
            if value is not None
        ]
        entries.append(
            {
                "task": {"type": "image-classification", "name": "Image Classification"},
                "dataset": {"type": row.name, "name": row.name},
                "metrics": metrics,
            }
        )
    return {"name": f"{name}, calibrated", "results": entries}


def _quote(text: str) -> str:
    """Text as code, whatever backticks it has."""
    runs = [len(run) for run in re.findall("`+", text)]
    fence = "`" * (max(runs, default=0) + 1)
    space = " " if runs else ""
    return f"{fence}{space}{to_line(text)}{space}{fence}"


def _format_number(metric: str, value: float | None) -> str:
    return format_number(metric, math.nan if value is None else value)
