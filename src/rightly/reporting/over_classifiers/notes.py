"""What a benchmark should say about its fits, in sentences, and each classifier's comparison."""

from collections.abc import Mapping, Sequence

import numpy as np

from rightly.evaluation.compare import Comparison
from rightly.evaluation.over_classifiers.measuring import ClassifierFits, Task
from rightly.evaluation.over_classifiers.value_grid import ValueGrid
from rightly.evaluation.results import Result, describe_class_changes, gather_notes, unique
from rightly.reporting.formatting import describe_accuracy


def build_comparison(fits: ClassifierFits, task: Task) -> Comparison:
    """What `compare` would have given; a fit without chance counts for every seed."""
    results: list[Result] = []
    for of_method in fits.fits.values():
        for i in range(task.repeats):
            one = of_method[min(i, len(of_method) - 1)]
            results += [row._replace(seed=task.seed + i) for row in one.results]
    notes = [
        *describe_class_changes({name: of[0].accuracies for name, of in fits.fits.items()}),
        *gather_notes({name: [one.note for one in of] for name, of in fits.fits.items()}),
        *(f"Left out: {method}: {error}." for method, error in fits.failed.items()),
    ]
    plan = fits.plan
    return Comparison(
        results,
        seed=task.seed,
        adapt=task.adapt,
        skipped=plan.skipped,
        accuracy=plan.accuracy,
        notes=notes,
    )


def describe_fits(
    fits: Mapping[str, ClassifierFits], grid: ValueGrid, unread: Sequence[str]
) -> list[str]:
    """Accuracy, changes of class and notes over all fits; what failed or was not read."""
    plans = [one.plan for one in fits.values()]
    datasets = [name for name in grid.datasets if all(name in plan.accuracy for plan in plans)]
    accuracy = {name: float(np.mean([plan.accuracy[name] for plan in plans])) for name in datasets}
    changes: dict[str, dict[str, tuple[float, float]]] = {}
    notes: dict[str, list[str]] = {}
    for method in grid.methods:
        of_method = [one.fits[method] for one in fits.values()]
        notes[method] = [fit.note for of_seeds in of_method for fit in of_seeds]
        for name in datasets:
            pairs = [of_seeds[0].accuracies.get(name) for of_seeds in of_method]
            known = [pair for pair in pairs if pair is not None]
            if known:
                before, after = (float(np.mean([pair[i] for pair in known])) for i in (0, 1))
                changes.setdefault(method, {})[name] = before, after
    sizes = {name: unique(plan.sizes[name] for plan in plans) for name in datasets}
    return [
        *describe_accuracy(accuracy),
        *describe_class_changes(changes),
        *gather_notes(notes),
        *(
            f"{name} has {' or '.join(map(str, of))} samples, so it is not the same data for all."
            for name, of in sizes.items()
            if len(of) > 1
        ),
        *(
            f"{method} failed for {name}: {error}."
            for name, one in fits.items()
            for method, error in one.failed.items()
        ),
        *([f"Not read, as no predictions: {', '.join(unread)}."] if unread else []),
    ]
