"""The same work by other libraries, where they are installed (`pip install rightly[bench]`)."""

import importlib
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import torch

Work = Callable[[], object]


def find_module(name: str) -> ModuleType | None:
    """The module, or None where it is not installed or cannot be loaded here."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except (ImportError, RuntimeError, OSError):
        return None


def build_scalers(logits: torch.Tensor, labels: torch.Tensor) -> dict[str, tuple[Work, Work]]:
    """By library: fitting temperature scaling to logits, and applying it to them."""
    found = {}
    truth = labels.numpy()
    probabilities = logits.softmax(-1).numpy()
    if find_module("sklearn.frozen"):
        found["scikit-learn, temperature"] = _build_sklearn(logits.numpy(), truth)
    if netcal := find_module("netcal.scaling"):
        scaler = netcal.TemperatureScaling()
        found["netcal, temperature"] = (
            _quietly(lambda: scaler.fit(probabilities, truth)),
            _quietly(lambda: scaler.transform(probabilities)),
        )
    if probmetrics := find_module("probmetrics.calibrators"):
        tempered = probmetrics.get_calibrator("temp-scaling")
        found["probmetrics, temperature"] = (
            _quietly(lambda: tempered.fit(probabilities, truth)),
            _quietly(lambda: tempered.predict_proba(probabilities)),
        )
    return found


def _build_sklearn(logits: np.ndarray, truth: np.ndarray) -> tuple[Work, Work]:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator

    class Scores(ClassifierMixin, BaseEstimator):
        """A classifier whose inputs are its scores."""

        def fit(self, x: np.ndarray, y: np.ndarray) -> "Scores":
            self.classes_ = np.arange(x.shape[1])
            return self

        def decision_function(self, x: np.ndarray) -> np.ndarray:
            return x

        def predict(self, x: np.ndarray) -> np.ndarray:
            return x.argmax(-1)

    frozen = FrozenEstimator(Scores().fit(logits, truth))
    scaler: Any = CalibratedClassifierCV(frozen, method="temperature", ensemble=False)
    return (
        _quietly(lambda: scaler.fit(logits, truth)),
        _quietly(lambda: scaler.predict_proba(logits)),
    )


def build_metrics(confidence: np.ndarray, correct: np.ndarray) -> dict[str, Work]:
    """By library and metric: the metric of these pairs."""
    found: dict[str, Work] = {}
    if sklearn := find_module("sklearn.metrics"):
        found["scikit-learn, auroc"] = lambda: sklearn.roc_auc_score(correct, confidence)
        found["scikit-learn, brier"] = lambda: sklearn.brier_score_loss(correct, confidence)
    if torchmetrics := find_module("torchmetrics.functional.classification"):
        values, truth = torch.from_numpy(confidence), torch.from_numpy(correct.astype(np.int64))
        found["torchmetrics, ece"] = lambda: torchmetrics.binary_calibration_error(
            values, truth, n_bins=15
        )
        found["torchmetrics, auroc"] = lambda: torchmetrics.binary_auroc(values, truth)
    if netcal := find_module("netcal.metrics"):
        measure = netcal.ECE(15)
        found["netcal, ece"] = lambda: measure.measure(confidence, correct.astype(np.int64))
    return {name: _quietly(work) for name, work in found.items()}


def _quietly(work: Work) -> Work:
    def run() -> object:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return work()

    return run
