"""The experiments: the paper's three, and two on data that can be had without them."""

from benchmarks.paper.setups.cifar10 import CIFAR10
from benchmarks.paper.setups.cifar10_kit import CIFAR10_KIT
from benchmarks.paper.setups.imagenet import IMAGENET
from benchmarks.paper.setups.imagenet_kit import IMAGENET_KIT
from benchmarks.paper.setups.iwildcam import IWILDCAM
from benchmarks.paper.setups.setup import Classifier as Classifier
from benchmarks.paper.setups.setup import Images as Images
from benchmarks.paper.setups.setup import Setup as Setup

SETUPS: dict[str, Setup] = {
    setup.name: setup for setup in (IMAGENET, CIFAR10, IWILDCAM, CIFAR10_KIT, IMAGENET_KIT)
}
