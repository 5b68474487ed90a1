"""The model card: what a reader must know before acting on a confidence."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SHOWN = {"ece": "ECE ↓", "brier": "Brier ↓", "ks": "KS ↓", "auroc": "AUROC ↑"}


@dataclass(frozen=True)
class Measured:
    """What was measured on one set of samples."""

    name: str
    samples: int
    accuracy: float
    before: Mapping[str, float | None]
    after: Mapping[str, float | None]
    coverage: float | None = None  # at the threshold, where there is one
    accepted_accuracy: float | None = None


def card_of(identity: Mapping[str, Any], results: Sequence[Measured] = ()) -> str:
    """A whole card: the header that the Hub reads, then the block for people."""
    header: dict[str, Any] = {
        "library_name": "rightly",
        "pipeline_tag": "image-classification",
        "tags": ["calibration", "confidence", "selective-prediction"],
    }
    if results:
        header["model-index"] = [_model_index(identity, results)]
    # JSON is YAML, and needs no package to be written right.
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in header.items()]
    return "\n".join(["---", *lines, "---", "", block_of(identity, results)])


def block_of(identity: Mapping[str, Any], results: Sequence[Measured] = ()) -> str:
    """The Markdown block: calibration, range, threshold, cost, identity."""
    parts = [
        "## Confidence calibration",
        _opening(identity),
        _table([*_at_fit(identity), *results]),
        _range(identity, results),
        _decision(identity, results),
        _cost(identity),
        _details(identity),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _opening(identity: Mapping[str, Any]) -> str:
    classifier = (identity.get("classifier") or {}).get("name") or "a classifier"
    return (
        f"The confidence of `{classifier}` is calibrated by Rightly's `{identity['method']}`: it "
        "is the probability that the predicted class is right. The predicted class is always the "
        "classifier's own."
    )


def _at_fit(identity: Mapping[str, Any]) -> list[Measured]:
    seen = identity.get("calibration")
    if not seen:
        return []
    name = "calibration samples (fitted on these)"
    return [Measured(name, seen["samples"], seen["accuracy"], seen["before"], seen["after"])]


def _table(rows: Sequence[Measured]) -> str:
    if not rows:
        return ""
    head = ["measured on", "samples", "accuracy", *SHOWN.values()]
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    for row in rows:
        values = [
            f"{_times_100(row.before.get(name))} → {_times_100(row.after.get(name))}"
            for name in SHOWN
        ]
        lines.append([row.name, f"{row.samples:,}", f"{row.accuracy:.1%}", *values])
    drawn = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{drawn}\n\nBefore → after calibration, times 100; ECE with 25 bins."


def _range(identity: Mapping[str, Any], results: Sequence[Measured]) -> str:
    told = "**Intended range.** Images like those of the calibration set"
    if results:
        told += " and of the sets in the table: " + ", ".join(row.name for row in results)
    return (
        f"{told}. On other images (other cameras, seasons, classes that the classifier never saw) "
        "confidence has not been measured; expect it to be too high there."
    )


def _decision(identity: Mapping[str, Any], results: Sequence[Measured]) -> str:
    chosen = identity.get("threshold")
    if not chosen:
        return (
            "**Decision.** No threshold was asked for: the model reports confidence and leaves "
            "accepting to its user."
        )
    told = f"**Decision.** Accept where confidence ≥ {chosen['value']:.4f}."
    if chosen.get("accuracy") is not None:
        told += (
            f" On the calibration samples that accepts {chosen['coverage']:.1%}, of which "
            f"{chosen['accuracy']:.1%} are right (95 % interval {chosen['accuracy_low']:.1%} to "
            f"{chosen['accuracy_high']:.1%})."
        )
    for row in results:
        if row.coverage is None:
            continue
        right = "" if row.accepted_accuracy is None else f", {row.accepted_accuracy:.1%} right"
        told += f" On {row.name}: {row.coverage:.1%} accepted{right}."
    return told


def _cost(identity: Mapping[str, Any]) -> str:
    views, passes = identity["views"], float(identity["passes"])
    if not views:
        return "**Cost.** One forward pass per image; calibration adds next to nothing."
    every = len(views) + 1
    told = f"**Cost.** {passes:.2f} forward passes per image on average"
    if passes < every:
        told += f" (of {every}: the views are looked at only where they pay)"
    return f"{told}. Views: {', '.join(views)}."


def _details(identity: Mapping[str, Any]) -> str:
    classifier = identity.get("classifier") or {}
    rows = {
        "classes": identity["class_count"],
        "classifier": classifier.get("name"),
        "weights (fingerprint)": (classifier.get("fingerprint") or "unknown")[:16],
        "preprocessing": json.dumps(identity["preprocessing"]),
        "rightly": identity.get("rightly"),
        "format version": identity.get("version"),
    }
    parity = identity.get("parity")
    if parity:
        rows["parity with torch"] = (
            f"{parity['confidence']:.1e} in confidence over {parity['images']} "
            f"{parity['kind']} images"
        )
    lines = ["| identity | |", "|---|---|"]
    return "\n".join([*lines, *(f"| {name} | {value} |" for name, value in rows.items())])


def _model_index(identity: Mapping[str, Any], results: Sequence[Measured]) -> dict[str, Any]:
    name = (identity.get("classifier") or {}).get("name") or "classifier"
    entries = []
    for row in results:
        named: dict[str, tuple[str, float | None]] = {"accuracy": ("Accuracy", row.accuracy)}
        for key, title in SHOWN.items():
            named[key] = (f"{title.split()[0]} after calibration", row.after.get(key))
        metrics = [
            {"type": key, "name": title, "value": value}
            for key, (title, value) in named.items()
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


def _times_100(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.2f}"
