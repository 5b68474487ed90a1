"""An analysis: tables computed from a setup, and a figure of them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import rightly
from benchmarks.paper.gathering import Labelled, MissingError, Notify, Places, Trial, gather_trials
from benchmarks.paper.setups import Setup
from rightly.evaluation.measurement import fit_method as fit_registered
from rightly.evaluation.measurement import measure

Row = dict[str, Any]
SHARES = ("ece", "brier", "ks", "ks_released", "auroc", "accuracy", "mean_confidence")


@dataclass(frozen=True)
class Table:
    """Named columns and what stands in them, one dict a row."""

    name: str
    rows: Sequence[Row]


@dataclass(frozen=True)
class Context:
    """What the command's options select."""

    setup: Setup
    places: Places
    classifiers: Sequence[str]
    seeds: int
    results: Path
    notify: Notify
    advance: Callable[[str], object]

    def trials(self, every_view: bool = False) -> Iterator[tuple[str, Trial]]:
        """The first trial of each classifier: fitted on the whole calibration set."""
        for classifier in self.setup.classifiers:
            if classifier.name not in self.classifiers:
                continue
            try:
                trials = gather_trials(
                    self.setup, classifier, self.places, self.notify, every_view=every_view
                )
            except MissingError as reason:
                self.notify(f"skipped: {reason}")
                continue
            if trials:
                yield classifier.name, trials[0]

    def kind(self, test: str) -> str:
        """Whether a test set is of the calibration set's kind or shifted."""
        own = [images.name for images in self.setup.tests if images.in_distribution]
        return "in distribution" if test in own else "shifted"


@dataclass(frozen=True)
class Analysis:
    """A question, how its tables are computed, and how they are drawn into axes."""

    question: str
    compute: Callable[[Context], list[Table]]
    draw: Callable[[Sequence[Table], Any], None]
    panels: int = 2
    height: float | None = None  # of a panel, in inches
    needs_data: bool = True


def fit_method(method: str, data: Labelled, seed: int = 0) -> rightly.Calibrator:
    """A calibrator of the registry, fitted."""
    return fit_registered(method, *data, seed=seed)


def measure_percent(calibrator: rightly.Calibrator, data: Labelled, metrics: Sequence[str]) -> Row:
    """Metrics of a fitted calibrator, shares in %."""
    predictions, labels = data
    additional = {
        "accuracy": lambda: float(predictions.correct(labels).double().mean()),
        "mean_confidence": lambda: float(calibrator.confidence(predictions).mean()),
    }
    listed = measure(
        calibrator, predictions, labels, [name for name in metrics if name not in additional]
    )
    values = {name: listed[name] if name in listed else additional[name]() for name in metrics}
    return {name: 100 * value if name in SHARES else value for name, value in values.items()}


def pool(sets: Sequence[Labelled]) -> Labelled:
    """Several data sets as one."""
    return rightly.concatenate([one for one, _ in sets]), torch.cat([labels for _, labels in sets])


def mix_to_accuracy(data: Labelled, accuracy: float) -> Labelled:
    """As many right and wrong samples as give the accuracy, drawn without replacement."""
    predictions, labels = data
    correct = predictions.correct(labels)
    right, wrong = correct.nonzero().squeeze(-1), (~correct).nonzero().squeeze(-1)
    total = int(min(len(right) / accuracy, len(wrong) / (1 - accuracy)))
    generator = torch.Generator().manual_seed(0)
    parts = []
    for rows, share in ((right, accuracy), (wrong, 1 - accuracy)):
        count = min(round(total * share), len(rows))
        parts.append(rows[torch.randperm(len(rows), generator=generator)[:count]])
    rows = torch.cat(parts)
    return predictions[rows], labels[rows]


def average_rows(rows: Sequence[Row], by: Sequence[str], over: Sequence[str]) -> list[Row]:
    """Means of the columns `over` of rows that agree in `by`, in order of appearance."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    return [
        dict(zip(by, key, strict=True))
        | {name: float(np.nanmean([row[name] for row in group])) for name in over}
        for key, group in groups.items()
    ]
