"""Tests of methods over classifiers, as a table and as the figure of critical differences."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rightly.evaluation.over_classifiers.method_tests import MethodTest, MetricTest
from rightly.evaluation.results import ResultTable, count
from rightly.reporting.layout import Layout
from rightly.reporting.over_classifiers.layouts import lay_out_tests

FIGURE = "critical-difference"


@dataclass(frozen=True, eq=False, repr=False)
class MethodTests(ResultTable[MethodTest]):
    """Every method beside a reference over classifiers, in each metric that has a best."""

    kind = "tests"

    tests: Sequence[MethodTest]
    metrics: Sequence[MetricTest]
    reference: str
    rope: float

    @property
    def rows(self) -> Sequence[MethodTest]:
        return self.tests

    def to_records(self) -> list[dict[str, Any]]:
        return [row._asdict() for row in self.tests]

    def lay_out(self) -> Layout:
        return lay_out_tests(self.tests, self.metrics, self.reference, self.rope)

    def describe(self) -> dict[str, Any]:
        metrics = [test._asdict() for test in self.metrics]
        return {"reference": self.reference, "rope": self.rope, "metrics": metrics}

    def plot(self, kind: str = FIGURE, metric: str | None = None, **options: Any) -> Any:
        """Draws mean ranks in a metric with their critical difference, and returns the axes."""
        from rightly.reporting.figures.classifier_grids import draw_critical_difference

        tested = {test.metric: test for test in self.metrics}
        chosen = next(iter(tested)) if metric is None else metric
        if kind != FIGURE or chosen not in tested:
            raise ValueError(
                f"kind must be {FIGURE!r} and metric one of {', '.join(tested)}, got {kind!r} "
                f"and {chosen!r}"
            )
        ranks = {row.calibrator: row.rank for row in self.tests if row.metric == chosen}
        title = f"{chosen}, {count(tested[chosen].classifiers, 'classifier')}"
        options = {"title": title, **options}
        return draw_critical_difference(ranks, tested[chosen].critical_difference, **options)

    def __repr__(self) -> str:
        size = f"{count(self.metrics, 'metric')}, against {self.reference}"
        return f"<MethodTests: {size}>"
