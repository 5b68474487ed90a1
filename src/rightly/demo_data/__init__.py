"""The main job on real predictions that come with the package.

What a ResNet-20 trained on CIFAR-10 said about test images, as they are and under two shifts.
"""

from importlib.resources import files

from rightly.predictions import Predictions, load
from rightly.tensor_shapes import Labels

TESTS = {"ind": "in distribution", "gaussian_blur": "blur", "gaussian_noise": "noise"}


def demo_set(name: str) -> tuple[Predictions, Labels]:
    """One of the packaged sets: cal, ind, gaussian_blur, gaussian_noise."""
    predictions, labels = load(str(files("rightly.demo_data") / f"{name}.npz"))
    assert labels is not None
    return predictions, labels
