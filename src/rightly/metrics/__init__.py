"""How honest a confidence is: metrics, their intervals and the curves behind figures, in NumPy."""

import math

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
from rightly.registry import Registry

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
        ),
        Metric(
            "brier",
            brier,
            _resampled.brier,
            range=(0.0, 1.0),
            title="Brier score",
            meaning="mean squared distance between confidence and being right",
        ),
        Metric(
            "ace",
            ace,
            _resampled.ace,
            range=(0.0, 1.0),
            title="ACE",
            meaning="mean distance between confidence and accuracy, in 25 bins of equal count",
        ),
        Metric(
            "mce",
            mce,
            _resampled.mce,
            range=(0.0, 1.0),
            title="MCE",
            meaning="largest distance between confidence and accuracy of any of 25 bins",
        ),
        Metric(
            "ks",
            ks,
            _resampled.ks,
            range=(0.0, 1.0),
            title="KS error",
            meaning="largest gap between summed confidence and summed accuracy",
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
