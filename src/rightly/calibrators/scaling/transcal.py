"""TransCal (Wang et al., 2020): the temperature for a target domain without labels.

Accuracy on the target is estimated from calibration samples, each weighed by how much likelier its
features are there; the temperature is then the one at which confidence on the target is, on
average, that accuracy. As fitted, it is temperature scaling; `adapt(unlabelled)` gives the rest.
"""

from typing import final

import torch
from torch import Tensor

from rightly.calibrators.families import TemperatureCalibrator
from rightly.calibrators.solvers.newton import find_root
from rightly.calibrators.solvers.ridge_logistic import Rows, fit_ridge_logistic
from rightly.calibrators.solvers.temperature import nll_inverse_temperature, top_probability
from rightly.calibrators.stored_tensors import POSITIVE, Stored
from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels, Logits, PerSample

REACH = 1e3  # how far the inverse temperature may lie from that of temperature scaling
POWERS = (1.0, 0.8, 0.6, 0.4, 0.2, 0.0)  # of the weights: 0 gives all samples the same
LEAST_SHARE = 0.1  # of the calibration samples that have to count
RIDGE = 1.0  # of the classifier that tells the domains apart, on standardised features


@final
class TransCal(TemperatureCalibrator):
    """One temperature: of the calibration data, or once adapted, of a batch without labels."""

    needs = ("features",)
    has_own_adaptation = True
    sorts_rows = True
    stores = {
        "inverse": Stored(low=POSITIVE),
        "reference": Stored("n d"),
        "right": Stored("n", 0, 1),
        "adapted": Stored(low=0, high=1),
    }

    inverse: Tensor
    reference: Tensor  # features of the calibration samples
    right: Tensor  # whether each was predicted right
    adapted: Tensor  # 1 after `adapt`

    def learn(self, predictions: Predictions, labels: Labels) -> None:
        assert predictions.features is not None
        inverse = nll_inverse_temperature(predictions.logits, labels)
        correct = (predictions.classes == labels).double()
        self.store(
            inverse=torch.tensor(inverse, dtype=torch.float64),
            reference=predictions.features.float(),
            right=correct,
            adapted=torch.zeros_like(correct[0]),
        )

    def compute_temperature(self, predictions: Predictions) -> PerSample:
        return self.inverse.reciprocal().expand(predictions.logits.shape[0])

    def adapt_to(self, unlabelled: Predictions) -> None:
        """Sets the temperature of this batch."""
        assert unlabelled.features is not None
        weight = estimate_density_ratio(self.reference.double(), unlabelled.features.double())
        accuracy = estimate_accuracy(self.right, weight)
        inverse = match_confidence(unlabelled.logits, accuracy, float(self.inverse))
        self.store(inverse=self.inverse.new_tensor(inverse), adapted=torch.ones_like(self.adapted))

    @property
    def fit_note(self) -> str:
        adapted = self.stored().get("adapted")
        return "" if adapted is None or not float(adapted) else "temperature of a batch"


def estimate_density_ratio(source: Tensor, target: Tensor) -> PerSample:
    """How much likelier each source row is in the target, by logistic regression of the domain."""
    design = torch.cat([source, target])
    is_target = torch.arange(len(design), device=design.device) >= len(source)
    rows = Rows(
        design,
        torch.zeros_like(is_target, dtype=torch.int64),
        is_target,
        torch.ones_like(design[:, 0]),
    )
    penalty = torch.full_like(design[0], RIDGE)
    solved = fit_ridge_logistic(rows, penalty, RIDGE, 1)
    log_odds = solved.logits(source, rows.classes[: len(source)])
    return log_odds.clamp(-30, 30).exp() * (len(source) / len(target))


def estimate_accuracy(right: PerSample, weight: PerSample) -> float:
    """The mean of correctness by these weights, to a power at which enough samples count.

    Dividing by the sum of the weights does, to first order, what the authors' control variate of
    the weights does.
    """
    tempered = weight
    for power in POWERS:
        tempered = weight.pow(power)
        if float(tempered.mean().square() / tempered.square().mean()) >= LEAST_SHARE:
            break
    return float((tempered @ right) / tempered.sum())


def match_confidence(logits: Logits, accuracy: float, near: float) -> float:
    """The inverse temperature at which the mean confidence is this accuracy."""
    one = torch.ones_like(logits[:, 0], dtype=torch.float64)

    def excess(inverse: float) -> tuple[float, None]:
        return float(top_probability(logits, inverse * one).mean()) - accuracy, None

    return find_root(excess, near, (near / REACH, near * REACH), tol=1e-8, first_step=0.1)
