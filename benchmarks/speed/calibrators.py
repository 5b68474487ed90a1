"""Times calibrators beside other libraries' (`pip install rightly[bench]`), in one process.

    python -m benchmarks.speed.calibrators [--samples 10000] [--classes 100] [--runs 5]

Prints the least processor seconds of some fits in turn, on one thread, the ratio to ours, the mean
log loss on the data fitted to, and the value of what is minimised. Other libraries end sooner:
the line `to the same` is ours, ended as soon as its value is not above theirs.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from unittest.mock import patch

import numpy as np
import torch

import rightly
from benchmarks.speed.peers import find_module
from rightly.calibrators.scaling import structured_scaling

ENDS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-12)


@dataclass(frozen=True)
class Answer:
    """Probabilities of the data fitted to, and scores W x + b where it is such a model."""

    probabilities: np.ndarray
    affine: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None  # x, W, b


Fit = Callable[[], Answer]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    logits, labels = draw(options.samples, options.classes)
    truth = labels.numpy()
    peers = build_peers(logits.softmax(-1).numpy(), truth)
    print(
        f"{'method':28} {'by':14} {'seconds':>8} {'of ours':>8} {'log loss':>9} {'objective':>12}"
    )
    for method, others in peers.items():
        fits = {"rightly": partial(fit_ours, method, logits, labels), **others}
        seconds, answers = time_in_turn(fits, options.runs)
        values = {name: compute_objective(one, truth) for name, one in answers.items()}
        for name, value in values.items():
            p = answers[name].probabilities[np.arange(len(truth)), truth]
            loss = float(-np.log(np.maximum(p, 1e-300)).mean())
            print_row(method, name, seconds[name], seconds["rightly"], loss, value)
            if name != "rightly" and value is not None:
                end, reached = find_end(fits["rightly"], truth, value)
                with ended_at(end):
                    both, _ = time_in_turn({"": fits["rightly"], name: fits[name]}, options.runs)
                print_row(method, "to the same", both[""], both[""], None, reached)
                print_row(method, name, both[name], both[""], None, value)


def print_row(
    method: str, by: str, seconds: float, ours: float, loss: float | None, value: float | None
) -> None:
    loss_text = "" if loss is None else f"{loss:9.5f}"
    value_text = "" if value is None else f"{value:12.8f}"
    print(f"{method:28} {by:14} {seconds:8.3f} {seconds / ours:8.2f} {loss_text:9} {value_text:12}")


def time_in_turn(fits: dict[str, Fit], runs: int) -> tuple[dict[str, float], dict[str, Answer]]:
    """The least processor time of each, so that what else the machine does counts for none."""
    seconds = dict.fromkeys(fits, float("inf"))
    answers = {}
    for _ in range(runs):
        for name, fit in fits.items():
            start = time.process_time()
            answers[name] = fit()
            seconds[name] = min(seconds[name], time.process_time() - start)
    return seconds, answers


def fit_ours(method: str, logits: torch.Tensor, labels: torch.Tensor) -> Answer:
    predictions = rightly.Predictions(logits)
    fitted = rightly.calibrator(method).fit(predictions, labels)
    probabilities = fitted.probabilities(predictions).numpy()
    if not isinstance(fitted, structured_scaling.StructuredCalibrator):
        return Answer(probabilities)
    weight = fitted.weight.diag() if fitted.weight.ndim == 1 else fitted.weight
    x = fitted.compute_inputs(logits).numpy()
    return Answer(probabilities, (x, weight.numpy(), fitted.bias.numpy()))


def compute_objective(answer: Answer, truth: np.ndarray) -> float | None:
    """What structured scaling minimises: mean cross-entropy and penalties."""
    if answer.affine is None:
        return None
    x, weight, bias = answer.affine
    n, c = x.shape
    scores = x @ weight.T + bias
    scores -= scores.max(1, keepdims=True)
    loss = (np.log(np.exp(scores).sum(1)) - scores[np.arange(n), truth]).mean()
    moved = weight - np.eye(c)
    diagonal = np.square(np.diag(moved)).sum()
    off = np.square(moved).sum() - diagonal
    return float(loss + c / n * (np.square(bias).sum() + diagonal) + c * (c - 1) / n * off)


def find_end(fit: Fit, truth: np.ndarray, value: float) -> tuple[float, float]:
    """The roughest end of our solver whose value is not above that one, and its value."""
    for end in ENDS:
        with ended_at(end):
            reached = compute_objective(fit(), truth)
        assert reached is not None
        if reached <= value:
            return end, reached
    raise ValueError(f"our objective ends above {value}")


@contextmanager
def ended_at(precision: float) -> Iterator[None]:
    """Ends structured scaling sooner than a user can ask for."""
    solve = partial(structured_scaling.fit_softmax_regression, precision=precision)
    with patch.object(structured_scaling, "fit_softmax_regression", solve):
        yield


def draw(n: int, c: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits that are too large and lack a weight and a bias a class, and labels."""
    g = torch.Generator().manual_seed(0)
    z = 2 * torch.randn(n, c, generator=g, dtype=torch.float64)
    noise = -torch.rand(n, c, generator=g).clamp(1e-9, 1 - 1e-7).log()
    right = z * (1 + 0.4 * torch.rand(c, generator=g)) + torch.randn(c, generator=g)
    return 1.7 * z, (right - noise.log()).argmax(-1)


def build_peers(p: np.ndarray, truth: np.ndarray) -> dict[str, dict[str, Fit]]:
    """By our method: the same one of other libraries, where they are installed."""
    found: dict[str, dict[str, Fit]] = {
        "vector_scaling": {},
        "matrix_scaling": {},
        "structured_vector_scaling": {},
        "structured_matrix_scaling": {},
        "isotonic_one_vs_rest": {},
    }
    if logistic := find_module("probmetrics.calibrators.logistic"):
        probmetrics = find_module("probmetrics.calibrators")

        def fit_probmetrics(name: str) -> Answer:
            fitted = probmetrics.get_calibrator(name).fit(p, truth)  # its own names
            probabilities = fitted.predict_proba(p)
            x = logistic.multiclass_probs_to_logits(fitted.ts_.predict_proba(p))
            if name == "svs":
                return Answer(probabilities, (x, np.diag(fitted.v_), np.asarray(fitted.b_)))
            return Answer(probabilities, (x, fitted.W_[:, :-1], fitted.W_[:, -1]))

        for method, name in (("vector", "svs"), ("matrix", "sms")):
            fit = partial(fit_probmetrics, name)
            found[f"structured_{method}_scaling"]["probmetrics"] = fit
    if isotonic := find_module("sklearn.isotonic"):

        def fit_isotonic() -> Answer:
            columns = [
                isotonic.IsotonicRegression(out_of_bounds="clip")
                .fit(p[:, j], truth == j)
                .predict(p[:, j])
                for j in range(p.shape[1])
            ]
            values = np.stack(columns, 1)
            return Answer(values / values.sum(1, keepdims=True))

        found["isotonic_one_vs_rest"]["scikit-learn"] = fit_isotonic
    return found


if __name__ == "__main__":
    main()
