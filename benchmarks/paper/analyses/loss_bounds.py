"""The paper's bounds of the CA loss, in closed form and on every sample of a setup.

The paper (its Eq. 8 to 12) says: the loss of a right sample lies in [0, 1 - 1/C), of a wrong one
in (1/C, 1], the mean in [(1 - accuracy) / C, 1 - accuracy / C]; it splits into a difference of mean
confidences and a rest; and CA alone always pulls a wrong sample's confidence down. Each is
computed here for the classifiers' own logits under temperatures from 1/4 to 8. What the paper does
not have: limits by temperature for what is known of a sample (`confidence_limits`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from benchmarks.paper.analyses.analysis import Analysis, Context, Row, Table
from benchmarks.paper.analyses.bound_figures import draw_limits, draw_range, draw_tube
from benchmarks.paper.analyses.confidence_limits import (
    absolute_limits,
    loss_limits,
    narrow_limits,
    scale_limits,
)
from benchmarks.paper.analyses.meta_sets import compute_closeness
from benchmarks.paper.gathering import Labelled

TEMPERATURES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
NARROW = 0.5  # the paper's: p_true / p_predicted above this is narrowly wrong
BINS = 12  # of confidence, in each of which the samples nearest to the limits are shown
SHOWN = (0.5, 2.0)


@dataclass(frozen=True, eq=False)
class Samples:
    """Double-precision scores of a set, and what kind each sample is."""

    scores: Float[np.ndarray, "n c"]  # logits less the row's largest
    labels: Int[np.ndarray, " n"]
    kinds: dict[str, Bool[np.ndarray, " n"]]

    @classmethod
    def of(cls, data: Labelled) -> "Samples":
        predictions, labels = data
        right = predictions.correct(labels).numpy()
        narrow = compute_closeness(predictions, labels).numpy() > NARROW
        logits = predictions.logits.double()
        kinds = {
            "right": right,
            "narrowly wrong": ~right & narrow,
            "absolutely wrong": ~right & ~narrow,
        }
        return cls((logits - logits.amax(-1, keepdim=True)).numpy(), labels.numpy(), kinds)

    @property
    def class_count(self) -> int:
        return self.scores.shape[1]

    @property
    def right(self) -> Bool[np.ndarray, " n"]:
        return self.kinds["right"]

    def others(self) -> Float[np.ndarray, " n"]:
        """(1 - c) / c of each confidence c, without the loss of digits near 1."""
        ordered = np.sort(np.exp(self.scores), -1)
        return ordered[:, :-1].sum(-1)

    def confidence(self, temperature: float) -> Float[np.ndarray, " n"]:
        return 1 / np.exp(self.scores / temperature).sum(-1)

    def loss(self, temperature: float) -> Float[np.ndarray, " n"]:
        """|confidence - correctness| of each sample."""
        confidence = self.confidence(temperature)
        return np.where(self.right, 1 - confidence, confidence)

    def pulls(self) -> dict[str, Bool[np.ndarray, " n"]]:
        """Where each loss falls as the temperature does, at 1: it raises the confidence there."""
        p = np.exp(self.scores)
        p /= p.sum(-1, keepdims=True)
        from_mean = self.scores - (p * self.scores).sum(-1, keepdims=True)
        rows = np.arange(len(p))
        truth = p * 0
        truth[rows, self.labels] = 1
        # Slopes along 1 / T.
        slopes = {
            "CA": np.where(self.right, -1, 1) * from_mean.max(-1),
            "CE": -from_mean[rows, self.labels],
            "MSE": (p * (p - truth) * from_mean).sum(-1),
        }
        return {name: slope < 0 for name, slope in slopes.items()}


def compute(context: Context) -> list[Table]:
    kinds: list[Row] = []
    sets: list[Row] = []
    scaled: list[Row] = []
    nearest: list[Row] = []
    for name, trial in context.trials():
        context.advance(name)
        for test, data in trial.tests.items():
            samples = Samples.of(data)
            where = {"classifier": name, "test": test}
            kinds += describe_kinds(samples)
            sets.append(where | describe_set(samples))
            scaled += describe_scaled(samples)
            nearest += find_nearest(samples)
    return [
        Table("kinds", summarise(kinds, ("kind",))),
        Table("temperatures", summarise(scaled, ("kind", "T"))),
        Table("sets", sets),
        Table("nearest", keep_nearest(nearest)),
    ]


def describe_kinds(samples: Samples) -> Iterator[Row]:
    """At the classifier's own temperature: how many, in which range, and which way losses pull."""
    loss, pulls = samples.loss(1.0), samples.pulls()
    for kind, rows in samples.kinds.items():
        low, high = limit_loss(kind, 1.0, samples.class_count)
        yield {
            "kind": kind,
            "samples": int(rows.sum()),
            "of all": len(rows),
            "lower bound": low,
            "least loss": float(loss[rows].min(initial=np.inf)),
            "greatest loss": float(loss[rows].max(initial=-np.inf)),
            "upper bound": high,
            **{f"confidence raised by {one}": int(up[rows].sum()) for one, up in pulls.items()},
        }


