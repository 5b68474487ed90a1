"""Rightly's metrics as metrics of torchmetrics: in collections, in loggers, over many processes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from rightly.checks import check_probabilities
from rightly.metrics.definitions import METRICS, check_options
from rightly.metrics.states import Outcomes
from rightly.optional import require

try:
    _Metric = require("torchmetrics").Metric
except ImportError:  # told when a metric is made: the package can be listed without it
    _Metric = object


class CalibrationMetric(_Metric):  # type: ignore[misc, valid-type]
    """A metric of `rightly.metrics.METRICS` by its name, updated with probabilities and labels.

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
        example = self._collect(np.full((1, num_classes), 1 / num_classes), np.array([0]))
        self.state_type, self.parts = type(example), [f"part_{i}" for i in range(len(example))]
        for part, array in zip(self.parts, example, strict=True):
            if self.metric.is_additive:
                none = torch.zeros(array.shape, dtype=torch.float64)
                self.add_state(part, default=none, dist_reduce_fx="sum")
            else:
                self.add_state(part, default=[], dist_reduce_fx="cat")

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
            if self.metric.is_additive:
                setattr(self, part, getattr(self, part) + tensor)
            else:
                getattr(self, part).append(tensor)

    def compute(self) -> torch.Tensor:
        """The metric of all samples so far."""
        states = [getattr(self, part) for part in self.parts]
        # After synchronisation lists are one tensor.
        joined = [torch.cat(state) if isinstance(state, list) else state for state in states]
        arrays = [state.cpu().numpy() for state in joined]
        batch = self.state_type(*arrays) if self.metric.is_additive else tuple(arrays)
        value = self.metric.compute(batch, self.options)
        return torch.tensor(value, dtype=torch.float64, device=self.device)

    def _collect(self, probabilities: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, ...]:
        """What a batch adds: its state, or the samples themselves."""
        outcomes = Outcomes.of("probabilities", probabilities, labels)
        return self.metric.collect(*outcomes.inputs(self.metric.inputs), self.options)
