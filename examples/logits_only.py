"""Calibrates logits that are already there: no images, no views, no torch model.

    python examples/logits_only.py

Stands in for your own classifier with scikit-learn's; only `logits` and `labels` matter.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import rightly
from rightly.metrics import brier, ece


def main() -> None:
    x, y = load_digits(return_X_y=True)
    x = x + np.random.default_rng(0).normal(0, 4, x.shape)  # harder, so that some are wrong
    x_train, x_rest, y_train, y_rest = train_test_split(x, y, train_size=400, random_state=0)
    x_cal, x_test, y_cal, y_test = train_test_split(x_rest, y_rest, train_size=0.5, random_state=0)
    network = MLPClassifier((64,), max_iter=400, random_state=0).fit(x_train, y_train)

    # Scores before softmax are the best input. This classifier only gives probabilities, and
    # says so by the constructor that is used: rows that sum to 1 are refused as logits.
    cal = rightly.Predictions.from_log_probabilities(network.predict_log_proba(x_cal))
    test = rightly.Predictions.from_log_probabilities(network.predict_log_proba(x_test))
    correct = test.correct(y_test).numpy()

    print(f"{correct.mean():.1%} of {len(test)} test samples are right")
    for method in ("uncalibrated", "temperature_scaling", "spline", "ca_only"):
        calibrator = rightly.calibrator(method).fit(cal, y_cal)
        confidence = calibrator.confidence(test).numpy()
        print(
            f"{method:20} says {confidence.mean():.1%}   "
            f"ECE {100 * ece(confidence, correct):5.2f}   "
            f"Brier {100 * brier(confidence, correct):5.2f}"
        )

    # Act on the confident ones, hand the others to somebody.
    sure = confidence >= 0.9
    print(
        f"\nabove 0.9 after {method}: {sure.mean():.1%} of the samples, "
        f"{correct[sure].mean():.1%} of them right"
    )


if __name__ == "__main__":
    main()
