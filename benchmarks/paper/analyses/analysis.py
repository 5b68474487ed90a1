"""What an analysis is: tables computed from a setup, and a drawing of them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import rightly
from gathering import Labelled, MissingError, Places, Say, Trial, trials
from rightly.evaluation.measurement import is_random, measure
from setups import Setup

Result = dict[str, Any]
SHARES = ("ece", "brier", "ks", "ks_released", "auroc", "accuracy", "mean_confidence")


@dataclass(frozen=True)
class Table:
    """Named columns and what stands in them, one dict a row."""

    name: str
    rows: Sequence[Result]


@dataclass(frozen=True)
class Context:
    """What the command was asked to look at."""

    setup: Setup
    places: Places
    classifiers: Sequence[str]
    seeds: int
    results: Path
    say: Say
    advance: Callable[[str], object]

    def trials(self, every_view: bool = False) -> Iterator[tuple[str, Trial]]:
        """The first trial of each classifier: fitted on the whole calibration set."""
        for classifier in self.setup.classifiers:
            if classifier.name not in self.classifiers:
                continue
            try:
                found = trials(self.setup, classifier, self.places, self.say, every_view=every_view)
            except MissingError as reason:
                self.say(f"skipped: {reason}")
                continue
            if found:
                yield classifier.name, found[0]

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
    needs_data: bool = True


def fitted(method: str, data: Labelled, seed: int = 0) -> rightly.Calibrator:
    """A calibrator of the registry, fitted."""
    arguments = {"seed": seed} if is_random(method) else {}
    return rightly.calibrator(method, **arguments).fit(*data)


def measured(calibrator: rightly.Calibrator, data: Labelled, metrics: Sequence[str]) -> Result:
    """Metrics of a fitted calibrator, shares times 100."""
    predictions, labels = data
    own = {
        "accuracy": lambda: float(predictions.correct(labels).double().mean()),
        "mean_confidence": lambda: float(calibrator.confidence(predictions).mean()),
    }
    listed = measure(calibrator, predictions, labels, [name for name in metrics if name not in own])
    values = {name: listed[name] if name in listed else own[name]() for name in metrics}
    return {name: 100 * value if name in SHARES else value for name, value in values.items()}


def pooled(sets: Sequence[Labelled]) -> Labelled:
    """Several sets as one."""
    return rightly.concatenate([one for one, _ in sets]), torch.cat([labels for _, labels in sets])


def mixture(data: Labelled, accuracy: float) -> Labelled:
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


def means(rows: Sequence[Result], by: Sequence[str], over: Sequence[str]) -> list[Result]:
    """Rows that agree in some columns, averaged over others; the order is that of appearance."""
    groups: dict[tuple[Any, ...], list[Result]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    return [
        dict(zip(by, key, strict=True))
        | {name: float(np.nanmean([row[name] for row in found])) for name in over}
        for key, found in groups.items()
    ]
