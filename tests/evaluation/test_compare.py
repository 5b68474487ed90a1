"""compare: from data to tables, in Python."""

import numpy as np
import pytest

import rightly
from rightly import Predictions
from rightly.evaluation.compare import Comparison, compare
from rightly.evaluation.measurement import TABLE_METRICS
from tests.conftest import make


@pytest.fixture(scope="module")
def comparison():
    return compare(
        make(), {"a": make(seed=1)}, methods=["ts", "uncalibrated"], intervals=True, resamples=100
    )


def test_a_comparison_measures_every_method_on_every_test_set(comparison):
    assert comparison.methods == ["temperature_scaling", "uncalibrated"]
    assert comparison.datasets == ["a"] and comparison.metrics == list(TABLE_METRICS)
    assert (comparison.resamples, comparison.reference) == (100, "temperature_scaling")
    assert all(row.low <= row.value <= row.high for row in comparison)
    assert repr(comparison) == (
        "<Comparison: 2 methods on 1 test set, 4 metrics, tested against temperature_scaling>"
    )


def test_paths_and_pairs_give_the_same(comparison, tmp_path):
    for name, seed in (("cal", 0), ("a", 1)):
        rightly.save(tmp_path / f"{name}.npz", *make(seed=seed))
    again = compare(
        tmp_path / "cal.npz", {"a": str(tmp_path / "a.npz")}, methods=comparison.methods
    )
    assert [row[:5] for row in again] == [row[:5] for row in comparison]


def test_what_was_skipped_is_told(sample, other):
    bare = (Predictions(other[0].logits), other[1])
    shown = compare(sample, {"a": bare}, metrics=["brier"])
    for_two = dict.fromkeys(("platt", "beta", "isotonic"), ("2 classes",))
    lacking = dict.fromkeys(("ca_views", "correctness_logistic"), ("view_logits",))
    assert shown.skipped == for_two | lacking
    assert "ca_only" in shown.methods and "5 skipped" in repr(shown)


def test_shifted_rows_are_test_sets(sample, other):
    predictions, labels = other
    shift = np.repeat([0, 1], 150)
    both = Predictions(predictions.logits, shift=shift, shift_names=["blur:1"])
    shown = compare(sample, {"mine": (both, labels)}, methods=["ts"], metrics=["ece"])
    assert shown.datasets == ["mine", "blur:1"]


def test_figures_are_drawn_of_what_was_compared(comparison, tmp_path):
    ax = comparison.plot()
    drawn = [patch.get_width() for patch in ax.patches]
    assert drawn == pytest.approx([100 * row.value for row in comparison if row.metric == "ece"])
    assert len(comparison.plot("roc").lines) == 3
    assert comparison.plot("reliability", bins=5).get_title().endswith("\na")
    with pytest.raises(ValueError, match="metric must be one that was measured"):
        comparison.plot("values", metric="nll")
    comparison.to_json(tmp_path / "a.json")
    loaded = Comparison.load(tmp_path / "a.json")
    assert [patch.get_width() for patch in loaded.plot().patches] == drawn
    with pytest.raises(ValueError, match="read from a file does not have"):
        loaded.plot("roc")
    with pytest.raises(ValueError, match="kind .* is not known"):
        loaded.plot("nothing")
