"""What calibration data can tell about shifts that nobody has seen yet."""

import torch
from torch import Tensor

from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels


def pseudo_shifted(predictions: Predictions, labels: Labels) -> Predictions:
    """One view of each image in the place of the image: a shift that costs no further pass.

    The views take turns. What happened to a shifted image has happened to its views too, so the
    others are moved by what moved the image, as far as they show what the image shows. A view of
    the same kind once more is taken to change nothing.
    """
    views = predictions.view_logits
    assert views is not None
    n, m, c = views.shape
    turn = torch.arange(n, device=views.device) % m
    logits = views.gather(1, turn[:, None, None].expand(-1, 1, c)).squeeze(1)
    moved = (logits - predictions.logits)[:, None]
    taken = (turn[:, None] == torch.arange(m, device=views.device))[:, :, None]
    share = view_coupling(predictions, labels).to(views)[:, None]
    shifted = torch.where(taken, views, views + share * moved)
    return Predictions.unchecked(logits, view_logits=shifted, view_names=predictions.view_names)


def view_coupling(predictions: Predictions, labels: Labels) -> Tensor:
    """Per view, how much of what sets an image apart from its class it shows too: 0 to 1.

    The squared slope of the view's logits over the image's, both less the mean of their class.
    On calibration data this comes close to how far views follow the image under real shifts.
    """
    views, logits, truth = predictions.view_logits, predictions.logits.cpu(), labels.cpu()
    assert views is not None
    count = predictions.class_count
    total = logits.new_zeros(count, count).index_add(0, truth, logits)
    own = logits - (total / truth.bincount(minlength=count).clamp_min(1)[:, None])[truth]
    own = own - own.mean(-1, keepdim=True)
    # Nothing has to be taken off the views: what is the same in a class or a row meets sums of 0.
    along = [(views[:, i].cpu() * own).sum(dtype=torch.float64) for i in range(views.shape[1])]
    slope = torch.stack(along) / own.square().sum(dtype=torch.float64).clamp_min(1e-12)
    return slope.clamp(0, 1).square()
