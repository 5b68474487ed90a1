"""The experiments: the paper's three, and two on data that can be had without them."""

from setups.cifar10 import CIFAR10
from setups.cifar10_kit import CIFAR10_KIT
from setups.described import Classifier as Classifier
from setups.described import Images as Images
from setups.described import Setup as Setup
from setups.imagenet import IMAGENET
from setups.imagenet_kit import IMAGENET_KIT
from setups.iwildcam import IWILDCAM

SETUPS: dict[str, Setup] = {
    setup.name: setup for setup in (IMAGENET, CIFAR10, IWILDCAM, CIFAR10_KIT, IMAGENET_KIT)
}
