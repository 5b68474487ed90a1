"""An order of calibration rows that depends on what is in them, not on where they stand.

Folds, minibatches and views that take turns go by row numbers. In this order a fit is the same to
the bit, however a file was shuffled.
"""

from dataclasses import fields

import torch

from rightly.calibrators.solvers.execution import iterate_chunks
from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels, Logits

MULTIPLIER = 6364136223846793005  # odd, of Knuth's 64-bit generator; products wrap around


def sort_rows(predictions: Predictions, labels: Labels) -> tuple[Predictions, Labels]:
    """The rows by a hash of their logits, rows of one image together, images numbered so too.

    Rows that have logits, label and shift in common stay in the order in which they came.
    """
    keys = hash_rows(predictions.logits) * MULTIPLIER + labels
    if predictions.shift is not None:
        keys = keys * MULTIPLIER + predictions.shift
    order = keys.argsort(stable=True)
    if predictions.image is None:
        return predictions[order], labels[order]
    image = predictions.image_ranks()
    least = torch.full_like(keys, torch.iinfo(torch.int64).max)[: int(image.max()) + 1]
    least = least.scatter_reduce(0, image, keys, "amin")
    number = least.argsort(stable=True).argsort()[image]
    order = order[number[order].argsort(stable=True)]
    ordered = predictions[order]
    others = {field.name: getattr(ordered, field.name) for field in fields(ordered)}
    del others["logits"]
    others |= {"image": number[order], "_origin": None}
    return Predictions.unchecked(ordered.logits, **others), labels[order]


def hash_rows(logits: Logits) -> Labels:
    """A whole number for each row, from the bits of its logits in single precision.

    Sums of whole numbers do not depend on their order, nor so on the device.
    """
    generator = torch.Generator().manual_seed(0)
    factors = 2 * torch.randint(2**62, (logits.shape[1],), generator=generator) + 1
    factors = factors.to(logits.device)
    parts = []
    for rows in iterate_chunks(logits):
        bits = (logits[rows].float() + 0.0).contiguous().view(torch.int32).long()  # -0 is 0
        parts.append((bits * factors).sum(-1))
    return torch.cat(parts)
