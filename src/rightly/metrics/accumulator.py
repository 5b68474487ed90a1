"""A metric of samples that come batch by batch, on one machine or on many."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rightly.checks import check_outcomes, check_probabilities
from rightly.metrics.states import add
from rightly.shapes import AnyArray

if TYPE_CHECKING:
    from rightly.metrics.definitions import Metric


class Accumulator:
    """Adds up batches; `compute` gives what the metric gives on all their samples together.

    Metrics that are functions of sums keep those and nothing else (`is_constant_memory`). The
    others need every sample and keep them: nine bytes each, or five of confidence in float32.

    >>> from rightly.metrics import METRICS
    >>> here, there = METRICS["brier"].accumulator(), METRICS["brier"].accumulator()
    >>> here.update([0.5, 0.75], [True, False])
    >>> there.update([1.0], [True])
    >>> here.merge(there)
    >>> here
    <brier of 3 samples, in constant memory>
    >>> here.compute() == METRICS["brier"].measure([0.5, 0.75, 1.0], [True, False, True])
    True
    """

    def __init__(self, metric: "Metric", options: Mapping[str, Any] | None = None) -> None:
        self.metric, self.options = metric, dict(options or {})
        self.reset()

    @property
    def is_constant_memory(self) -> bool:
        return self.metric.is_additive

    def reset(self) -> None:
        """Forgets all samples."""
        self.sample_count = 0
        self._columns: int | None = None  # of probabilities
        self._batches: list[tuple[np.ndarray, ...]] = []  # one state, if memory is constant

    def update(self, first: AnyArray, second: AnyArray) -> None:
        """Adds a batch: (confidence, correct), or (probabilities, labels), as `inputs` says.

        A batch of no samples adds nothing.
        """
        if _is_empty(first) and _is_empty(second):
            return
        of_confidence = self.metric.inputs == "confidence"
        own, truth = (check_outcomes if of_confidence else check_probabilities)(first, second)
        batch = self.metric.collect(own, truth, self.options)
        if not self.metric.is_additive:
            batch = own.copy(), truth.copy()  # the caller may fill its arrays again
        self._add(batch, None if of_confidence else own.shape[1])
        self.sample_count += len(truth)

    def merge(self, other: "Accumulator") -> None:
        """Adds all samples of another accumulator of this metric, which stays as it is."""
        if (other.metric.name, other.options) != (self.metric.name, self.options):
            raise ValueError(
                f"other must accumulate {self.metric.name} with the options {self.options}, got "
                f"{other.metric.name} with {other.options}: merge accumulators of one metric"
            )
        for batch in list(other._batches):
            self._add(batch, other._columns)
        self.sample_count += other.sample_count

    def compute(self) -> float:
        """The metric of all samples so far."""
        if not self.sample_count:
            raise ValueError(f"{self.metric.name} needs samples to compute: call update first")
        if len(self._batches) > 1:
            self._batches = [tuple(map(np.concatenate, zip(*self._batches, strict=True)))]
        return self.metric.compute(self._batches[0], self.options)

    def __repr__(self) -> str:
        memory = "constant memory" if self.is_constant_memory else "memory that grows with them"
        return f"<{self.metric.name} of {self.sample_count:,} samples, in {memory}>"

    def _add(self, batch: tuple[np.ndarray, ...], columns: int | None) -> None:
        if self._columns not in (None, columns):
            raise ValueError(
                f"probabilities must have {self._columns} columns like those before, got "
                f"{columns}: accumulate one classifier's"
            )
        if self.is_constant_memory and self._batches:
            self._batches = [add(self._batches[0], batch)]
        else:
            self._batches.append(batch)
        self._columns = columns


def _is_empty(values: AnyArray) -> bool:
    return np.shape(values)[:1] == (0,)
