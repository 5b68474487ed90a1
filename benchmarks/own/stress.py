"""Rightly's own calibrator where there is little to learn from: few samples, useless views.

    python -m benchmarks.own.stress PREDICTIONS [--classifiers resnet20,mobilenet] [--draws 40] \
        [--conditions "noise views, n = 60; fifty views, n = 60"] [--out stress.csv]

PREDICTIONS/CLASSIFIER/{cal,ind}.npz hold predictions and labels, as for evaluate_own. A draw takes
calibration samples from cal at random and brings them, and all of ind, into a condition. A line a
condition: the ratio of Brier scores on ind to temperature scaling's, its mean over classifiers and
draws and its 95th percentile, and the largest mean of a classifier; MISSED where the mean is above
1.01 or the percentile above 1.05 (1.10 below 100 samples). --out keeps the values in a long table,
and what it has is not fitted again.
"""

import argparse
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import rightly
from benchmarks.long_table import Entry, append_entries, read_entries
from benchmarks.own.boosting import Labelled
from benchmarks.own.evaluate_own import OWN
from benchmarks.own.targets import BASE, list_classifiers
from rightly.evaluation.data_sets import load_data_set
from rightly.predictions import Predictions

MAX_MEAN = 1.01
SETUP = "stress"
CLASSES = 10  # in the files that this is for
FEWEST = 0.01  # samples of the rarest class for one of the most frequent
MISSING = 5  # classes without a calibration label

Views = Callable[[Predictions, np.random.Generator], Tensor | None]
Rows = Callable[[Labelled, np.random.Generator], np.ndarray]


@dataclass(frozen=True)
class Condition:
    """How many calibration samples, which views, which samples of the two files."""

    n: int
    name: str = "nine views"
    views: Views = lambda predictions, _: predictions.view_logits
    cal_rows: Rows = lambda data, _: np.arange(len(data[1]))
    test_rows: Rows = lambda data, _: np.arange(len(data[1]))

    @property
    def title(self) -> str:
        return f"{self.name}, n = {self.n}"

    @property
    def max_percentile(self) -> float:
        return 1.10 if self.n < 100 else 1.05


def noise_views(predictions: Predictions, rng: np.random.Generator) -> Tensor:
    """Three views of normal noise that spreads like the logits."""
    spread = float(predictions.logits.std())
    return torch.tensor(rng.normal(0, spread, (len(predictions), 3, CLASSES)), dtype=torch.float32)


def views_of_others(predictions: Predictions, rng: np.random.Generator) -> Tensor:
    """The nine views of other images."""
    return predictions.view_logits[rng.permutation(len(predictions))]


def weak_view(predictions: Predictions, _: np.random.Generator) -> Tensor:
    """The view that costs most accuracy: turned by 90 degrees, a third is classified right."""
    return predictions.view_logits[:, [predictions.view_names.index("rot90")]]


def duplicated_views(predictions: Predictions, _: np.random.Generator) -> Tensor:
    """The nine views three times."""
    return predictions.view_logits.repeat(1, 3, 1)


def fifty_views(predictions: Predictions, _: np.random.Generator) -> Tensor:
    """The nine views, the means of all pairs and of five triples."""
    views = predictions.view_logits
    numbers = range(views.shape[1])
    groups = [*combinations(numbers, 2), *islice(combinations(numbers, 3), 0, 80, 16)]
    means = torch.stack([views[:, list(group)].mean(1) for group in groups], 1)
    return torch.cat([views, means], 1)


def half_useless(predictions: Predictions, rng: np.random.Generator) -> Tensor:
    """The nine views, and as many of other images."""
    return torch.cat([predictions.view_logits, views_of_others(predictions, rng)], 1)


def accurate(share: float) -> Rows:
    """As many right and wrong samples as give that accuracy."""

    def select(data: Labelled, rng: np.random.Generator) -> np.ndarray:
        correct = data[0].correct(data[1]).numpy()
        right, wrong = (rng.permutation(np.flatnonzero(rows)) for rows in (correct, ~correct))
        count = min(len(right) / share, len(wrong) / (1 - share))
        return np.concatenate([right[: int(count * share)], wrong[: round(count * (1 - share))]])

    return select


def imbalanced(data: Labelled, rng: np.random.Generator) -> np.ndarray:
    """Class frequencies that fall from 1 to a hundredth in equal ratios, in a random order."""
    frequency = FEWEST ** (np.random.default_rng(0).permutation(CLASSES) / (CLASSES - 1))
    return np.flatnonzero(rng.random(len(data[1])) < frequency[data[1].numpy()])


def without_classes(data: Labelled, rng: np.random.Generator) -> np.ndarray:
    """Without the samples of classes that are drawn at random."""
    return np.flatnonzero(~np.isin(data[1].numpy(), rng.permutation(CLASSES)[:MISSING]))


