"""Rightly's own calibrator beside temperature scaling: means, targets and ranks as text."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.long_table import Entry, parse_names, rank_methods
from rightly.calibrators import CALIBRATORS
from rightly.evaluation.measurement import TABLE_METRICS
from rightly.metrics import METRICS

BASE = "temperature_scaling"
IN_DISTRIBUTION = "ind"  # the name of the file
SIDES = ("in distribution", "unseen shifts")


class Target(NamedTuple):
    """What ECE, Brier and AUROC must reach against temperature scaling.

    ECE in points in distribution and as a ratio under shift, Brier as a ratio, AUROC in points.
    """

    ece: float
    brier: float
    auroc: float


PLAIN = (Target(0.5, 0.95, 1.3), Target(0.85, 0.90, 2.5))  # for each of SIDES
TARGETS: dict[str, tuple[Target, Target]] = {
    "correctness_logistic": PLAIN,
    "correctness_logistic, shift augmentation": (Target(1.0, 0.95, 1.3), Target(0.65, 0.85, 3.5)),
    "boosting": PLAIN,
    "oracle": PLAIN,
}


def list_classifiers(predictions: Path, names: str) -> list[str]:
    """Names joined by commas, or for `all` those of the folders that hold a cal.npz."""
    present = sorted(file.parent.name for file in predictions.glob("*/cal.npz"))
    return parse_names(None if names == "all" else names, present, "--classifiers")


def select_side(entries: Collection[Entry], side: str) -> list[Entry]:
    """The rows of the test set in distribution, or of all others."""
    is_id = side == SIDES[0]
    return [entry for entry in entries if (entry.test_set == IN_DISTRIBUTION) == is_id]


def average_method(entries: Collection[Entry], method: str) -> dict[str, float]:
    """Mean of each metric of a method over classifiers and test sets."""
    return {
        metric: float(
            np.mean([e.value for e in entries if e.method == method and e.metric == metric])
        )
        for metric in TABLE_METRICS
    }


def format_means(entries: Collection[Entry]) -> list[str]:
    """A line a method with the table's metrics in %, in distribution and under shift."""
    methods = {entry.method for entry in entries}
    heads = "".join(f"{metric:>7}" for metric in TABLE_METRICS)
    lines = [f"{'in %':44}{SIDES[0]:35}{SIDES[1]}", f"{'':44}{heads}{'':7}{heads}"]
    for method in (BASE, *TARGETS):
        if method not in methods:
            continue
        means = [average_method(select_side(entries, side), method) for side in SIDES]
        numbers = ["".join(f"{100 * m[metric]:7.2f}" for metric in TABLE_METRICS) for m in means]
        lines.append(f"{method:44}" + f"{'':7}".join(numbers))
    return lines


def format_targets(entries: Collection[Entry]) -> list[str]:
    """A line a method with what it gains on temperature scaling, each target in brackets."""
    methods = {entry.method for entry in entries}
    lines = [
        f"against temperature scaling: {SIDES[0]} ECE +points, Brier ratio, AUROC +points;",
        "under shift ECE ratio, Brier ratio, AUROC +points; the target in brackets",
    ]
    for method in TARGETS:
        if method not in methods:
            continue
        parts = []
        for side, target in zip(SIDES, TARGETS[method], strict=True):
            gain = compute_gain(select_side(entries, side), method, side)
            for metric, value, aim in zip(Target._fields, gain, target, strict=True):
                lower = METRICS[metric].lower_is_better
                mark = "" if (value <= aim if lower else value >= aim) else " MISSED"
                parts.append(f"{metric} {value:.3f} ({aim}{mark})")
        lines.append(f"{method:44}" + "  ".join(parts))
    return lines


def compute_gain(entries: Collection[Entry], method: str, side: str) -> Target:
    """What a method reaches against temperature scaling, in the units of its target."""
    mean, base = average_method(entries, method), average_method(entries, BASE)
    return Target(
        100 * (mean["ece"] - base["ece"]) if side == SIDES[0] else mean["ece"] / base["ece"],
        mean["brier"] / base["brier"],
        100 * (mean["auroc"] - base["auroc"]),
    )


def format_ranks(entries: Sequence[Entry]) -> list[str]:
    """Mean rank of each method over classifiers, test sets and the four metrics, best first."""
    # Only the registry's: what is measured beside it would be ranked against its own variants.
    listed = [entry for entry in entries if entry.method in CALIBRATORS]
    first, second = (
        {one.calibrator: one.mean_rank for one in rank_methods(select_side(listed, side))}
        for side in SIDES
    )
    names = sorted((name for name in first if name in second), key=lambda x: first[x] + second[x])
    return [
        f"{f'mean rank among {len(names)}':34}{SIDES[0]:>16}{SIDES[1]:>16}",
        *(f"{name:34}{first[name]:16.2f}{second[name]:16.2f}" for name in names),
    ]
