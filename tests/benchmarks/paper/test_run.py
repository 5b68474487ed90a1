"""The run that fills the long table: only what it lacks, with the values of the metrics."""

from collections import Counter

import pytest
from benchmarks.long_table import write_entries
from benchmarks.paper import run
from benchmarks.paper.gathering import Places
from benchmarks.paper.run import run_setup
from benchmarks.paper.setups import Classifier, Images, Setup

import rightly
from rightly.evaluation.measurement import fit_method
from rightly.metrics import METRICS
from tests.conftest import make

TOY = Setup(
    name="toy",
    about="",
    classifiers=(Classifier("one", "py:toy_model:small"), Classifier("two", "py:none:two")),
    calibration=Images("cal", "cal", "folders"),
    tests=(Images("test", "test", "folders", published="Gaussian Blur"),),
    published="cifar10",
    same_as_published=False,
    views=("view0", "view1", "view2"),
)


METHODS = ["uncalibrated", "temperature_scaling", "ca_only"]


@pytest.fixture
def places(tmp_path):
    """Stored predictions of one classifier, where a run looks for them."""
    folder = tmp_path / "data" / "one"
    folder.mkdir(parents=True)
    for seed, name in enumerate(("cal", "test")):
        predictions, labels = make(seed=seed)
        rightly.save(folder / f"{name}.npz", predictions, labels)
    return Places(tmp_path / "data", tmp_path / "predictions")


def test_a_run_adds_only_what_the_table_lacks(places, tmp_path, monkeypatch, capsys):
    out = tmp_path / "results.csv"
    first = run_setup(TOY, places, out, METHODS, ["one", "two"], seeds=2)
    assert "two on cal: no predictions at" in capsys.readouterr().err.replace("\n", " ")
    # ca_only draws at random and is fitted for both seeds, the others once.
    assert Counter(row.method for row in first if row.metric == "ece") == {
        "uncalibrated": 1,
        "temperature_scaling": 1,
        "ca_only": 2,
    }
    assert {row.metric for row in first} == {*METRICS, "accuracy", "mean_confidence"}
    write_entries(out, [row for row in first if row.method != "ca_only"])
    fitted = []

    def fit_and_count(name, *data, seed):
        fitted.append((name, seed))
        return fit_method(name, *data, seed=seed)

    monkeypatch.setattr(run, "fit_method", fit_and_count)
    again = run_setup(TOY, places, out, METHODS, ["one"], seeds=2)
    assert fitted == [("ca_only", 0), ("ca_only", 1)]
    values = {row.key: row.value for row in again}
    for row in first:
        assert values[row.key] == pytest.approx(row.value, rel=1e-6, nan_ok=True)
    run_setup(TOY, places, out, METHODS, ["one"], seeds=2)
    assert len(fitted) == 2


def test_values_in_the_table_are_those_of_the_metrics(places, tmp_path):
    rows = run_setup(TOY, places, tmp_path / "r.csv", ["temperature_scaling"], ["one"])
    value = {row.metric: row.value for row in rows}
    fitted = rightly.calibrator("temperature_scaling").fit(*make())
    test, truth = make(seed=1)
    confidence, correct = fitted.confidence(test).numpy(), test.correct(truth).numpy()
    assert value["brier"] == pytest.approx(((confidence - correct) ** 2).mean(), rel=1e-6)
    assert value["mean_confidence"] == pytest.approx(confidence.mean(), rel=1e-6)
    assert value["accuracy"] == pytest.approx(correct.mean(), rel=1e-6)
    assert {row.n for row in rows} == {300}


def test_methods_without_their_inputs_are_skipped_with_a_message(places, tmp_path, capsys):
    for name in ("cal", "test"):
        predictions, labels = make()
        rightly.save(
            places.data / "one" / f"{name}.npz", rightly.Predictions(predictions.logits), labels
        )
    rows = run_setup(TOY, places, tmp_path / "r.csv", ["spline", "ca_views"], ["one"])
    assert {row.method for row in rows} == {"spline"}
    assert "skipped: ca_views for one needs view_logits" in capsys.readouterr().err
