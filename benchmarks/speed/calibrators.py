"""Times calibrators beside other libraries' (`pip install rightly[bench]`), in one process.

    python -m benchmarks.speed.calibrators [--samples 10000] [--classes 100]

Prints the seconds of each fit, the ratio to ours, and the mean log loss that it reaches on the data
it was fitted to, so that nothing is fast by stopping early.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch

import rightly
from benchmarks.speed.peers import find_module

Fitted = Callable[[], np.ndarray]  # fits, and gives the probabilities of what it was fitted to


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--classes", type=int, default=100)
    options = parser.parse_args()
    logits, labels = draw(options.samples, options.classes)
    predictions, truth = rightly.Predictions(logits), labels.numpy()
    peers = build_peers(logits.softmax(-1).numpy(), truth)
    print(f"{'method':28} {'by':14} {'seconds':>8} {'of ours':>8} {'log loss':>9}")
    for method, others in peers.items():

        def fit_ours(method: str = method) -> np.ndarray:
            fitted = rightly.calibrator(method).fit(predictions, labels)
            return fitted.probabilities(predictions).numpy()

        ours = None
        for name, fit in {"rightly": fit_ours, **others}.items():
            start = time.perf_counter()
            probabilities = fit()
            seconds = time.perf_counter() - start
            ours = seconds if ours is None else ours
            true = probabilities[np.arange(len(truth)), truth]
            loss = float(-np.log(np.maximum(true, 1e-300)).mean())
            print(f"{method:28} {name:14} {seconds:8.2f} {seconds / ours:8.2f} {loss:9.5f}")


def draw(n: int, c: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits that are too large and lack a weight and a bias a class, and labels."""
    g = torch.Generator().manual_seed(0)
    z = 2 * torch.randn(n, c, generator=g, dtype=torch.float64)
    noise = -torch.rand(n, c, generator=g).clamp(1e-9, 1 - 1e-7).log()
    right = z * (1 + 0.4 * torch.rand(c, generator=g)) + torch.randn(c, generator=g)
    return 1.7 * z, (right - noise.log()).argmax(-1)


def build_peers(p: np.ndarray, truth: np.ndarray) -> dict[str, dict[str, Fitted]]:
    """By our method: the same one of other libraries, where they are installed."""
    found: dict[str, dict[str, Fitted]] = {
        "vector_scaling": {},
        "matrix_scaling": {},
        "structured_vector_scaling": {},
        "structured_matrix_scaling": {},
        "isotonic_one_vs_rest": {},
    }
    if probmetrics := find_module("probmetrics.calibrators"):

        def build(name: str) -> Fitted:
            return lambda: (
                probmetrics.get_calibrator(name).fit(p, truth).predict_proba(p)  # its own names
            )

        found["structured_vector_scaling"]["probmetrics"] = build("svs")
        found["structured_matrix_scaling"]["probmetrics"] = build("sms")
    if isotonic := find_module("sklearn.isotonic"):

        def fit_isotonic() -> np.ndarray:
            columns = [
                isotonic.IsotonicRegression(out_of_bounds="clip")
                .fit(p[:, j], truth == j)
                .predict(p[:, j])
                for j in range(p.shape[1])
            ]
            values = np.stack(columns, 1)
            shares: np.ndarray = values / values.sum(1, keepdims=True)
            return shares

        found["isotonic_one_vs_rest"]["scikit-learn"] = fit_isotonic
    return found


if __name__ == "__main__":
    main()
