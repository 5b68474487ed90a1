"""Gradient boosting on much evidence: what Rightly's own calibrator began from."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

import rightly
from rightly.evaluation.measurement import TABLE_METRICS
from rightly.metrics import METRICS
from rightly.predictions import Predictions

Labelled = tuple[Predictions, Tensor]


def measure_boosting(cal: Labelled, tests: Mapping[str, Labelled]) -> dict[str, dict[str, float]]:
    """Metrics on each test set of boosting on all that seemed to speak of correctness."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        max_iter=150,
        learning_rate=0.05,
        max_leaf_nodes=15,
        l2_regularization=5.0,
        min_samples_leaf=50,
        random_state=0,
    )
    temperature = rightly.calibrator("temperature_scaling").fit(*cal).temperature(cal[0])[0]
    model.fit(stack_evidence(cal[0], temperature), cal[0].correct(cal[1]).numpy())
    values = {}
    for name, (predictions, labels) in tests.items():
        confidence = model.predict_proba(stack_evidence(predictions, temperature))[:, 1]
        correct = predictions.correct(labels).numpy()
        values[name] = {key: METRICS[key].measure(confidence, correct) for key in TABLE_METRICS}
    return values


def stack_evidence(predictions: Predictions, temperature: Tensor) -> np.ndarray:
    """Top-4 scores of image and views and their logs, agreement, inner products, entropies."""
    image = (predictions.logits.double() / temperature).softmax(-1)
    views = (predictions.view_logits.double() / temperature).softmax(-1)
    top = image.topk(4)
    of_views = views.gather(-1, top.indices[:, None].expand(-1, views.shape[1], -1))
    agrees = (views.argmax(-1) == image.argmax(-1)[:, None]).double()
    columns = [
        top.values,
        top.values.clamp_min(1e-9).log(),
        of_views.flatten(1),
        of_views.clamp_min(1e-9).log().flatten(1),
        of_views[:, :, 0].mean(1, keepdim=True),
        of_views[:, :, 0].amin(1, keepdim=True),
        agrees,
        agrees.mean(1, keepdim=True),
        (views * image[:, None]).sum(-1),
        torch.special.entr(image).sum(-1, keepdim=True),
        torch.special.entr(views).sum(-1),
        (predictions.logits.double() / temperature).logsumexp(-1, keepdim=True),
        (predictions.view_logits.double() / temperature).logsumexp(-1),
    ]
    return torch.cat(columns, 1).numpy()
