"""EfficientNet-Lite0 on 2,000 ImageNet validation images: images.zip below --data.

1,000 images calibrate. 250 of the others test, as they are and under three shifts, because four
passes over each of them under each shift take two minutes on two cores; `quarter` of kit.py.
"""

from pathlib import Path

from benchmarks import kit
from benchmarks.paper.setups.setup import Classifier, Images, Setup


def unpack(data: Path, folder: Path) -> Path:
    """The images in folders, unpacked once."""
    archive = data / "images.zip"
    if archive.is_file() and not (folder / "done").is_file():
        kit.write_imagenet(archive, folder)
        (folder / "done").touch()
    return folder


IMAGENET_KIT = Setup(
    name="imagenet-kit",
    about="EfficientNet-Lite0, calibrated on 1,000 ImageNet-Val images, tested on 250 others",
    classifiers=(Classifier("efficientnet_lite0", "py:benchmarks.kit:efficientnet_lite0"),),
    calibration=Images("cal", "cal", "imagenet-val"),
    tests=(
        Images(
            "quarter",
            "quarter",
            "imagenet-val",
            in_distribution=True,
            shifts=("gaussian_blur:3", "contrast:3", "jpeg:5"),
            published="ImageNet-Val",
        ),
    ),
    published="imagenet",
    same_as_published=False,
    unpack=unpack,
    batch_size=50,
)
