"""What a calibrator tells about each row, as the columns that `apply` writes and `monitor` reads.

An exported model tells the same (`deployment.outputs.describe_row`), with `class` for the class.
"""

import numpy as np

from rightly.calibrators.base import Calibrator
from rightly.calibrators.drift_reference import measure_agreement
from rightly.calibrators.shift_adaptation import score_shift
from rightly.predictions import Predictions

SCORES: dict[str, type] = {
    "predicted_class": np.int64,
    "confidence": np.float64,
    "raw_confidence": np.float64,
    "temperature": np.float64,  # where the method divides logits by one
    "accept": np.bool_,  # where the calibrator has a threshold
    "shift_score": np.float64,  # where it can be adapted
    "unadapted_confidence": np.float64,  # the same
    "agreement": np.float64,  # where it has views
    "prediction_set": np.str_,  # where scores were held out: numbers of classes, likeliest first
}


def compute_scores(fitted: Calibrator, predictions: Predictions) -> dict[str, np.ndarray]:
    """The columns of `list_scores`, whatever further views the predictions have."""
    predictions = fitted.select_views(predictions)
    names = list_scores(fitted)
    columns = {
        "predicted_class": fitted.classes(predictions),
        "confidence": fitted.confidence(predictions),
        "raw_confidence": predictions.confidence,
    }
    if "temperature" in names:
        columns["temperature"] = fitted.compute_temperature(predictions)
    if fitted.threshold is not None:
        columns["accept"] = columns["confidence"] >= fitted.threshold
    if "shift_score" in names:
        shift_scores, unadapted = score_shift(fitted, predictions)
        columns |= {"shift_score": shift_scores, "unadapted_confidence": unadapted}
    if "agreement" in names:
        columns["agreement"] = measure_agreement(fitted, predictions, columns["predicted_class"])
    arrays = {name: tensor.cpu().numpy() for name, tensor in columns.items()}
    if "prediction_set" in names:
        arrays["prediction_set"] = _list_sets(fitted, predictions)
    return {name: arrays[name].astype(SCORES[name]) for name in names}


def _list_sets(fitted: Calibrator, predictions: Predictions) -> np.ndarray:
    """Numbers of the classes in each set, the likeliest first, with spaces between them."""
    assert fitted.sets is not None
    p = fitted.probabilities(predictions)
    p = p.masked_fill(~fitted.sets.contains(p, predictions.logits), -1)
    sizes = (p >= 0).sum(-1).tolist()
    orders = p.topk(max(1, *sizes), -1).indices.tolist() if sizes else []
    texts = [" ".join(map(str, k[:size])) for k, size in zip(orders, sizes, strict=True)]
    return np.array(texts, np.str_)


def list_scores(fitted: Calibrator) -> list[str]:
    """The names in SCORES of what a calibrator can tell."""
    lacking = set() if fitted.view_names else {"agreement"}
    lacking |= set() if fitted.has_temperature else {"temperature"}
    lacking |= {"accept"} if fitted.threshold is None else set()
    lacking |= {"prediction_set"} if fitted.sets is None else set()
    if fitted.shift is None:
        lacking |= {"shift_score", "unadapted_confidence"}
    return [name for name in SCORES if name not in lacking]
