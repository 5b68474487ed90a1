"""Dirichlet calibration (Kull et al., 2019): a full matrix on log-probabilities, with ODIR."""

from typing import final

import torch

from rightly.calibrators.scaling.affine import OdirCalibrator
from rightly.predictions.masking import MASKED, fill_masked
from rightly.tensor_shapes import Logits


@final
class Dirichlet(OdirCalibrator):
    """softmax(W log p + b) of the classifier's own probabilities p.

    The matrix is stored for log p over the temperature of temperature scaling, the unit of its
    penalty.
    """

    def compute_inputs(self, logits: Logits) -> Logits:
        z = logits.double()
        log_p = z - z.logsumexp(-1, keepdim=True)
        masked = torch.where(logits <= MASKED, torch.full_like(log_p, MASKED), log_p)
        return fill_masked(masked) * self.inverse
