"""What it changes where a method differs from its original, and how far methods change the order.

    python -m benchmarks.paper.deviations .../cifar10_predictions [--classifiers NAMES] [--seeds 3]
        [--originals]

First table: variants of a method, mean over classifiers (and seeds where it is random), in
distribution and over all shifted sets; `spread` is the standard deviation of the temperatures over
their mean, on the calibration rows. With --originals also what takes minutes to train: widths and
epochs of the authors. Second table: Kendall's tau between confidence before and after
calibration, least and largest over classifiers in distribution, of all samples and of the sure.
"""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import kendalltau

import rightly
from benchmarks.long_table import parse_names
from benchmarks.paper.setups.cifar10_kit import CLASSIFIERS, TESTS
from rightly.calibrators.families import PerSampleTemperatureCalibrator
from rightly.calibrators.temperature_network import TemperatureNetwork
from rightly.evaluation.measurement import measure

Sets = Mapping[str, tuple[rightly.Predictions, Any]]  # by name, with labels
Build = Callable[[int], rightly.Calibrator]
METRICS = ("ece", "brier", "auroc")
SURE = 0.9  # confidence, where most samples lie
ORDERED = ("temperature_scaling", "ensemble_temperature_scaling", "multi_isotonic", "spline")


def list_variants(with_originals: bool) -> dict[str, tuple[Build, bool]]:
    """By title: how to build it from a seed, and whether the seed matters."""
    name = "parameterized_temperature_scaling"
    variants: dict[str, tuple[Build, bool]] = {
        "temperature_scaling": (lambda seed: rightly.calibrator("ts"), False),
        name: (lambda seed: rightly.calibrator(name, seed=seed), True),
        f"{name}, decays 0.3 to 0.03": (
            lambda seed: TemperatureNetwork(
                "top_logits", "squared_error", hidden=(5, 5), decays=(0.3, 0.1, 0.03), seed=seed
            ),
            True,
        ),
        "proximity": (lambda seed: rightly.calibrator("proximity"), False),
        "proximity, coordinate confidence": (
            lambda seed: rightly.calibrator("proximity", coordinate="confidence"),
            False,
        ),
        "proximity_bins": (lambda seed: rightly.calibrator("proximity_bins"), False),
        "adaptive_temperature_scaling": (lambda seed: rightly.calibrator("ats", seed=seed), True),
        "true_class_probability": (lambda seed: rightly.calibrator("tcp", seed=seed), True),
    }
    if with_originals:
        variants["adaptive_temperature_scaling, 1024 512 512, 100 epochs"] = (
            lambda seed: rightly.calibrator("ats", widths=(1024, 512, 512), epochs=100, seed=seed),
            True,
        )
    return variants


def measure_variant(build: Build, seeds: int, data: Mapping[str, Sets]) -> list[float]:
    """ECE, Brier score and AUROC in distribution, the same under shift, and the spread of T."""
    rows = []
    for sets in data.values():
        for seed in range(seeds):
            fitted = build(seed).fit(*sets["cal"])
            measured = [measure(fitted, *sets[name], METRICS) for name in TESTS]
            values = np.array([[one[metric] for metric in METRICS] for one in measured])
            spread = np.nan
            if isinstance(fitted, PerSampleTemperatureCalibrator):
                spread = float(fitted.temperature_spread)
            rows.append([*values[0], *values[1:].mean(0), spread])
    return [float(value) for value in np.mean(rows, 0)]


def compute_taus(name: str, sets: Sets) -> tuple[float, float]:
    """Kendall's tau between confidence before and after, of all samples and of those above SURE."""
    test = sets["ind"][0]
    before = test.confidence.numpy()
    after = rightly.calibrator(name).fit(*sets["cal"]).confidence(test).numpy()
    is_sure = before > SURE
    sure = kendalltau(before[is_sure], after[is_sure])
    return kendalltau(before, after).statistic, sure.statistic


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--classifiers", default=",".join(CLASSIFIERS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--originals", action="store_true")
    options = parser.parse_args()
    names = parse_names(options.classifiers, list(CLASSIFIERS), "--classifiers")
    data = {
        name: {test: rightly.load(options.data / name / f"{test}.npz") for test in ("cal", *TESTS)}
        for name in names
    }
    heading = "".join(f"{metric + where:>11}" for where in ("", " sh.") for metric in METRICS)
    print(f"{'in %':58}{heading}  spread of T")
    for title, (build, is_random) in list_variants(options.originals).items():
        *values, spread = measure_variant(build, options.seeds if is_random else 1, data)
        shown = "" if np.isnan(spread) else f"  {spread:.1e}"
        print(f"{title:58}{''.join(f'{100 * value:11.2f}' for value in values)}{shown}", flush=True)
    print(f"\nKendall's tau, in distribution{'of all samples':>42}{f'above {SURE:g}':>20}")
    for name in ORDERED:
        taus = np.array([compute_taus(name, sets) for sets in data.values()])
        ranges = [f"{column.min():.2f} to {column.max():.2f}" for column in taus.T]
        print(f"{name:58}{ranges[0]:>14}{ranges[1]:>20}")


if __name__ == "__main__":
    main()
