"""An order of calibration rows that depends on what is in them, not on where they stand.

Folds, minibatches and views that take turns go by row numbers. In this order a fit is the same to
the bit, however a file was shuffled.
"""

from dataclasses import fields, replace

import torch
from torch import Tensor

from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels

COMPARED = 4  # largest logits of a row; rows that agree in their distances are rare beyond


def sort_rows(predictions: Predictions, labels: Labels) -> tuple[Predictions, Labels]:
    """The rows by the lead of their largest logit, rows of one image together.

    Neither unit nor offset of logits nor masked classes matter. Ties go by the lead over further
    logits, class, label and shift; rows that have all of it in common stay as they came. Images
    are numbered in the same order.
    """
    order = _argsort_rows(predictions, labels)
    if predictions.image is None:
        return predictions[order], labels[order]
    image, place = predictions.image_ranks(), order.argsort()
    first = torch.full_like(place, len(place))[: int(image.max()) + 1]
    first = first.scatter_reduce(0, image, place, "amin")
    number = first.argsort().argsort()[image]
    order = order[number[order].argsort(stable=True)]
    ordered = predictions[order]
    others = {field.name: getattr(ordered, field.name) for field in fields(ordered)}
    del others["logits"]
    source = replace(ordered.source, path=None, numbering=None)
    others |= {"image": number[order], "source": source}
    return Predictions.unchecked(ordered.logits, **others), labels[order]


def _argsort_rows(predictions: Predictions, labels: Labels) -> Tensor:
    largest = predictions.logits.topk(min(COMPARED, predictions.class_count)).values.double()
    leads = (largest[:, :1] - largest[:, 1:]).unbind(1)
    shift = () if predictions.shift is None else (predictions.shift,)
    order = torch.arange(len(labels), device=labels.device)
    for key in reversed((*leads, predictions.classes, labels, *shift)):
        order = order[key[order].argsort(stable=True)]
    return order
