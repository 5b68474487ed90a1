"""A tiny classifier, images for it, and a loop that collects by hand."""

import numpy as np
import pyarrow.dataset
import pyarrow.parquet
import torch
from PIL import Image
from torch import nn

from rightly.classifiers import Preprocessing
from rightly.transforms.shifts import SHIFTS
from rightly.transforms.views import VIEWS

CLASSES = ("cat", "dog", "emu")


# 16 x 12 pictures become 12 x 9, of which the middle is cut out.
SMALL = Preprocessing((8, 8), 9, "bilinear", (0.4, 0.5, 0.6), (0.2, 0.3, 0.4))


class Tiny(nn.Module):
    """A convolution and a linear layer; counts the images it is shown."""

    def __init__(self, class_count=3, seed=0):
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 5, 3), nn.Linear(5, class_count)
        self.dropout = nn.Dropout(0.5)  # seen by whoever forgets evaluation mode
        draws = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for weight in self.parameters():
                weight.copy_(torch.randn(weight.shape, generator=draws))
        self.shown = 0

    def penultimate(self, images):
        return self.conv(images).relu().mean((2, 3))

    def forward(self, images):
        self.shown += len(images)
        return self.head(self.dropout(self.penultimate(images)))


def picture(i, mode="RGB", size=(16, 12)):
    pixels = np.random.default_rng(i).integers(0, 256, (size[1], size[0], 3), np.uint8)
    return Image.fromarray(pixels).convert(mode)


def flat(root, count):
    root.mkdir()
    for i in range(count):
        picture(i).save(root / f"{i:04d}.png")
    return root


def class_folders(root, count):
    for i in range(count):
        place = root / CLASSES[i % 3]
        place.mkdir(parents=True, exist_ok=True)
        picture(i).save(place / f"{i:04d}.png")
    return root


def by_hand(model, files, views=("hflip",), shifts=(), seed=0):
    """What a loop over images gives: logits, logits of views and features, shift by shift."""
    logits, view_logits, features = [], [], []
    model.eval()
    mean, std = torch.tensor([SMALL.mean, SMALL.std])[:, None, :, None, None]

    def seen(images):
        return (images - mean) / std

    with torch.no_grad():
        for name, severity in ((None, 0), *shifts):
            for file in files:
                small = Image.open(file).resize((12, 9), Image.Resampling.BILINEAR)
                pixels = np.asarray(small.crop((2, 0, 10, 8)), np.float32) / 255
                image = torch.from_numpy(pixels).permute(2, 0, 1)[None]
                shown = image if name is None else SHIFTS[name](image, severity, seed)
                logits.append(model(seen(shown)))
                features.append(model.penultimate(seen(shown)))
                view_logits += [torch.stack([model(seen(VIEWS[v](shown))) for v in views], 1)]
    return torch.cat(logits), torch.cat(view_logits), torch.cat(features)


def same(found, expected):
    """Two collections are equal to the last bit."""
    for name in ("logits", "view_logits", "features", "shift"):
        one, other = getattr(found[0], name), getattr(expected[0], name)
        assert (one is None) == (other is None)
        assert one is None or torch.equal(one, other)
    for name in ("view_names", "class_names", "shift_names"):
        assert getattr(found[0], name) == getattr(expected[0], name)
    assert (found[1] is None) == (expected[1] is None)
    assert found[1] is None or torch.equal(found[1], expected[1])


def close(found, expected):
    # Sums over a batch of another size are rounded otherwise in the last bits.
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def rows_in(folder):
    return pyarrow.dataset.dataset(folder).to_table()


class Pairs(torch.utils.data.Dataset):
    """Pictures with labels that are only known when they are read."""

    def __init__(self, labels):
        self.labels = labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return picture(i), self.labels[i]


def state_of(model):
    return (
        [part.training for part in model.modules()],
        [(id(w), id(w.grad), w.requires_grad, w.dtype, w.device) for w in model.parameters()],
        [weight.detach().clone() for weight in model.parameters()],
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
    )


def alike(before, after):
    assert before[:2] == after[:2] and before[3:] == after[3:]
    assert all(torch.equal(*pair) for pair in zip(before[2], after[2], strict=True))
