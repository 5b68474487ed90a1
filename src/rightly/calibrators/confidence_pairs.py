"""The classifier's own confidence, and its pairs with correctness."""

import numpy as np
import torch

from rightly.calibrators.solvers.execution import iterate_chunks
from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels, Logits, PerSample


def own_confidence(logits: Logits) -> PerSample:
    """The classifier's, without whole arrays in between."""
    parts = [Predictions.unchecked(logits[rows]).confidence for rows in iterate_chunks(logits)]
    return torch.cat(parts)


def sorted_pairs(predictions: Predictions, labels: Labels) -> tuple[np.ndarray, np.ndarray]:
    """Confidence and correctness (0.0 or 1.0), by confidence and then by correctness."""
    confidence = own_confidence(predictions.logits).double().cpu().numpy()
    correct = (predictions.classes == labels).double().cpu().numpy()
    order = np.lexsort((correct, confidence))
    return confidence[order], correct[order]
