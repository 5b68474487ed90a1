"""From images to an honest confidence in under a minute, with nothing to download.

    python examples/digits.py [--out FOLDER]

A small network learns scikit-learn's 8 x 8 digits. It is asked about images it has not seen, as
they are, through three views each, and turned; a calibrator learns from half of them how likely
its answers are to be right, and is tested on the other half.
"""

import argparse
import tempfile
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.utils.data import TensorDataset

import rightly
from rightly.evaluation.data_sets import split_by_shift
from rightly.evaluation.measurement import measure

METHODS = ("uncalibrated", "temperature_scaling", "rightly")


def digits() -> tuple[Tensor, Tensor]:
    """All images as RGB in 0..255, 16 x 16 so that views have some pixels to work on."""
    found = load_digits()
    small = torch.from_numpy(found.images).float()[:, None] / 16
    larger = nn.functional.interpolate(small, (16, 16), mode="bilinear")
    return (255 * larger).round().byte().repeat(1, 3, 1, 1), torch.from_numpy(found.target)


def train(pixels: Tensor, labels: Tensor) -> nn.Module:
    """A small convolutional network; few images and many epochs make it over-confident."""
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(512, 10),
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    x = pixels.float() / 255
    for _ in range(60):
        for rows in torch.randperm(len(x)).split(32):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(x[rows]), labels[rows]).backward()
            optimizer.step()
    return network.eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="default: a new temporary folder")
    out = parser.parse_args().out or Path(tempfile.mkdtemp(prefix="digits-"))
    out.mkdir(parents=True, exist_ok=True)

    pixels, labels = digits()
    x_train, x_rest, y_train, y_rest = train_test_split(
        pixels, labels, train_size=200, random_state=0, stratify=labels
    )
    x_cal, x_test, y_cal, y_test = train_test_split(
        x_rest, y_rest, train_size=0.5, random_state=0, stratify=y_rest
    )
    network = train(x_train, y_train)

    # Everything slow happens here, once; the folders can be read again by `rightly compare`.
    cal, cal_labels = rightly.collect(
        network, TensorDataset(x_cal, y_cal), out=out / "cal", device="cpu"
    )
    test, test_labels = rightly.collect(
        network,
        TensorDataset(x_test, y_test),
        shifts=("rotation:2",),
        out=out / "test",
        device="cpu",
    )

    print(f"{'method':22} {'test set':18} {'accuracy':>9} {'ECE':>6} {'Brier':>6} {'AUROC':>6}")
    for method in METHODS:
        calibrator = rightly.calibrator(method).fit(cal, cal_labels)
        for name, (part, truth) in split_by_shift("as they are", test, test_labels).items():
            values = measure(calibrator, part, truth, ("ece", "brier", "auroc"))
            accuracy = float(part.correct(truth).double().mean())
            row = "".join(f"{100 * value:7.2f}" for value in values.values())
            print(f"{method:22} {name:18} {accuracy:9.1%}{row}")
    calibrator.save(out / "calibrator.safetensors")

    rightly.report(
        calibrator,
        {"test": out / "test"},
        out / "report.html",
        cal=out / "cal",
        title="a network for digits",
    )

    print(f"\npredictions, the calibrator and the report are in {out}; for all methods:")
    print(f"rightly compare {out}/cal {out}/test")


if __name__ == "__main__":
    main()
