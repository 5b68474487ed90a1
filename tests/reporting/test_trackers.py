"""Results in trackers: MLflow's local store and W&B's offline run, where these are installed."""

import json
import sys

import pytest

import rightly
from rightly.demo_data import load_demo_set
from rightly.reporting import trackers
from rightly.reporting.trackers import _name_values

METHODS = ["uncalibrated", "temperature_scaling"]


def compare(**options):
    predictions, labels = load_demo_set("cal")
    half = len(labels) // 2
    cal, test = (predictions[:half], labels[:half]), (predictions[half:], labels[half:])
    tests = {"test (2,500)": test}
    return rightly.compare(
        cal, tests, methods=METHODS, metrics=["brier"], intervals=True, resamples=200, **options
    )


@pytest.fixture(scope="module")
def comparison():
    return compare()


def test_an_unknown_tracker_is_refused_before_anything_is_fitted():
    with pytest.raises(ValueError, match="track 'mlfow' is not known: did you mean mlflow"):
        rightly.compare("no such file", {"test": "nor this"}, track="mlfow")


def test_a_missing_tracker_is_answered_by_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ImportError, match="pip install mlflow"):
        rightly.compare("no such file", {"test": "nor this"}, track="mlflow")


def test_values_have_names_that_trackers_take(comparison):
    named = _name_values(comparison)
    row = next(row for row in comparison if row.calibrator == "temperature_scaling")
    name = "test _2_500_/temperature_scaling/brier"
    assert named[name] == row.value
    assert named[f"{name}.low"] == row.low and named[f"{name}.high"] == row.high
    assert named["test _2_500_/accuracy"] == comparison.accuracy["test (2,500)"]


@pytest.mark.parametrize("has_run", [False, True])
def test_mlflow_has_values_settings_and_the_table(tmp_path, monkeypatch, has_run):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    # Since its third version MLflow asks for this before it writes plain files.
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setattr(trackers, "MLFLOW_AT_ONCE", 2)
    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    if has_run:
        mlflow.start_run(run_name="theirs")
    comparison = compare(track="mlflow")
    assert (mlflow.active_run() is not None) == has_run  # a run of theirs goes on
    if has_run:
        mlflow.end_run()
    (run,) = mlflow.MlflowClient().search_runs(["0"])
    assert run.info.status == "FINISHED"
    assert run.info.run_name == ("theirs" if has_run else "rightly compare")
    values = run.data.metrics
    assert values == _name_values(comparison) and len(values) == 7
    assert run.data.params["rightly.methods"] == ", ".join(METHODS)
    table = mlflow.artifacts.load_text(f"{run.info.artifact_uri}/rightly/comparison.json")
    assert json.loads(table) == json.loads(comparison.to_json())


def test_wandb_has_values_and_the_table(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    with wandb.init(project="theirs", dir=tmp_path) as run:
        comparison = compare(track="wandb")
        assert run.summary["test _2_500_/temperature_scaling/brier"] == comparison[1].value
        assert run.config["rightly"]["methods"] == ", ".join(METHODS)
        assert "rightly/comparison" in dict(run.summary)
    assert wandb.run is None
