"""The slope of Rightly's own calibrator along the temperature-scaled log-odds, and what it costs.

    python -m benchmarks.own.slope CAL TEST [TEST ...] [--views none]

CAL and TEST are files or folders of predictions with labels (`rightly collect`, `rightly.save`);
rows of TEST under a shift are test sets of their own. The slope is that of the calibrator's
log-odds over those of temperature scaling, on the calibration samples; 1 is temperature scaling
itself. Beside it stands the slope that Platt scaling of the same log-odds finds for them, with two
standard errors. A line a test set and method: mean confidence less accuracy (gap), ECE, Brier score
and AUROC in %, and the Platt slope that would be right there. `slope >= 1` is the calibrator with
its slope raised to 1 where it is below, and the bias that leaves the mean confidence of calibration
samples what it was.

ImageNet, with the packages that benchmarks/kit.py names:

    python -m benchmarks.kit imagenet .../imagenet_val2000/images.zip imagenet
    rightly collect py:benchmarks.kit:efficientnet_lite0 imagenet/cal \
        --layout imagenet-val --out lite0/cal --device cuda
    rightly collect py:benchmarks.kit:efficientnet_lite0 imagenet/test \
        --layout imagenet-val --out lite0/test --device cuda --shifts standard
    python -m benchmarks.own.slope lite0/cal lite0/test
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import rightly
from benchmarks.own.boosting import Labelled
from benchmarks.own.evaluate_own import OWN
from benchmarks.own.targets import BASE
from rightly.calibrators.evidence import correctness_evidence
from rightly.calibrators.solvers.ridge_logistic import fit_platt
from rightly.evaluation.data_sets import load_data_set, load_test_sets
from rightly.metrics import METRICS
from rightly.predictions import Predictions

SHOWN = ("ece", "brier", "auroc")
RESAMPLES = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cal", type=Path)
    parser.add_argument("tests", type=Path, nargs="+", metavar="test")
    parser.add_argument("--views", help="names joined by commas, or none; all by default")
    options = parser.parse_args()
    cal = load_data_set(options.cal)
    tests = load_test_sets({path.stem: path for path in options.tests})
    for title, views in list_views(cal[0], options.views).items():
        print(f"\n{title}: {len(cal[1]):,} calibration samples, {cal[0].class_count:,} classes")
        chosen = {name: (select(test[0], views), test[1]) for name, test in tests.items()}
        print(*compare_slopes((select(cal[0], views), cal[1]), chosen), sep="\n", flush=True)


def list_views(cal: Predictions, named: str | None) -> dict[str, tuple[str, ...]]:
    """The sets of views to fit with: none, and those named or all that there are."""
    views = cal.view_names if named is None else () if named == "none" else tuple(named.split(","))
    return {"no views": (), **({f"{len(views)} views": views} if views else {})}


def select(predictions: Predictions, views: tuple[str, ...]) -> Predictions:
    return predictions.with_views(views) if views else predictions.without_views()


def compare_slopes(cal: Labelled, tests: Mapping[str, Labelled]) -> list[str]:
    """Lines on the slope on calibration samples, then one a test set and method."""
    unshifted = cal[0].unshifted()
    predictions, labels = cal[0][unshifted], cal[1][unshifted]
    correct = predictions.correct(labels)
    base, own = (rightly.calibrator(name).fit(*cal) for name in (BASE, OWN))
    scaled = log_odds(base, predictions)
    slope = find_slope(scaled, log_odds(own, predictions))
    platt, error = find_platt_slope(scaled, correct), find_slope_error(scaled, correct)
    lines = [
        f"slope of {OWN} {slope:.3f}; Platt slope {platt:.3f} +- {2 * error:.3f}",
        f"{'':57}{'gap':>7}" + "".join(f"{name:>7}" for name in SHOWN) + f"{'right slope':>13}",
    ]
    factor = max(1.0, 1 / slope)
    level = float(own.confidence(predictions).mean())
    bias = find_bias(factor * log_odds(own, predictions), level)
    for name, (test, truth) in tests.items():
        right = test.correct(truth).numpy()
        needed = find_platt_slope(log_odds(base, test), torch.as_tensor(right))
        answers = {
            BASE: base.confidence(test),
            OWN: own.confidence(test),
            f"{OWN}, slope >= 1": (factor * log_odds(own, test) + bias).sigmoid(),
        }
        for method, confidence in answers.items():
            values = [confidence.mean().item() - right.mean()]
            values += [METRICS[key].measure(confidence.numpy(), right) for key in SHOWN]
            numbers = "".join(f"{100 * value:7.2f}" for value in values)
            lines.append(f"{name:24} {method:32}{numbers}{needed:13.3f}")
    return lines


def log_odds(calibrator: rightly.Calibrator, predictions: Predictions) -> Tensor:
    if calibrator.method == BASE:
        return correctness_evidence(predictions.without_views(), 1 / calibrator.inverse)[:, 0]
    return torch.logit(calibrator.confidence(predictions).clamp(1e-9, 1 - 1e-9))


def find_slope(x: Tensor, y: Tensor) -> float:
    """Of the least-squares line of y over x."""
    centred = x - x.mean()
    return float(centred @ y / centred.square().sum())


def find_platt_slope(score: Tensor, correct: Tensor) -> float:
    return float(fit_platt(score, correct, torch.ones_like(score)).slope)


def find_slope_error(score: Tensor, correct: Tensor) -> float:
    """The standard error of the slope of Platt scaling, by drawing the samples again."""
    rng = np.random.default_rng(0)
    draws = [torch.as_tensor(rng.integers(0, len(score), len(score))) for _ in range(RESAMPLES)]
    return float(np.std([find_platt_slope(score[rows], correct[rows]) for rows in draws]))


def find_bias(logits: Tensor, level: float) -> float:
    """What to add for that mean confidence, by bisection."""
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        too_low = bool((logits + middle).sigmoid().mean() < level)
        low, high = (middle, high) if too_low else (low, middle)
    return low


if __name__ == "__main__":
    main()
