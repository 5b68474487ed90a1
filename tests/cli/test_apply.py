"""`rightly predict` with a calibrator; folders are in tests/deployment/test_batch_inference.py."""

import csv

import numpy as np
import torch

import rightly
from rightly.cli import main
from rightly.deployment.outputs import describe_row
from rightly.deployment.stages import CalibrationStage
from rightly.monitoring.logs import SCORES, compute_scores
from tests.conftest import make


def test_it_writes_what_the_calibrator_gives(files, tmp_path):
    saved, scores = str(tmp_path / "cal.safetensors"), tmp_path / "scores.csv"
    assert main(["fit", str(files / "cal.npz"), "--method", "ca_views", "--out", saved]) == 0
    assert main(["predict", saved, str(files / "ind.npz"), "--out", str(scores)]) == 0
    with scores.open() as file:
        rows = list(csv.DictReader(file))
    predictions, _ = rightly.load(files / "ind.npz")
    fitted = rightly.load_calibrator(saved)
    names = ["index", "predicted_class", "confidence", "raw_confidence", "temperature"]
    assert list(rows[0]) == [*names, "shift_score", "unadapted_confidence", "agreement"]
    columns = {key: np.array([float(row[key]) for row in rows]) for key in rows[0]}
    np.testing.assert_array_equal(columns["index"], np.arange(200))
    np.testing.assert_array_equal(columns["predicted_class"], predictions.classes)
    np.testing.assert_allclose(columns["confidence"], fitted.confidence(predictions))
    np.testing.assert_allclose(columns["raw_confidence"], predictions.confidence)
    np.testing.assert_allclose(columns["temperature"], fitted.temperature(predictions))
    same = predictions.view_logits.argmax(-1) == predictions.classes[:, None]
    np.testing.assert_allclose(columns["agreement"], same.double().mean(1))
    shrunk = fitted.shift.shrink(columns["shift_score"].mean(), 200).value
    adapted = fitted.adapt(predictions).shift
    np.testing.assert_allclose(shrunk, float(adapted.estimate))


def test_scores_of_contexts_are_those_of_the_unadapted_calibrator(files):
    predictions, labels = rightly.load(files / "cal.npz")
    fitted = rightly.fit(predictions, labels, "temperature_scaling")
    shown, _ = rightly.load(files / "ind.npz")
    adapted = fitted.adapt(shown)
    plain, moved = compute_scores(fitted, shown), compute_scores(adapted, shown)
    np.testing.assert_array_equal(plain["shift_score"], moved["shift_score"])
    assert (plain["confidence"] != moved["confidence"]).any()
    np.testing.assert_array_equal(moved["unadapted_confidence"], plain["confidence"])
    assert "agreement" not in plain  # temperature scaling looks at no view


def test_exported_models_tell_what_apply_writes(files):
    """One log is as good as another: `predict --jsonl` and the server write `describe_row`."""
    predictions, labels = rightly.load(files / "cal.npz")
    fitted = rightly.fit(predictions, labels, "ca_views", threshold=0.5)
    fitted = fitted.decide(*rightly.load(files / "ind.npz"), coverage=0.9, set_score="aps")
    columns = compute_scores(fitted, predictions[:3])
    stage = CalibrationStage(fitted, predictions.view_names, outputs_shift_score=True)
    stacked = torch.cat([predictions.logits[:, None], predictions.view_logits], 1)[:3]
    with torch.no_grad():
        outputs = stage(stacked.transpose(0, 1).flatten(0, 1)).to_numpy()
    rows = [describe_row(row) for row in outputs.rows()]
    assert set(columns) == set(SCORES) == set(rows[0]) - {"class"} | {"predicted_class"}
    sets = columns.pop("prediction_set")
    assert [" ".join(map(str, row["prediction_set"])) for row in rows] == sets.tolist()
    for name, values in columns.items():
        written = [row["class" if name == "predicted_class" else name] for row in rows]
        np.testing.assert_allclose(written, values, rtol=1e-4, atol=1e-5)


def test_class_names_are_written_where_they_are_known(tmp_path):
    predictions, labels = make(n=50)
    named = rightly.Predictions(predictions.logits, class_names=[f"[{i}]" for i in range(10)])
    rightly.save(tmp_path / "named.npz", named, labels)
    saved, scores = str(tmp_path / "a.safetensors"), tmp_path / "a.csv"
    main(["fit", str(tmp_path / "named.npz"), "--method", "spline", "--out", saved])
    main(["predict", saved, str(tmp_path / "named.npz"), "--out", str(scores)])
    with scores.open() as file:
        assert next(csv.DictReader(file))["class_name"] == f"[{int(named.classes[0])}]"


def test_a_cluster_is_for_folders(files, capsys):
    arguments = ["predict", "a", str(files / "ind.npz"), "--out", "b.csv", "--engine", "ray"]
    assert main(arguments) == 2
    message = capsys.readouterr().err
    assert "engine ray is for folders" in message or "rightly[ray]" in message
