"""Parts of a data set that share no image: by a hash of each image, not by where its rows stand."""

import numpy as np
import torch
from jaxtyping import Int64

from rightly.predictions.predictions import Predictions
from rightly.predictions.row_hashes import hash_rows
from rightly.tensor_shapes import Labels, PerSampleBool


def number_images(predictions: Predictions) -> Labels:
    """A number for each image from 0 on, in an order that looks random.

    It goes by the image's hash or logits, so that shuffled rows have the same numbers, and equal
    images one; where logits repeat, as those of a decision tree do, by the number of the image.
    """
    image = predictions.image_ranks().cpu().numpy()
    hashes = hash_rows(predictions)
    keys = np.unique(image)
    for kind in ("image_hash", "logits"):
        if kind in hashes:
            as_is = predictions.unshifted().cpu().numpy()
            as_is |= ~np.isin(image, image[as_is])  # an image that only comes shifted
            keys = np.full(len(keys), np.iinfo(np.int64).max)
            np.minimum.at(keys, image[as_is], hashes[kind][as_is])
            break
    number = np.unique(_mix(keys), return_inverse=True)[1]
    return torch.as_tensor(number[image], device=predictions.logits.device)


def mark_held_out(predictions: Predictions, share: float) -> PerSampleBool:
    """Marks the rows of this share of the images; both parts have some image that is unshifted."""
    number = number_images(predictions)
    images = int(number[predictions.unshifted()].unique().numel())
    count = round(share * (int(number.max()) + 1))
    held_out: PerSampleBool = number < count
    for part in (held_out, ~held_out):
        if not bool((part & predictions.unshifted()).any()):
            raise ValueError(
                f"predictions must have images for two parts, one of them {share:g} of all, got "
                f"{images} unshifted: give more, or another share"
            )
    return held_out


def mark_one_row_an_image(predictions: Predictions) -> PerSampleBool:
    """Marks the first unshifted row of each image."""
    as_is = predictions.unshifted()
    rows = torch.nonzero(as_is)[:, 0]
    first = np.unique(number_images(predictions)[rows].cpu().numpy(), return_index=True)[1]
    marked = torch.zeros_like(as_is)
    marked[rows[torch.as_tensor(first, device=rows.device)]] = True
    return marked


def _mix(keys: Int64[np.ndarray, " k"]) -> Int64[np.ndarray, " k"]:
    """Numbers whose every bit depends on all bits of the key (splitmix64: Steele et al., 2014)."""
    x = keys.view(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x ^ (x >> np.uint64(31))).view(np.int64)
