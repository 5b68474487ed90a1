"""Values of the long table, which is first completed where it lacks some."""

from collections.abc import Sequence

from benchmarks.long_table import Entry, average_seeds
from benchmarks.paper.analyses.analysis import Context
from benchmarks.paper.run import run_setup

Values = dict[tuple[str, str], dict[tuple[str, str], float]]


def complete_entries(
    context: Context, methods: Sequence[str], metrics: Sequence[str]
) -> list[Entry]:
    """The rows of these methods and metrics, measured where the table lacks them."""
    entries = run_setup(
        context.setup,
        context.places,
        context.results,
        methods,
        context.classifiers,
        context.seeds,
    )
    return [
        entry
        for entry in entries
        if entry.setup == context.setup.name
        and entry.classifier in context.classifiers
        and entry.method in methods
        and entry.metric in metrics
        and entry.seed < context.seeds
    ]


def complete_values(context: Context, methods: Sequence[str], metrics: Sequence[str]) -> Values:
    """(method, metric) -> (classifier, test set) -> mean over seeds."""
    return nest_values(complete_entries(context, methods, metrics))


def nest_values(entries: Sequence[Entry]) -> Values:
    """Means over seeds, by method and metric, then by classifier and test set."""
    values: Values = {}
    for (method, classifier, test, metric), value in average_seeds(entries).items():
        values.setdefault((method, metric), {})[classifier, test] = value
    return values
