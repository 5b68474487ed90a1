"""Calibrators as an estimator of scikit-learn: for classifiers of tables, text, anything."""

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils import (
    _safe_indexing,
    assert_all_finite,
    check_random_state,
    column_or_1d,
    get_tags,
    indexable,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from rightly.checks import check_fraction

if TYPE_CHECKING:
    from rightly.predictions import Predictions

RESPONSES = ("decision_function", "predict_proba")


class CalibratedEstimator(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier with the calibrator of a registered method on top.

    The classifier is fitted on one part of the samples, the calibrator on the other, class by
    class. A fitted classifier inside `sklearn.frozen.FrozenEstimator` stays as it is, and all
    samples go to the calibrator. Logits are the classifier's decision function, or the logarithms
    of its probabilities where it has none; `response_method` names one of the two. Without an
    estimator it is a logistic regression.

    After `fit`: `estimator_`, `calibrator_` (which can be saved and exported), `classes_`.
    """

    def __init__(
        self,
        estimator: Any = None,
        method: str = "temperature_scaling",
        *,
        arguments: Mapping[str, Any] | None = None,
        calibration_fraction: float = 0.2,
        response_method: str = "auto",
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.arguments = arguments
        self.calibration_fraction = calibration_fraction
        self.response_method = response_method
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> "CalibratedEstimator":  # noqa: N803
        """Fits the classifier on one part of the samples and the calibrator on the other."""
        from rightly.calibrators import calibrator

        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        self._check_settings()
        X, y = indexable(X, y)  # noqa: N806
        kept, held_out = self._split(y)
        self.estimator_ = self._get_estimator()
        if len(kept):
            self.estimator_ = clone(self.estimator_)
            self.estimator_.fit(_safe_indexing(X, kept), y[kept])
        self.classes_ = np.asarray(self.estimator_.classes_)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        predictions = self._collect(_safe_indexing(X, held_out))
        labels = self._number_labels(y[held_out])
        arguments = dict(self.arguments or {})
        self.calibrator_ = calibrator(self.method, **arguments).fit(predictions, labels)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:  # noqa: N803
        """Calibrated probabilities, one column a class in the order of `classes_`."""
        return self._calibrate("probabilities", X)

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """The predicted classes: the classifier's own, unless the method may change them."""
        numbers = self._calibrate("classes", X)
        return self.classes_[numbers]

    def confidence(self, X: Any) -> np.ndarray:  # noqa: N803
        """Probability that each predicted class is right."""
        return self._calibrate("confidence", X)

    def __sklearn_tags__(self) -> Any:
        tags, own = super().__sklearn_tags__(), get_tags(self._get_estimator())
        tags.input_tags.sparse = own.input_tags.sparse
        tags.input_tags.allow_nan = own.input_tags.allow_nan
        return tags

    def _calibrate(self, answer: str, X: Any) -> np.ndarray:  # noqa: N803
        check_is_fitted(self)
        with warnings.catch_warnings():
            # That probabilities saturate was told when it was fitted.
            warnings.filterwarnings("ignore", "probabilities hold exact zeros", UserWarning)
            predictions = self._collect(X)
        return getattr(self.calibrator_, answer)(predictions).numpy()

    def _get_estimator(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def _check_settings(self) -> None:
        from rightly.calibrators import CALIBRATORS

        needs = CALIBRATORS.find(self.method).needs
        if needs:
            raise ValueError(
                f"method must need logits only, got {self.method!r}, which needs "
                f"{' and '.join(needs)}: choose another, such as 'temperature_scaling'"
            )
        if self.response_method not in ("auto", *RESPONSES):
            expected = ", ".join(map(repr, ("auto", *RESPONSES)))
            raise ValueError(
                f"response_method must be one of {expected}, got {self.response_method!r}"
            )
        check_fraction("calibration_fraction", self.calibration_fraction)

    def _split(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows for the classifier, none if it is frozen, and for the calibrator: of every class."""
        if isinstance(self.estimator, FrozenEstimator):
            return np.arange(0), np.arange(len(y))
        classes, numbers = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"y must have at least 2 classes, got {len(classes)} class")
        rng = check_random_state(self.random_state)
        kept, held_out = [], []
        for k in range(len(classes)):
            rows = rng.permutation(np.flatnonzero(numbers == k))
            # Both have a sample of every class that has two; the classifier of all.
            count = min(max(1, round(len(rows) * self.calibration_fraction)), len(rows) - 1)
            held_out.append(rows[:count])
            kept.append(rows[count:])
        first, second = (np.sort(np.concatenate(rows)) for rows in (kept, held_out))
        if not len(second):
            raise ValueError(
                f"y must have a class with 2 samples or more, got {len(y)} of {len(y)} classes"
            )
        return first, second

    def _number_labels(self, y: np.ndarray) -> np.ndarray:
        """The columns of true classes."""
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(
                f"y must hold classes that the estimator knows, {self.classes_.tolist()}, got "
                f"also {unknown.tolist()[:5]}"
            )
        order = np.argsort(self.classes_)
        return order[np.searchsorted(self.classes_, y, sorter=order)]

    def _collect(self, X: Any) -> "Predictions":  # noqa: N803
        """The classifier's logits as predictions."""
        from rightly.predictions import Predictions

        response = self.response_method
        if response == "auto":
            response = next((name for name in RESPONSES if hasattr(self.estimator_, name)), "")
        if not hasattr(self.estimator_, response or RESPONSES[0]):
            raise TypeError(
                f"estimator must have {response or ' or '.join(RESPONSES)}, got "
                f"{type(self.estimator_).__name__} without: choose another classifier"
            )
        values = np.asarray(getattr(self.estimator_, response)(X), dtype=np.float64)
        if response == "predict_proba":
            return Predictions.from_probabilities(values)
        if values.ndim == 1:
            return Predictions.from_binary(values)
        # Softmax is the same, and what is negative is never mistaken for probabilities.
        return Predictions(values - values.max(-1, keepdims=True))
