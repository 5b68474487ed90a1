"""What losses ask of the temperature of one wrong sample, as in the paper's figure of surfaces."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from rightly.losses import LOSSES

OTHERS = (2.0, 0.1, 0.05)  # logits [a, 2, 0.1, 0.05], of which the first is the true class
SHOWN = {
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


def landscape(
    loss: str, true_logits: Float[np.ndarray, " rows"], temperatures: Float[np.ndarray, " t"]
) -> Landscape:
    """One of the losses for each logit of the true class and each temperature."""
    logits = torch.tensor([[a, *OTHERS] for a in true_logits.tolist()], dtype=torch.float64)
    label = torch.zeros(1, dtype=torch.int64)
    values, slopes = [], []
    for row in logits:
        t = torch.tensor(temperatures, requires_grad=True)
        each = torch.stack([LOSSES[loss](row[None] / one, label) for one in t])
        (slope,) = torch.autograd.grad(each.sum(), t)
        values.append(each.detach().numpy())
        slopes.append(slope.numpy())
    true = logits.softmax(-1)[:, 0].numpy()
    return Landscape(SHOWN.get(loss, loss), temperatures, true, np.array(values), np.array(slopes))


def logit_of(true_probability: Float[np.ndarray, " rows"]) -> Float[np.ndarray, " rows"]:
    """The logit that gives the true class these probabilities beside the others."""
    return np.log(true_probability / (1 - true_probability) * np.exp(OTHERS).sum())
