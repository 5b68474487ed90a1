"""Metrics of calibration and of selective prediction, their intervals and curves, in NumPy."""

import math
from collections.abc import Iterable

from rightly.metrics import ranked as _ranked
from rightly.metrics import resampled as _resampled
from rightly.metrics.definitions import Metric as Metric
from rightly.metrics.definitions import ace as ace
from rightly.metrics.definitions import aurc as aurc
from rightly.metrics.definitions import auroc as auroc
from rightly.metrics.definitions import brier as brier
from rightly.metrics.definitions import classwise_ece as classwise_ece
from rightly.metrics.definitions import confidence_gap as confidence_gap
from rightly.metrics.definitions import ece as ece
from rightly.metrics.definitions import ece_debiased as ece_debiased
from rightly.metrics.definitions import ks as ks
from rightly.metrics.definitions import ks_released as ks_released
from rightly.metrics.definitions import mce as mce
from rightly.metrics.definitions import narrowly_wrong as narrowly_wrong
from rightly.metrics.definitions import nll as nll
from rightly.metrics.definitions import smooth_ece as smooth_ece
from rightly.metrics.replicates import Outcomes as Outcomes
from rightly.metrics.replicates import Replicates as Replicates
from rightly.metrics.validation import check_outcomes as _check_outcomes
from rightly.registry import Registry
from rightly.shapes import AnyArray

# In the order of the paper's table, then what the paper does not report.
METRICS: Registry[Metric] = Registry(
    "metric",
    Metric,
    (
        Metric(
            "ece",
            ece,
            _resampled.ece,
            range=(0.0, 1.0),
            title="ECE",
            meaning="mean distance between confidence and accuracy, in 25 bins",
            ranked=_ranked.ece,
        ),
        Metric(
            "brier",
            brier,
            _resampled.brier,
            range=(0.0, 1.0),
            title="Brier score",
            meaning="mean squared distance between confidence and being right",
            ranked=_ranked.brier,
        ),
        Metric(
            "ace",
            ace,
            _resampled.ace,
            range=(0.0, 1.0),
            title="ACE",
            meaning="mean distance between confidence and accuracy, in 25 bins of equal count",
            ranked=_ranked.ace,
        ),
        Metric(
            "mce",
            mce,
            _resampled.mce,
            range=(0.0, 1.0),
            title="MCE",
            meaning="largest distance between confidence and accuracy of any of 25 bins",
            ranked=_ranked.mce,
        ),
        Metric(
            "ks",
            ks,
            _resampled.ks,
            range=(0.0, 1.0),
            title="KS error",
            meaning="largest gap between summed confidence and summed accuracy",
            ranked=_ranked.ks,
        ),
        Metric(
            "ks_released",
            ks_released,
            _resampled.ks_released,
            range=(0.0, 1.0),
            title="KS error (released code)",
            meaning="the KS of the paper's released code, which sorts by correctness",
        ),
        Metric(
            "auroc",
            auroc,
            _resampled.auroc,
            lower_is_better=False,
            range=(0.0, 1.0),
            title="AUROC",
            meaning="chance that a right prediction is more confident than a wrong one",
            ranked=_ranked.auroc,
        ),
        Metric(
            "nll",
            nll,
            _resampled.nll,
            inputs="probabilities",
            range=(0.0, math.inf),
            unit="nats",
            title="NLL",
            meaning="mean negative log-probability of the true class",
        ),
        Metric(
            "classwise_ece",
            classwise_ece,
            _resampled.classwise_ece,
            inputs="probabilities",
            range=(0.0, 1.0),
            title="classwise ECE",
            meaning="mean over classes of the distance between probability and frequency",
        ),
        Metric(
            "ece_debiased",
            ece_debiased,
            _resampled.ece_debiased,
            range=(0.0, 1.0),
            title="debiased ECE",
            meaning="ECE less what chance alone adds to it in a test set of this size",
        ),
        Metric(
            "smooth_ece",
            smooth_ece,
            _resampled.smooth_ece,
            range=(0.0, 1.0),
            title="smooth ECE",
            meaning="distance between confidence and accuracy, smoothed instead of binned",
        ),
        Metric(
            "aurc",
            aurc,
            _resampled.aurc,
            range=(0.0, 1.0),
            title="AURC",
            meaning="mean error rate when only the most confident are accepted",
        ),
        Metric(
            "confidence_gap",
            confidence_gap,
            _resampled.confidence_gap,
            range=(-1.0, 1.0),
            title="confidence gap",
            meaning="mean confidence when wrong minus mean confidence when right",
        ),
        Metric(
            "narrowly_wrong",
            narrowly_wrong,
            _resampled.narrowly_wrong,
            inputs="probabilities",
            lower_is_better=None,
            range=(0.0, 1.0),
            title="narrowly wrong",
            meaning="share of samples that are wrong, but nearly preferred the true class",
        ),
    ),
)


def measure_all(
    confidence: AnyArray, correct: AnyArray, metrics: Iterable[str] | None = None
) -> dict[str, float]:
    """Some metrics of confidence, or all, from one sort shared by those that need it.

    >>> measure_all([0.75, 0.5, 0.25], [True, False, True], ["ks", "auroc"])
    {'ks': 0.25, 'auroc': 0.5}
    """
    records = [metric for metric in METRICS.values() if metric.inputs == "confidence"]
    if metrics is not None:
        records = [METRICS.find(name) for name in metrics]
        others = [metric.name for metric in records if metric.inputs != "confidence"]
        if others:
            raise ValueError(
                f"metrics must be of (confidence, correct), got {', '.join(others)} of "
                "(probabilities, labels): call those by themselves"
            )
    c, a = _check_outcomes(confidence, correct)
    # Also for one metric alone, so that its digits do not depend on what is measured beside it.
    needs_rank = any(metric.ranked is not None for metric in records)
    outcomes = _ranked.rank(c, a) if needs_rank else None
    return {
        metric.name: metric.measure(c, a)
        if outcomes is None or metric.ranked is None
        else float(metric.ranked(outcomes))
        for metric in records
    }
