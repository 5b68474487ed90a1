"""Calibrators inside scikit-learn: its own checks, and the calibrators themselves."""

import jaxtyping
import numpy as np
import pytest
import torch
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from rightly import Predictions, calibrator, load_calibrator
from rightly.calibrators import CALIBRATORS
from rightly.sklearn import CalibratedEstimator


@parametrize_with_checks([CalibratedEstimator(LogisticRegression())])
@pytest.mark.filterwarnings("ignore:all .* calibration samples are predicted:UserWarning")
def test_scikit_learn_finds_nothing_wrong(estimator, check, monkeypatch):
    # It builds estimators of nonsense, which the type checker of these tests would refuse.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    check(estimator)


@pytest.fixture(scope="module")
def data():
    x, y = make_classification(
        900, 8, n_informative=5, n_classes=3, class_sep=0.7, flip_y=0.1, random_state=0
    )
    return x, np.array(["cat", "dog", "emu"])[y]


def test_a_frozen_classifier_is_calibrated_as_by_hand(data, tmp_path):
    x, y = data
    classifier = LogisticRegression().fit(x[:300], y[:300])
    fitted = CalibratedEstimator(FrozenEstimator(classifier)).fit(x[300:600], y[300:600])
    logits = Predictions(classifier.decision_function(x))
    labels = np.searchsorted(classifier.classes_, y)
    by_hand = calibrator("temperature_scaling").fit(logits[300:600], labels[300:600])
    test = logits[600:]
    np.testing.assert_allclose(fitted.predict_proba(x[600:]), by_hand.probabilities(test))
    np.testing.assert_allclose(fitted.confidence(x[600:]), by_hand.confidence(test))
    assert (fitted.predict(x) == classifier.predict(x)).all()
    fitted.calibrator_.save(tmp_path / "c.safetensors")
    loaded = load_calibrator(tmp_path / "c.safetensors")
    assert torch.equal(loaded.confidence(test), fitted.calibrator_.confidence(test))


def test_the_classifier_never_sees_what_the_calibrator_is_fitted_on(data):
    x, y = data
    fitted = CalibratedEstimator(LinearSVC(), calibration_fraction=0.3).fit(x, y)
    assert fitted.calibrator_.sample_count == sum(round(0.3 * (y == k).sum()) for k in set(y))
    again = CalibratedEstimator(LinearSVC(), calibration_fraction=0.3).fit(x, y)
    assert (fitted.predict_proba(x) == again.predict_proba(x)).all()
    kept, held_out = fitted._split(y)
    assert sorted([*kept, *held_out]) == list(range(len(y)))
    refitted = LinearSVC().fit(x[kept], y[kept])
    np.testing.assert_array_equal(refitted.coef_, fitted.estimator_.coef_)


def test_a_classifier_without_decision_function_gives_log_probabilities(data):
    x, y = data
    forest = RandomForestClassifier(20, random_state=0)
    with pytest.warns(UserWarning, match="probabilities hold exact zeros"):
        fitted = CalibratedEstimator(forest).fit(x[:600], y[:600])
    own = fitted.estimator_.predict_proba(x[600:])
    assert (own.argmax(-1) == fitted.predict_proba(x[600:]).argmax(-1)).mean() > 0.99


LOGITS_ONLY = [name for name, method in CALIBRATORS.items() if not method.needs]


@pytest.mark.parametrize("method", LOGITS_ONLY)
def test_every_method_that_needs_only_logits_can_be_named(method, data):
    x, y = data
    rows = y != "emu"  # two classes: also what is for binary classifiers
    fitted = CalibratedEstimator(LogisticRegression(), method).fit(x[rows][:200], y[rows][:200])
    p = fitted.predict_proba(x[rows][200:])
    np.testing.assert_allclose(p.sum(-1), 1)
    assert fitted.score(x[rows][200:], y[rows][200:]) > 0.6


def test_what_makes_no_sense_is_refused(data):
    x, y = data
    for settings, error, message in (
        ({"method": "ca_views"}, ValueError, "method must need logits only, got 'ca_views'"),
        ({"method": "tea"}, ValueError, "method 'tea' is not known"),
        ({"response_method": "predict"}, ValueError, "response_method must be one of 'auto'"),
        ({"calibration_fraction": 1.0}, ValueError, "calibration_fraction must be a fraction in"),
        ({"response_method": "predict_proba"}, TypeError, "estimator must have predict_proba"),
    ):
        with pytest.raises(error, match=message):
            CalibratedEstimator(LinearSVC(), **settings).fit(x, y)
    frozen = FrozenEstimator(LogisticRegression().fit(x, np.where(y == "emu", "cat", y)))
    with pytest.raises(ValueError, match=r"y must hold classes that the estimator knows.*'emu'"):
        CalibratedEstimator(frozen).fit(x, y)
