"""What labels from where a calibrator is used gain, by how many there are.

    python -m benchmarks.own.recalibrating PREDICTIONS --prior
    python -m benchmarks.own.recalibrating PREDICTIONS

PREDICTIONS holds CLASSIFIER/SET.npz. Each calibrator is fitted on `cal`; of each other set, some
rows are drawn to adapt with, and the remaining ones are measured. ECE excess is the ECE less
its noise floor. Printed are the mean over draws and, in brackets, the 95th percentile; the first
column adapts with none. `--prior` prints what all labels of the sets for developing ask for.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.special import expit, logit

import rightly
from rightly.calibrators.shift_fitting import fit_intercept_and_slope
from rightly.metrics import brier, ece
from rightly.metrics.bootstrap import noise_floor

DEVELOPING = ("resnet20", "mobilenet", "densenet")
DEVELOPING_SETS = ("ind", "gaussian_blur", "gaussian_noise")
SETS = (*DEVELOPING_SETS, "contrast", "pixelate")
LABELS = (0, 25, 50, 100, 200, 500)
METHODS = ("temperature_scaling", "rightly")
FREE = 1e6  # a standard deviation that holds nothing back


def list_scores(
    folder: Path, sets: tuple[str, ...], method: str
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Scores and correctness on each set, of a calibrator fitted on `cal`."""
    fitted = rightly.calibrator(method).fit(*rightly.load(folder / "cal.npz"))
    for name in sets:
        predictions, labels = rightly.load(folder / f"{name}.npz")
        confidence = fitted.confidence(predictions).numpy()
        correct = (fitted.classes(predictions) == labels).numpy()
        yield name, logit(confidence.clip(1e-12, 1 - 1e-12)), correct


def print_prior(root: Path) -> None:
    found = []
    for method in METHODS:
        for classifier in DEVELOPING:
            for name, s, correct in list_scores(root / classifier, DEVELOPING_SETS, method):
                bias, slope = fit_intercept_and_slope(s, correct, FREE, FREE)
                p = expit(s)
                level = bias + (slope - 1) * float((p * (1 - p)) @ s / (p * (1 - p)).sum())
                print(f"{method:20} {classifier:10} {name:15} level {level:+.3f} slope {slope:.3f}")
                found.append((level, slope - 1))
    level, slope = np.sqrt(np.square(found).mean(0))
    print(f"root mean square: level {level:.3f}, slope less 1 {slope:.3f}")


def measure(s: np.ndarray, correct: np.ndarray, count: int, draws: int) -> np.ndarray:
    """ECE excess and Brier score (draws, 2) after adapting with so many labels."""
    rng, values = np.random.default_rng(0), []
    for _ in range(draws):
        order = rng.permutation(len(s))
        used, rest = order[:count], order[count:]
        bias, slope = fit_intercept_and_slope(s[used], correct[used]) if count else (0.0, 1.0)
        c, right = expit(bias + slope * s[rest]), correct[rest]
        values.append((ece(c, right) - noise_floor(c, 20).mean, brier(c, right)))
    return np.array(values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("predictions", type=Path)
    parser.add_argument("--prior", action="store_true")
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--method", default="temperature_scaling")
    options = parser.parse_args()
    if options.prior:
        print_prior(options.predictions)
        return
    classifiers = sorted(path for path in options.predictions.iterdir() if path.is_dir())
    by_set: dict[str, list[np.ndarray]] = {name: [] for name in SETS}
    for folder in classifiers:
        for name, s, correct in list_scores(folder, SETS, options.method):
            per_count = [measure(s, correct, count, options.draws) for count in LABELS]
            by_set[name].append(np.array(per_count))  # (counts, draws, 2)
    print(f"{options.method}, {len(classifiers)} classifiers, {options.draws} draws; in %")
    print(f"{'set':15} {'metric':10}" + "".join(f"{count:>14}" for count in LABELS))
    for name, values in by_set.items():
        pooled = 100 * np.concatenate(values, 1)
        for j, metric in enumerate(("ECE excess", "Brier")):
            cells = [f"{x[:, j].mean():.2f} ({np.quantile(x[:, j], 0.95):.2f})" for x in pooled]
            print(f"{name:15} {metric:10}" + "".join(f"{cell:>14}" for cell in cells))


if __name__ == "__main__":
    main()
