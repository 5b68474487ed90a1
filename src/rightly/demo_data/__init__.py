"""Predictions that come with the package: a ResNet-20 on CIFAR-10 test images, some shifted.

Written by `python -m benchmarks.own.collect_demo`, with the default views of `rightly collect`.
"""

from importlib.resources import files

from rightly.checks import check_choice
from rightly.predictions import Predictions, load
from rightly.tensor_shapes import Labels

CALIBRATION = "cal"
AUGMENTED = "cal_augmented"  # the same, and a fifth of them under each standard shift
TESTS = {"ind": "clean images", "haze": "haze", "pixelate": "pixelation"}


def load_demo_set(name: str) -> tuple[Predictions, Labels]:
    """One of the packaged sets: cal, cal_augmented, ind, haze, pixelate."""
    known = (CALIBRATION, AUGMENTED, *TESTS)
    check_choice("name", name, known)
    file = CALIBRATION if name == AUGMENTED else name
    predictions, labels = load(str(files("rightly.demo_data") / f"{file}.npz"))
    assert labels is not None
    if name == CALIBRATION:
        rows = predictions.unshifted()
        kept, labels = predictions[rows], labels[rows]
        predictions = Predictions(
            kept.logits, kept.view_logits, kept.features, kept.view_names, kept.class_names
        )
    return predictions, labels
