"""Resampled values of every calibrator on the same test sets, for intervals and paired tests."""

from collections.abc import Mapping, Sequence

from rightly.evaluation.results import SIGNIFICANT, Key, Result, attach_intervals
from rightly.metrics import Outcomes
from rightly.metrics.bootstrap import (
    FEW,
    NoiseFloor,
    Values,
    min_resamples,
    noise_floor,
    replicate_metrics,
)
from rightly.resampling import draw_resamples


class Replicates:
    """The metrics of every calibrator, on the same resamples of each test set."""

    def __init__(
        self,
        resamples: int,
        seed: int,
        sizes: Mapping[str, int],
        metrics: Sequence[str],
        calibrators: int,
    ) -> None:
        self.metrics, self.seed, self.count = metrics, seed, resamples
        # Metrics without a definition get as few resamples as can still be significant.
        enough = min_resamples(calibrators - 1, SIGNIFICANT)
        self.few = max(FEW, enough)
        self.resamples = {
            dataset: draw_resamples(n, self.count, self.seed) for dataset, n in sizes.items()
        }
        self.values: dict[Key, list[Values]] = {}
        self.floors: dict[tuple[str, str], NoiseFloor] = {}

    def add(self, name: str, dataset: str, outcomes: Outcomes) -> None:
        resamples = self.resamples[dataset]
        replicated = replicate_metrics(outcomes, self.metrics, resamples, self.few)
        for metric, values in replicated.items():
            self.values.setdefault((name, dataset, metric), []).append(values)
        if "ece" in self.metrics and (name, dataset) not in self.floors:
            floor = noise_floor(outcomes.confidence, self.count, self.seed)
            self.floors[name, dataset] = floor

    def attach(self, results: Sequence[Result], reference: str) -> list[Result]:
        """The results with intervals, and tests against the reference."""
        return attach_intervals(results, self.values, self.floors, reference)
