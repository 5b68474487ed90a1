"""Metrics of calibration and of selective prediction, their intervals and curves, in NumPy."""

from collections.abc import Iterable

from rightly.checks import check_outcomes as _check_outcomes
from rightly.metrics import ranked as _ranked
from rightly.metrics.accumulator import Accumulator as Accumulator
from rightly.metrics.decomposition import BrierDecomposition as BrierDecomposition
from rightly.metrics.decomposition import brier_decomposition as brier_decomposition
from rightly.metrics.definitions import Metric as Metric
from rightly.metrics.definitions import ace as ace
from rightly.metrics.definitions import auroc as auroc
from rightly.metrics.definitions import brier as brier
from rightly.metrics.definitions import classwise_ece as classwise_ece
from rightly.metrics.definitions import confidence_gap as confidence_gap
from rightly.metrics.definitions import ece as ece
from rightly.metrics.definitions import ece_debiased as ece_debiased
from rightly.metrics.definitions import ece_l2 as ece_l2
from rightly.metrics.definitions import ks as ks
from rightly.metrics.definitions import ks_released as ks_released
from rightly.metrics.definitions import mce as mce
from rightly.metrics.definitions import multiclass_brier as multiclass_brier
from rightly.metrics.definitions import narrowly_wrong as narrowly_wrong
from rightly.metrics.definitions import nll as nll
from rightly.metrics.definitions import smooth_ece as smooth_ece
from rightly.metrics.replicates import Outcomes as Outcomes
from rightly.metrics.replicates import Replicates as Replicates
from rightly.metrics.selective import augrc as augrc
from rightly.metrics.selective import aurc as aurc
from rightly.metrics.selective import coverage_at_risk as coverage_at_risk
from rightly.metrics.selective import e_aurc as e_aurc
from rightly.metrics.selective import risk_at_coverage as risk_at_coverage
from rightly.metrics.table import METRICS as METRICS
from rightly.shapes import AnyArray


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
