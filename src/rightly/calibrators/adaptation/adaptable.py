"""What every calibrator keeps, so that it can be adapted to a batch without labels."""

from typing import TYPE_CHECKING

from torch import nn

from rightly.calibrators.adaptation.context import Context
from rightly.calibrators.adaptation.recalibration import Recalibration
from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels

if TYPE_CHECKING:
    from rightly.calibrators.base import Calibrator


class CalibrationRows:
    """What a calibrator was fitted on, and an unfitted copy of it, until its context is learned.

    Learning a context takes as long as the fit itself, so it waits until somebody adapts or saves.
    """

    def __init__(self, unfitted: "Calibrator", predictions: Predictions, labels: Labels) -> None:
        self.unfitted, self.predictions, self.labels = unfitted, predictions, labels

    def __deepcopy__(self, memo: object) -> "CalibrationRows":
        return self  # nobody changes it, and it may be large


class Adaptable(nn.Module):
    """A module that may know about contexts, or have the data to learn about them."""

    context: Context | None
    recalibration: Recalibration | None  # in place of a context, once there were labels
    calibration_rows: CalibrationRows | None = None  # until the context is learned
    no_context: str | None = None  # why it could not be learned
    adapts_itself = False  # True where `adapt` is left to `adapt_to`, a method's own way

    def __init__(self) -> None:
        super().__init__()
        self.register_module("context", None)
        self.register_module("recalibration", None)

    @property
    def is_adapted(self) -> bool:
        return self.context is not None and self.context.is_adapted

    @property
    def adjustment(self) -> Context | Recalibration | None:
        """What changes the confidence that was fitted: labels, or a batch without."""
        return self.recalibration or (self.context if self.is_adapted else None)

    def adapt_to(self, unlabelled: Predictions) -> None:
        """Changes itself to suit a batch without labels, where it has a way of its own."""
        raise NotImplementedError
