"""Models that py:tests.cli.models:NAME opens."""

import torch

from rightly.classifiers import Preprocessing
from tests.deployment.tiny_models import PREPROCESSING, Small


def small() -> tuple[torch.nn.Module, Preprocessing]:
    return Small(), PREPROCESSING


def interrupted() -> torch.nn.Module:
    """The user presses Ctrl-C while the model is opened."""
    raise KeyboardInterrupt


def broken() -> torch.nn.Module:
    """A mistake that no command expects."""
    raise ZeroDivisionError("broken on purpose")
