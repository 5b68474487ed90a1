"""Pseudo-shifted samples built from views: they cost no further forward pass."""

import torch
from torch import Tensor

from rightly.calibrators.solvers.class_sums import ClassSums
from rightly.predictions import Predictions
from rightly.predictions.masking import MASKED, fill_masked
from rightly.tensor_shapes import Labels


def take_turns(predictions: Predictions) -> Labels:
    """The number of a view for each row, all views in turn."""
    return torch.arange(len(predictions), device=predictions.logits.device) % len(
        predictions.view_names
    )


def pseudo_shifted(predictions: Predictions, labels: Labels, view: Labels | int) -> Predictions:
    """One view of each image in the place of the image, by its number: a shift for free.

    What happened to a shifted image has happened to its views too, so the others are moved by what
    moved the image, times their `view_coupling`. A view of the same kind once more is taken to
    change nothing.
    """
    views = predictions.view_logits
    assert views is not None
    n, m, c = views.shape
    turn = torch.as_tensor(view, device=views.device).expand(n)
    logits = views.gather(1, turn[:, None, None].expand(-1, 1, c)).squeeze(1)
    moved = (logits - predictions.logits)[:, None]
    is_image = (turn[:, None] == torch.arange(m, device=views.device))[:, :, None]
    coupling = view_coupling(predictions, labels).to(views)[:, None]
    # A class that is masked in one of them says nothing about how far the others moved.
    is_masked = (predictions.logits <= MASKED) | (logits <= MASKED)
    moved = torch.where(is_masked[:, None] | (views <= MASKED), 0.0, moved)
    shifted = torch.where(is_image, views, views + coupling * moved)
    return Predictions.unchecked(logits, view_logits=shifted, view_names=predictions.view_names)


def view_coupling(predictions: Predictions, labels: Labels) -> Tensor:
    """Per view, the squared slope of its logits over the image's, both less their class means.

    From 0 to 1: how much of what sets an image apart from its class a view shows too. On
    calibration data this comes close to how far views follow the image under real shifts.
    """
    views = predictions.view_logits
    assert views is not None
    logits = fill_masked(predictions.logits)
    count = predictions.class_count
    total = ClassSums.of(labels, count)(logits)
    image = logits - (total / labels.bincount(minlength=count).clamp_min(1)[:, None])[labels]
    image = image - image.mean(-1, keepdim=True)
    # Nothing has to be taken off the views: what is the same in a class or a row meets sums of 0.
    each = (fill_masked(views[:, i]) for i in range(views.shape[1]))
    products = [(view * image).sum(dtype=torch.float64) for view in each]
    slope = torch.stack(products) / image.square().sum(dtype=torch.float64).clamp_min(1e-12)
    return slope.clamp(0, 1).square()
