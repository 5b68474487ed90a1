"""Checks on a machine with a GPU that every calibrator gives there what it gives on a CPU.

    python -m benchmarks.speed.device [--device cuda]

Fits each calibrator on the packaged predictions on the CPU and on the device, and prints the
largest difference in confidence on a test set. Repeats the fit on the device: the same numbers
are expected there too. Then collects a small model's predictions on both.
"""

import argparse
import time

import torch
from torch import nn

import rightly
from rightly.calibrators import CALIBRATORS
from rightly.demo_data import load_demo_set


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    device = parser.parse_args().device
    cal, labels = load_demo_set("cal")
    test, _ = load_demo_set("haze")
    print(f"{'calibrator':36} {'max difference':>14} {'mean':>9} {'repeat':>9} {'seconds':>8}")
    for name, method in CALIBRATORS.items():
        if method.fits_classes not in (None, cal.class_count):
            continue
        here = rightly.calibrator(name).fit(cal, labels).confidence(test)
        start = time.perf_counter()
        fitted = rightly.calibrator(name).fit(cal.to(device), labels.to(device))
        seconds = time.perf_counter() - start
        there = fitted.confidence(test.to(device))
        again = rightly.calibrator(name).fit(cal.to(device), labels).confidence(test.to(device))
        assert there.device.type == torch.device(device).type
        probabilities = fitted.probabilities(test.to(device))
        assert torch.equal(probabilities.argmax(-1), fitted.classes(test.to(device)))
        gap = (there.cpu() - here).abs()
        repeat = float((there - again).abs().max())
        print(
            f"{name:36} {float(gap.max()):14.2e} {float(gap.mean()):9.1e} {repeat:9.1e} "
            f"{seconds:8.2f}"
        )
    collect_on_both(device)


def collect_on_both(device: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)
    )
    pixels = torch.randint(0, 256, (300, 3, 32, 32), dtype=torch.uint8)
    data = torch.utils.data.TensorDataset(pixels, torch.arange(300) % 5)
    views = ("rotation", "grayscale", "color_jitter", "gaussian_noise", "random_erasing", "blur")
    shifts = ("gaussian_noise", "contrast:5", "pixelate:2")
    one, _ = rightly.collect(model, data, views=views, shifts=shifts, device="cpu")
    two, _ = rightly.collect(model, data, views=views, shifts=shifts, device=device)
    gap = max(
        float((getattr(one, name) - getattr(two, name)).abs().max())
        for name in ("logits", "view_logits")
    )
    print(f"collect on both devices: largest difference in logits {gap:.1e}")
    assert next(model.parameters()).device.type == "cpu"


if __name__ == "__main__":
    main()