def list_conditions() -> dict[str, Condition]:
    views: list[tuple[str, Views]] = [
        ("no views", lambda *_: None),
        ("noise views", noise_views),
        ("views of other images", views_of_others),
        ("nine views, nine of others", half_useless),
        ("one weak view", weak_view),
        ("duplicated views", duplicated_views),
        ("fifty views", fifty_views),
    ]
    rows: list[tuple[str, Rows, Rows]] = [
        ("99.5 % accuracy", accurate(0.995), accurate(0.995)),
        ("10 % accuracy", accurate(0.1), accurate(0.1)),
        ("100:1 imbalance", imbalanced, imbalanced),
        ("missing classes", without_classes, Condition.test_rows),
    ]
    conditions = [Condition(n) for n in (30, 60, 100, 500)]
    conditions += [Condition(n, name, make) for name, make in views for n in (60, 500)]
    for name, cal, test in rows:
        conditions.append(Condition(500, name, cal_rows=cal, test_rows=test))
        bare = f"{name}, no views"
        conditions.append(Condition(500, bare, lambda *_: None, cal_rows=cal, test_rows=test))
    return {condition.title: condition for condition in conditions}


def apply_condition(condition: Condition, data: Labelled, rows: np.ndarray, seed: int) -> Labelled:
    """Those rows of a file, with the views of the condition."""
    chosen = torch.as_tensor(rows)
    predictions, labels = data[0][chosen], data[1][chosen]
    views = condition.views(predictions, np.random.default_rng(seed))
    return Predictions(predictions.logits, views), labels


def measure_draw(condition: Condition, cal: Labelled, test: Labelled, seed: int) -> float:
    """The ratio of Brier scores to temperature scaling's."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(condition.cal_rows(cal, rng))[: condition.n]
    fitted_on = apply_condition(condition, cal, rows, seed)
    rows = condition.test_rows(test, np.random.default_rng(seed))
    judged_on, labels = apply_condition(condition, test, rows, seed + 1)
    correct = judged_on.correct(labels).double()
    scores = []
    for method in (OWN, BASE):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of samples that are all right, of missing classes
            fitted = rightly.calibrator(method).fit(*fitted_on)
        scores.append(float((fitted.confidence(judged_on) - correct).square().mean()))
    return scores[0] / scores[1]


def measure_classifier(
    name: str, conditions: Sequence[Condition], options: argparse.Namespace
) -> list[Entry]:
    """The ratios of one classifier in all conditions and draws."""
    folder = options.predictions / name
    cal, test = (load_data_set(folder / f"{part}.npz", None) for part in ("cal", "ind"))
    stored = [] if options.out is None else read_entries(options.out)
    known = {(entry.classifier, entry.test_set, entry.seed): entry for entry in stored}
    entries = []
    for condition in conditions:
        new = []
        for seed in range(options.draws):
            entry = known.get((name, condition.title, seed))
            if entry is None:
                ratio = measure_draw(condition, cal, test, seed)
                key = (SETUP, name, condition.title, OWN, seed, "brier_ratio")
                entry = Entry(*key, ratio, condition.n, 0.0)
                new.append(entry)
            entries.append(entry)
        if new and options.out is not None:
            append_entries(options.out, new)
        values = [entry.value for entry in entries[-options.draws :]]
        print(f"{name}: {condition.title}: {np.mean(values):.4f}", flush=True)
    return entries


def format_conditions(entries: Sequence[Entry], conditions: Sequence[Condition]) -> list[str]:
    """A line a condition, with what misses its bound."""
    lines = [f"{'ratio of Brier scores':36}{'mean':>8}{'95 %':>8}{'worst classifier':>18}"]
    for condition in conditions:
        by_classifier: dict[str, list[float]] = {}
        for entry in entries:
            if entry.test_set == condition.title:
                by_classifier.setdefault(entry.classifier, []).append(entry.value)
        values = np.concatenate(list(by_classifier.values()))
        mean, high = values.mean(), np.quantile(values, 0.95)
        worst = max(np.mean(of_classifier) for of_classifier in by_classifier.values())
        missed = mean > MAX_MEAN or high > condition.max_percentile
        line = f"{condition.title:36}{mean:8.3f}{high:8.3f}{worst:18.3f}"
        lines.append(line + ("  MISSED" if missed else ""))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("predictions", type=Path)
    parser.add_argument("--classifiers", default="all", help="names joined by commas, or all")
    parser.add_argument("--conditions", help="titles joined by semicolons, all by default")
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--out", type=Path, metavar="CSV")
    options = parser.parse_args()
    listed = list_conditions()
    titles = options.conditions.split(";") if options.conditions else list(listed)
    conditions = [listed[title.strip()] for title in titles]
    entries: list[Entry] = []
    for name in list_classifiers(options.predictions, options.classifiers):
        entries += measure_classifier(name, conditions, options)
    print("", *format_conditions(entries, conditions), sep="\n")


if __name__ == "__main__":
    main()
