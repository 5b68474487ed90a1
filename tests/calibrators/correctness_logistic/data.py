"""A classifier whose noise also reaches its views; under shift it has more of it."""

import numpy as np
import torch

import rightly
from rightly import Predictions


def draw_noisy(n=1500, strength=0.0, seed=0, shift=None, names=(), height=4.0):
    """Logits of that height for the true class, and noise; a shift adds more of it."""
    g = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 10, (n,), generator=g)
    clear = torch.nn.functional.one_hot(labels, 10) * height
    noise = (1 + strength) * torch.randn(n, 10, generator=g)
    own = clear + noise + torch.randn(n, 10, generator=g)
    views = clear[:, None] + noise[:, None] + torch.randn(n, 3, 10, generator=g)
    marks = None if shift is None else np.full(n, shift)
    image = None if shift is None else np.arange(n)
    predictions = Predictions(2 * own, 2 * views, shift=marks, shift_names=names, image=image)
    return predictions, labels


def augmented(names=("gaussian_noise:3", "gaussian_blur:3"), height=4.0):
    """Unshifted images, and some of them under each of these shifts."""
    parts = [draw_noisy(shift=0, names=names, height=height)]
    parts += [
        draw_noisy(700, 0.8 + 0.1 * s, 10 + s, s, names, height) for s in range(1, len(names) + 1)
    ]
    joined = rightly.concatenate([predictions for predictions, _ in parts])
    return joined, torch.cat([labels for _, labels in parts])
