"""Losses of one wrong sample over temperature, as in the paper's figure of surfaces."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from rightly.losses import LOSSES

OTHERS = (2.0, 0.1, 0.05)  # logits [a, 2, 0.1, 0.05], of which the first is the true class
TITLES = {
    "correctness_aware": "correctness-aware",
    "cross_entropy": "cross-entropy",
    "squared_error": "squared error",
}


@dataclass(frozen=True, eq=False)
class Landscape:
    """A loss over temperatures and over how likely the true class is without scaling."""

    title: str
    temperature: Float[np.ndarray, " temperatures"]
    true_probability: Float[np.ndarray, " rows"]
    loss: Float[np.ndarray, "rows temperatures"]
    slope: Float[np.ndarray, "rows temperatures"]  # by temperature


def compute_landscape(
    loss: str, true_logits: Float[np.ndarray, " rows"], temperatures: Float[np.ndarray, " t"]
) -> Landscape:
    """One of the losses for each logit of the true class and each temperature."""
    logits = torch.tensor([[a, *OTHERS] for a in true_logits.tolist()], dtype=torch.float64)
    label = torch.zeros(1, dtype=torch.int64)
    losses, slopes = [], []
    for row in logits:
        t = torch.tensor(temperatures, requires_grad=True)
        each = torch.stack([LOSSES[loss](row[None] / one, label) for one in t])
        (slope,) = torch.autograd.grad(each.sum(), t)
        losses.append(each.detach().numpy())
        slopes.append(slope.numpy())
    true = logits.softmax(-1)[:, 0].numpy()
    return Landscape(TITLES.get(loss, loss), temperatures, true, np.array(losses), np.array(slopes))


def invert_probability(true_probability: Float[np.ndarray, " rows"]) -> Float[np.ndarray, " rows"]:
    """The logit that gives the true class these probabilities beside the others."""
    return np.log(true_probability / (1 - true_probability) * np.exp(OTHERS).sum())


def compute_probabilities(true_logit: float, temperature: float) -> list[float]:
    """Probabilities of the true class and the others at a temperature."""
    logits = torch.tensor([true_logit, *OTHERS], dtype=torch.float64)
    return (logits / temperature).softmax(-1).tolist()
