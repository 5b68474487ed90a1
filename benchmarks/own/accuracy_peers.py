"""What the literature and other tools expect of a classifier's accuracy without labels.

MOVAL (`pip install moval`) and NannyML's CBPE (`pip install nannyml`) only where installed.
"""

import importlib.util
import os
from collections.abc import Callable, Mapping

import numpy as np
import torch

import rightly
from benchmarks.own.accuracy_estimates import atc, average_confidence, doc
from rightly.predictions import Predictions

Labelled = tuple[Predictions, torch.Tensor]
Estimate = Callable[[Predictions], float]


def list_peers(base: rightly.Calibrator, cal: Labelled) -> dict[str, Estimate]:
    """Estimates of accuracy by name, fitted on calibration data; `base` gives confidences."""
    predictions, labels = cal
    confidence = base.confidence(predictions).cpu().numpy()
    correct = (base.classes(predictions) == labels).cpu().numpy()

    def of(p: Predictions) -> np.ndarray:
        return np.asarray(base.confidence(p).cpu())

    peers: dict[str, Estimate] = {
        "average confidence": lambda p: average_confidence(of(p)),
        "ATC": lambda p: atc(confidence, correct, of(p)),
        "DoC": lambda p: doc(confidence, correct, of(p)),
    }
    if importlib.util.find_spec("moval"):
        peers |= {f"MOVAL {name}": fit_moval(name, cal) for name in ("ts-model", "ts-atc-model")}
    if importlib.util.find_spec("nannyml"):
        peers["NannyML CBPE"] = fit_cbpe(base, cal)
    return peers


def fit_moval(algorithm: str, cal: Labelled) -> Estimate:
    """MOVAL on logits, all classes together: class by class it fails on NumPy 2."""
    import moval

    model = moval.MOVAL(estim_algorithm=algorithm, class_specific=False)
    model.fit(cal[0].logits.cpu().double().numpy(), cal[1].cpu().numpy())
    return lambda p: float(model.estimate(p.logits.cpu().double().numpy()))


def fit_cbpe(base: rightly.Calibrator, cal: Labelled) -> Estimate:
    """Confidence-based performance estimation on the probabilities of `base`."""
    os.environ.setdefault("NML_DISABLE_USAGE_LOGGING", "1")  # it would report each call
    import nannyml
    import pandas as pd

    def tabulate(p: Predictions) -> "pd.DataFrame":
        probabilities = base.probabilities(p).cpu().numpy()
        table = {f"p{k}": column for k, column in enumerate(probabilities.T)}
        return pd.DataFrame({**table, "predicted": base.classes(p).cpu().numpy()})

    reference = tabulate(cal[0]).assign(label=cal[1].cpu().numpy())
    estimator = nannyml.CBPE(
        y_pred_proba={k: f"p{k}" for k in range(cal[0].class_count)},
        y_pred="predicted",
        y_true="label",
        problem_type="classification_multiclass",
        metrics=["accuracy"],
        chunk_number=1,
    )
    estimator.fit(reference)

    def estimate(p: Predictions) -> float:
        result = estimator.estimate(tabulate(p)).filter(period="analysis").to_df()
        return float(result[("accuracy", "value")].iloc[0])

    return estimate


def measure_peers(
    base: rightly.Calibrator, cal: Labelled, tests: Mapping[str, Labelled]
) -> dict[str, float]:
    """Mean absolute error over test sets, by name."""
    accuracies = {t: float((base.classes(p) == y).double().mean()) for t, (p, y) in tests.items()}
    return {
        name: float(np.mean([abs(estimate(p) - accuracies[t]) for t, (p, _) in tests.items()]))
        for name, estimate in list_peers(base, cal).items()
    }
