"""Which shift augmentation serves both weights and context: kinds, images and severities.

    python -m benchmarks.own.collect_unseen_shifts CIFAR10 OUT --mixed [--device cuda]
    python -m benchmarks.own.shift_augmentation OUT [--classifiers resnet20_1] [--sets standard] \
        [--images 250,500,1000] [--severities 4,mixed] [--device cuda]

On ImageNet the same after `collect_imagenet_shifts IMAGES OUT --mixed`. Every set is judged
on the kinds that are in none of the sets, so that all are judged on the same ones and on none that
they were fitted to. Columns: forward passes of shifted rows an image, without views; then Rightly's
own calibrator against temperature scaling on the same files: in distribution ECE (points); under
the unseen kinds Brier ratio and AUROC (points), unadapted, which is what weights gain; adapted to
each set the excess of ECE as a share, the mean distance between mean confidence and accuracy
(points), ECE under extreme blur as a share, and how often the 90 % range held.
"""

import argparse
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

import rightly
from benchmarks.own.adapting import (
    EXTREME,
    IN_DISTRIBUTION,
    Labelled,
    Measured,
    add_augmentation,
    measure,
    thin,
    to_device,
)
from benchmarks.own.evaluate_own import OWN
from benchmarks.own.targets import BASE, list_classifiers
from rightly.evaluation.data_sets import load_data_set
from rightly.transforms.shifts import STANDARD_SHIFTS, kind

STANDARD = tuple(kind(shift) for shift in STANDARD_SHIFTS)
SETS = {
    "none": (),
    "three": ("gaussian_noise", "gaussian_blur", "contrast"),
    "five": ("gaussian_noise", "gaussian_blur", "contrast", "rotation", "snow"),
    "without glass": tuple(name for name in STANDARD if name != "glass"),
    "standard": STANDARD,
}
FOLDERS = {"4": "shift_augmentation", "mixed": "shift_augmentation_mixed"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("predictions", type=Path)
    parser.add_argument("--classifiers", default="all")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--images", default="500,1000", help="shifted, of each kind")
    parser.add_argument("--severities", default="4,mixed")
    parser.add_argument("--calibration", type=int, default=5000, help="images, at most")
    parser.add_argument("--rows", type=int, default=1000, help="of each test set")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="the shift estimate of this batch")
    head = (
        "set | severities | images | passes | ECE id | Brier | AUROC | excess | gap | blur | held"
    )
    print(f"| {head} |\n|{'---|' * 11}", flush=True)
    rows: dict[str, list[Mapping[str, tuple[Measured, ...]]]] = {}
    names = list_classifiers(options.predictions, options.classifiers)
    for name in names:
        for setting, values in measure_sets(name, options):
            rows.setdefault(setting, []).append(values)
            if len(rows[setting]) == len(names):
                print(f"| {setting} | {format_row(rows[setting])} |", flush=True)


def measure_sets(
    name: str, options: argparse.Namespace
) -> Iterator[tuple[str, Mapping[str, tuple[Measured, ...]]]]:
    """Each setting: base, own and own adapted on every test set of one classifier."""
    folder = options.predictions / name
    used = {shift for kinds in SETS.values() for shift in kinds}
    tests = {
        file.stem: thin(to_device(load_data_set(file), options.device), options.rows)
        for file in sorted(folder.glob("*.npz"))
        if file.stem != "cal" and file.stem not in used
    }
    predictions, labels = to_device(load_data_set(folder / "cal.npz"), options.device)
    cal = predictions[: options.calibration], labels[: options.calibration]
    base = rightly.calibrator(BASE).fit(*cal)
    at_base = {t: measure(base, test, None) for t, test in tests.items()}
    for setting, data in list_settings(name, cal, options):
        own = rightly.calibrator(OWN).fit(*data)
        yield (
            setting,
            {
                t: (at_base[t], measure(own, test, None), measure(own, test, own))
                for t, test in tests.items()
            },
        )


def list_settings(
    name: str, cal: Labelled, options: argparse.Namespace
) -> Iterator[tuple[str, Labelled]]:
    """Calibration rows with those of each set, severity and number of images."""
    for chosen in options.sets.split(","):
        if not SETS[chosen]:
            yield f"{chosen} | | | 0", cal
            continue
        for severities in options.severities.split(","):
            file = options.predictions / FOLDERS[severities] / f"{name}.npz"
            shifted = to_device(load_data_set(file), options.device)
            for images in map(int, options.images.split(",")):
                kinds = SETS[chosen]
                data = add_augmentation(cal, shifted, kinds, images)
                passes = len(kinds) * min(images, len(cal[1])) / len(cal[1])
                yield f"{chosen} | {severities} | {images} | {passes:.1f}", data


def format_row(found: list[Mapping[str, tuple[Measured, ...]]]) -> str:
    """Means over classifiers and sets."""
    inside = [values[IN_DISTRIBUTION] for values in found]
    blurred = [values[EXTREME] for values in found if EXTREME in values]
    unseen = [
        three
        for values in found
        for t, three in values.items()
        if t not in (IN_DISTRIBUTION, EXTREME)
    ]
    excess = np.array([[one.ece - one.floor for one in three] for three in unseen]).mean(0)
    held = [three[2].held for values in found for three in values.values()]
    cells = [
        f"{100 * np.mean([adapted.ece - base.ece for base, _, adapted in inside]):+.2f}",
        f"{np.mean([own.brier / base.brier for base, own, _ in unseen]):.3f}",
        f"{100 * np.mean([own.auroc - base.auroc for base, own, _ in unseen]):+.2f}",
        f"{excess[2] / excess[0]:.2f}",
        f"{100 * np.mean([abs(adapted.gap) for _, _, adapted in unseen]):.2f}",
        f"{np.mean([adapted.ece / base.ece for base, _, adapted in blurred]):.2f}"
        if blurred
        else "",
        f"{100 * np.mean(held):.0f} %",
    ]
    return " | ".join(cells)


if __name__ == "__main__":
    main()
