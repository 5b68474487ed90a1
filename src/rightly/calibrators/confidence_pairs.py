"""The classifier's own confidence, and its pairs with correctness."""

import numpy as np
import torch

from rightly.calibrators.solvers.temperature import top_probability
from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels, PerSample


def own_confidence(predictions: Predictions) -> PerSample:
    """`predictions.confidence` without whole arrays in between."""
    logits = predictions.logits
    one = torch.ones(logits.shape[0], dtype=torch.float64, device=logits.device)
    return top_probability(logits, one, predictions.classes)


def sorted_pairs(predictions: Predictions, labels: Labels) -> tuple[np.ndarray, np.ndarray]:
    """Confidence and correctness (0.0 or 1.0), by confidence and then by correctness."""
    confidence = own_confidence(predictions).cpu().numpy()
    correct = (predictions.classes == labels).double().cpu().numpy()
    order = np.lexsort((correct, confidence))
    return confidence[order], correct[order]
