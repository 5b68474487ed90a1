"""Rightly's metrics as metrics of torchmetrics: in collections, in loggers, over many processes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from rightly.checks import check_probabilities
from rightly.metrics import METRICS
from rightly.metrics.checked_measures import check_options
from rightly.metrics.sums import State
from rightly.optional import require

try:
    _Metric = require("torchmetrics").Metric
except ImportError:  # told when a metric is made: the package can be listed without it
    _Metric = object


class CalibrationMetric(_Metric):  # type: ignore[misc, valid-type]
    """A metric of `rightly.METRICS` by its name, updated with probabilities and labels.

    `options` are the metric's own, such as {"bins": 15}; `settings` are those of torchmetrics. Of
    metrics that are functions of sums the state has a fixed size, in float64; the others keep
    confidence and correctness of every sample.
    """

    is_differentiable = False
    full_state_update = False

    def __init__(
        self,
        name: str,
        num_classes: int,
        options: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        require("torchmetrics")
        super().__init__(**settings)
        self.metric = METRICS.find(name)
        self.num_classes = num_classes
        self.options = check_options(self.metric.measure, options or {})
        none = np.zeros((0, num_classes)), np.zeros(0, dtype=np.int64)
        self.parts = [f"part_{i}" for i in range(len(self._collect(*none)))]
        for part, array in zip(self.parts, self._collect(*none), strict=True):
            if self.metric.sums is None:
                self.add_state(part, default=[], dist_reduce_fx="cat")
            else:
                self.add_state(part, default=torch.from_numpy(array), dist_reduce_fx="sum")

    @property
    def higher_is_better(self) -> bool | None:
        lower = self.metric.lower_is_better
        return None if lower is None else not lower

    def update(self, preds: torch.Tensor, target: torch.Tensor) -> None:
        """Adds a batch of probabilities (n, c), never logits, and true classes (n,)."""
        probabilities, labels = check_probabilities(preds, target)
        if probabilities.shape[1] != self.num_classes:
            raise ValueError(
                f"preds must have {self.num_classes} columns as num_classes says, got "
                f"{probabilities.shape[1]}"
            )
        for part, array in zip(self.parts, self._collect(probabilities, labels), strict=True):
            tensor = torch.from_numpy(np.asarray(array)).to(self.device)
            if self.metric.sums is None:
                getattr(self, part).append(tensor)
            else:
                setattr(self, part, getattr(self, part) + tensor)

    def compute(self) -> torch.Tensor:
        """The metric of all samples so far."""
        states = [getattr(self, part) for part in self.parts]
        # After synchronisation lists are one tensor.
        joined = [torch.cat(state) if isinstance(state, list) else state for state in states]
        arrays = [state.cpu().numpy() for state in joined]
        if self.metric.sums is None:
            value = self.metric.measure(*arrays, **self.options)
        else:
            value = self.metric.sums.measure(*arrays)
        return torch.tensor(float(value), dtype=torch.float64, device=self.device)

    def _collect(self, probabilities: np.ndarray, labels: np.ndarray) -> State:
        """What a batch adds to the state: sums, or the samples themselves."""
        first, second = probabilities, labels
        if self.metric.inputs == "confidence":
            classes = probabilities.argmax(-1)
            first, second = probabilities.max(-1), classes == labels
        if self.metric.sums is None:
            return first, second
        return self.metric.sums.collect(first, second, **self.options)
