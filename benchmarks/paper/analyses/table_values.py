"""Values of the long table of run.py, which is first completed where it lacks some."""

from collections.abc import Sequence

import numpy as np

import run
from analyses.described import Context
from gathering import Places

Values = dict[tuple[str, str], dict[tuple[str, str], float]]


def values_of(context: Context, methods: Sequence[str], metrics: Sequence[str]) -> Values:
    """(method, metric) -> (classifier, test set) -> mean over seeds."""
    places: Places = context.places
    rows = run.run(
        context.setup, places, context.results, methods, context.classifiers, context.seeds
    )
    found: dict[tuple[str, str], dict[tuple[str, str], list[float]]] = {}
    for row in rows:
        asked = row.setup == context.setup.name and row.classifier in context.classifiers
        if asked and row.method in methods and row.metric in metrics and row.seed < context.seeds:
            at = found.setdefault((row.method, row.metric), {})
            at.setdefault((row.classifier, row.test_set), []).append(row.value)
    return {
        key: {where: float(np.mean(values)) for where, values in at.items()}
        for key, at in found.items()
    }
