"""Too few samples, or too few of one outcome, to tell calibrated from uncalibrated."""

import warnings
from collections.abc import Iterator

from torch import Tensor

from rightly.calibrators import calibrator
from rightly.evaluation.examination.findings import WARNING, Finding
from rightly.metrics.bootstrap import noise_floor
from rightly.predictions import Predictions

MAX_FLOOR = 0.05  # ECE that a perfect confidence would score: most classifiers have a smaller one
FEWEST_OUTCOMES = 15  # wrong (or right) predictions: one more or less changes the level by 7 %


def find_few(name: str, predictions: Predictions, labels: Tensor) -> Iterator[Finding]:
    """Fewer samples than an ECE or a calibrator needs."""
    n, right = len(labels), int((predictions.classes == labels).sum())
    with warnings.catch_warnings():  # of few samples: that is what is found out here
        warnings.simplefilter("ignore")
        scaled = calibrator("temperature_scaling").fit(predictions, labels)
    floor = noise_floor(scaled.confidence(predictions).cpu().numpy(), draws=200)
    if floor.mean > MAX_FLOOR:
        needed = int(n * (floor.mean / MAX_FLOOR) ** 2)
        yield Finding(
            name,
            "few_samples",
            WARNING,
            f"{n} samples are few: a perfect confidence would score an ECE of {floor.mean:.3f} on "
            f"them by chance (25 bins), and up to {floor.high:.3f} in 95 of 100 such sets",
            f"label about {-(-needed // 100) * 100} samples, so that it would score {MAX_FLOOR}",
        )
    few, kind = min((right, "right"), (n - right, "wrong"))
    if few < FEWEST_OUTCOMES:
        advice = f"about {n * FEWEST_OUTCOMES // few} samples" if few else "more samples"
        yield Finding(
            name,
            "few_outcomes",
            WARNING,
            f"only {few} of {n} predictions are {kind}: how often that happens, and at which "
            "confidence, is known to no better than a third",
            f"label {advice}, which would have {FEWEST_OUTCOMES} of them",
        )
