"""A small model to test with."""

import torch
from torch import nn

from rightly.classifiers import Preprocessing


class Small(nn.Module):
    """A convolution, a pool, and a head with a hidden layer, as mobile networks have."""

    def __init__(self, classes=5):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU())
        self.hidden, self.head = nn.Linear(6, 8), nn.Linear(8, classes)
        self.register_buffer("scale", torch.tensor(1.5), persistent=False)

    def penultimate(self, x):
        return self.hidden(self.body(x).mean((2, 3))).relu()

    def forward(self, x):
        return self.scale * self.head(self.penultimate(x))


def said(classifier, images, **options):
    with classifier.prepare():
        return classifier.forward(images, **options)


NORMALISED = Preprocessing(mean=(0.4, 0.5, 0.6), std=(0.2, 0.3, 0.4))
