"""Outcomes of an over-confident classifier, and plain metrics of them."""

import numpy as np

from rightly.metrics import METRICS, Outcomes


def make_outcomes(n=300, c=6, decimals=None, seed=0):
    """Over-confident probabilities; rounded confidences have ties."""
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.full(c, 0.4), n)
    labels = (rng.random((n, 1)) > probabilities.cumsum(-1)).sum(-1)
    confidence = probabilities.max(-1)
    if decimals is not None:
        confidence = confidence.round(decimals)
    return Outcomes(confidence, probabilities.argmax(-1) == labels, probabilities, labels)


def measure(name, outcomes, rows=slice(None)):
    """The metric of some rows, by its plain definition."""
    metric = METRICS[name]
    pair = (outcomes.confidence, outcomes.correct)
    if metric.inputs == "probabilities":
        pair = (outcomes.probabilities, outcomes.labels)
    return metric.measure(pair[0][rows], pair[1][rows])
