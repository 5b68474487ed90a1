"""What calibration data can tell about shifts that nobody has seen yet."""

import torch

from rightly.predictions import Predictions
from rightly.shapes import Labels
from rightly.shifts import kind


def views_as_shifted(predictions: Predictions) -> Predictions:
    """One view of each image in the place of the image, and the image in the place of the view.

    A view is an image a little off the data the classifier knows, which it gets wrong more often:
    a shifted sample that costs no further forward pass. The views take turns.
    """
    views = predictions.view_logits
    assert views is not None
    n, m, c = views.shape
    turn = torch.arange(n, device=views.device) % m
    logits = views.gather(1, turn[:, None, None].expand(-1, 1, c)).squeeze(1)
    taken = turn[:, None] == torch.arange(m, device=views.device)
    swapped = torch.where(taken[:, :, None], predictions.logits[:, None], views)
    return Predictions.unchecked(logits, view_logits=swapped, view_names=predictions.view_names)


def shift_kinds(predictions: Predictions) -> Labels:
    """A number for the kind of each row's shift: 0 for images as they are, then 1, 2, ..."""
    if predictions.shift is None:
        return torch.zeros_like(predictions.classes)
    names = predictions.shift_names
    last = int(predictions.shift.max())
    kinds = [kind(names[i]) if i < len(names) else f"shift {i + 1}" for i in range(last)]
    numbers = {name: k for k, name in enumerate(dict.fromkeys(kinds), start=1)}
    table = torch.tensor([0, *(numbers[name] for name in kinds)], device=predictions.shift.device)
    return table[predictions.shift]


def image_numbers(predictions: Predictions) -> Labels:
    """A number for each row that it shares with the shifted copies of the same image.

    Copies are found by their place among the rows of one shift, which is how they are collected.
    """
    if predictions.shift is None:
        return torch.arange(len(predictions), device=predictions.logits.device)
    numbers = torch.zeros_like(predictions.shift)
    for value in predictions.shift.unique().tolist():
        rows = (predictions.shift == value).nonzero().squeeze(-1)
        numbers[rows] = torch.arange(rows.shape[0], device=rows.device)
    return numbers
