"""Bayesian binning into quantiles (Naeini et al., 2015): binnings weighed by their evidence."""

from typing import final

import numpy as np
from scipy.special import betaln, logsumexp

from rightly.calibrators.binning.step_confidence import StepConfidence, equal_mass_edges

PRIOR = 2.0  # samples' worth of the prior over all bins together
REACH = 10.0  # numbers of bins from the cube root of n over this, to that times this


@final
class BayesianBinning(StepConfidence):
    """The average over binnings of equal mass, each weighed by the likelihood of the labels.

    The accuracy of a bin has a Beta prior about the middle of its range. An average of steps is
    steps: all edges are joined, and one table is kept.
    """

    def find_steps(
        self, confidence: np.ndarray, correct: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        n = len(confidence)
        few, many = int(np.ceil(n ** (1 / 3) / REACH)), int(np.ceil(n ** (1 / 3) * REACH))
        models = {}  # by their edges: with ties or few samples, many numbers of bins are one
        for bins in range(max(1, few), min(many, n) + 1):
            edges = equal_mass_edges(confidence, bins)
            models[edges.tobytes()] = _score(edges, confidence, correct)
        evidence = np.array([model[0] for model in models.values()])
        weights = np.exp(evidence - logsumexp(evidence))
        all_edges = np.unique(np.concatenate([model[1] for model in models.values()]))
        # Just above each edge, and the lowest bin first.
        values = np.zeros(len(all_edges) + 1)
        for weight, (_, edges, means) in zip(weights, models.values(), strict=True):
            place = np.searchsorted(edges, all_edges, side="right")
            values += weight * means[np.concatenate([[0], place])]
        return all_edges, values.clip(0, 1)


def _score(
    edges: np.ndarray, confidence: np.ndarray, correct: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Log evidence of a binning, its edges, and the posterior mean of each bin."""
    bins = len(edges) + 1
    place = np.searchsorted(edges, confidence)
    count = np.bincount(place, minlength=bins)
    right = np.bincount(place, correct, bins)
    ends = np.concatenate([[0.0], edges, [1.0]])
    middle = ((ends[:-1] + ends[1:]) / 2).clip(1e-9, 1 - 1e-9)
    alpha, beta = PRIOR / bins * middle, PRIOR / bins * (1 - middle)
    evidence = betaln(right + alpha, count - right + beta) - betaln(alpha, beta)
    return float(evidence.sum()), edges, (right + alpha) / (count + alpha + beta)
