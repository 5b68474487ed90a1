"""Predictions that come with the package: a ResNet-20 on CIFAR-10 test images, some shifted."""

from importlib.resources import files

from rightly.predictions import Predictions, load
from rightly.tensor_shapes import Labels

CALIBRATION = "cal"
TESTS = {"ind": "in distribution", "gaussian_blur": "blur", "gaussian_noise": "noise"}


def load_demo_set(name: str) -> tuple[Predictions, Labels]:
    """One of the packaged sets: cal, ind, gaussian_blur, gaussian_noise."""
    if name not in (CALIBRATION, *TESTS):
        raise ValueError(f"name must be one of {', '.join((CALIBRATION, *TESTS))}, got {name!r}")
    predictions, labels = load(str(files("rightly.demo_data") / f"{name}.npz"))
    assert labels is not None
    return predictions, labels