def describe_scaled(samples: Samples) -> Iterator[Row]:
    """By temperature: least, mean and greatest loss of a kind, and how many leave their limits."""
    for temperature in TEMPERATURES:
        loss, confidence = samples.loss(temperature), samples.confidence(temperature)
        least, most = scale_limits(samples.others(), temperature, samples.class_count)
        in_tube = (confidence >= least) & (confidence <= most)
        for kind, rows in samples.kinds.items():
            low, high = limit_loss(kind, temperature, samples.class_count)
            inside = (loss >= low - 1e-12) & (loss <= high + 1e-12)
            yield {
                "kind": kind,
                "T": temperature,
                "samples": int(rows.sum()),
                "lower bound": low,
                "least loss": float(loss[rows].min(initial=np.inf)),
                "sum of losses": float(loss[rows].sum()),
                "greatest loss": float(loss[rows].max(initial=-np.inf)),
                "upper bound": high,
                "outside": int((~inside & rows).sum()),
                "outside by confidence": int((~in_tube & rows).sum()),
            }


def describe_set(samples: Samples) -> Row:
    """Bounds of the mean loss, absolute and squared, and the paper's split of it."""
    loss, accuracy = samples.loss(1.0), float(samples.right.mean())
    row: Row = {"classes": samples.class_count, "accuracy": accuracy}
    for name, power in (("loss", 1), ("squared loss", 2)):
        low, high = loss_limits(accuracy, samples.class_count, power)
        row |= {f"{name}: lower bound": low, name: float((loss**power).mean())}
        row |= {f"{name}: upper bound": high}
    difference, rest = split_loss(samples)
    wrong = 1 - accuracy
    row |= {
        "difference": difference,
        "rest": rest,
        "split sums to": wrong * difference + (2 * accuracy - 1) * rest + wrong,
        "difference at the lower bound": 1 / samples.class_count - 1,
        "by the paper": (1 / samples.class_count - 1) * accuracy / wrong if wrong else np.nan,
    }
    grid = np.geomspace(0.02, 20, 61)
    for name, power in (("loss", 1), ("squared loss", 2)):
        means = [float((samples.loss(t) ** power).mean()) for t in grid]
        best = float(grid[int(np.argmin(means))])
        confidence = float(samples.confidence(best).mean())
        row |= {f"{name}: best T": best, f"{name} then": min(means)}
        row |= {f"{name}: mean confidence then": confidence}
    return row


def split_loss(samples: Samples) -> tuple[float, float]:
    """The paper's two terms: mean confidence of the wrong less that of as many right samples, and
    what the other right ones lack to 1. Neither exists where fewer than half are right."""
    confidence = samples.confidence(1.0)
    right, wrong = confidence[samples.right], confidence[~samples.right]
    if len(wrong) > len(right) or not len(wrong):
        return np.nan, np.nan
    paired, others = right[: len(wrong)], right[len(wrong) :]
    return float(wrong.mean() - paired.mean()), float((1 - others).mean()) if len(others) else 0.0


def limit_loss(kind: str, temperature: float, class_count: int) -> tuple[float, float]:
    """Bounds of a sample's loss by its kind and the temperature."""
    if kind == "right":
        return 0.0, 1 - 1 / class_count
    limits = narrow_limits if kind == "narrowly wrong" else absolute_limits
    return limits(temperature, class_count, NARROW)


def find_nearest(samples: Samples) -> Iterator[Row]:
    """In bins of confidence: the samples that scaling takes nearest to their limits."""
    before = samples.confidence(1.0)
    lowest = 1 / samples.class_count
    bins = np.minimum((before - lowest) / (1 - lowest) * BINS, BINS - 1).astype(int)
    for temperature in SHOWN:
        after = samples.confidence(temperature)
        low, high = scale_limits(samples.others(), temperature, samples.class_count)
        place = (after - low) / np.maximum(high - low, 1e-9)
        for one in np.unique(bins):
            rows = np.flatnonzero(bins == one)
            ends = {"lower": rows[place[rows].argmin()], "upper": rows[place[rows].argmax()]}
            for end, row in ends.items():
                yield {
                    "T": temperature,
                    "bin": int(one),
                    "nearest to the": end,
                    "confidence before": float(before[row]),
                    "lower limit": float(low[row]),
                    "after": float(after[row]),
                    "upper limit": float(high[row]),
                    "place": float(place[row]),
                }


def keep_nearest(rows: Sequence[Row]) -> list[Row]:
    """Of several sets' nearest samples the nearest, in order of temperature and confidence."""
    kept: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = (row["T"], row["bin"], row["nearest to the"])
        sign = 1 if row["nearest to the"] == "lower" else -1
        if key not in kept or sign * row["place"] < sign * kept[key]["place"]:
            kept[key] = row
    return [kept[key] for key in sorted(kept)]


def summarise(rows: Sequence[Row], by: Sequence[str]) -> list[Row]:
    """Rows that agree in `by` as one: extremes of the extremes, sums of the counts."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    join = {"least loss": min, "greatest loss": max, "lower bound": min, "upper bound": max}
    out = []
    for key, group in groups.items():
        joined = {n: join.get(n, sum)(row[n] for row in group) for n in group[0] if n not in by}
        if "sum of losses" in joined:
            joined["mean loss"] = joined.pop("sum of losses") / max(joined["samples"], 1)
        out.append(dict(zip(by, key, strict=True)) | joined)
    return out


def draw(tables: Sequence[Table], axes: Any) -> None:
    _, scaled, sets, nearest = tables
    draw_tube(axes[0], nearest.rows, sets.rows[0]["classes"])
    draw_limits(axes[1], scaled.rows)
    draw_range(axes[2], sets.rows)


ANALYSIS = Analysis(
    "do the paper's bounds of the correctness-aware loss hold, and what do they say?",
    compute,
    draw,
    panels=3,
    height=2.6,
)
