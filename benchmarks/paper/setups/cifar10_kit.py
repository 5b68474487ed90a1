"""Five CIFAR-10 classifiers whose predictions are stored as CLASSIFIER/SET.npz below --data.

Calibrated on 5,000 test images and tested on the other 5,000, and on 2,500 of those under four
shifts with severities 1 to 5 mixed. Not the paper's classifiers or images.
"""

from benchmarks.paper.setups.setup import Classifier, Images, Setup

CLASSIFIERS = ("resnet20", "vgg13", "mobilenet", "densenet", "resnext")
TESTS = ("ind", "gaussian_blur", "gaussian_noise", "contrast", "pixelate")
NEAREST = {"gaussian_blur": "Gaussian Blur"}

CIFAR10_KIT = Setup(
    name="cifar10-kit",
    about="five CIFAR-10 classifiers, predictions only",
    classifiers=tuple(Classifier(name, f"py:benchmarks.kit:{name}") for name in CLASSIFIERS),
    calibration=Images("cal", "cal", "folders"),
    tests=tuple(
        Images(name, name, "folders", in_distribution=name == "ind", published=NEAREST.get(name))
        for name in TESTS
    ),
    published="cifar10",
    same_as_published=False,
)
