"""evaluate: one calibrator, before and after, in Python."""

import json

import numpy as np
import pytest
import torch

import rightly
from rightly.evaluation.evaluate import evaluate
from rightly.evaluation.measurement import measure
from rightly.metrics import METRICS
from tests.conftest import make


@pytest.fixture(scope="module")
def fitted():
    return rightly.calibrator("ca_views").fit(*make())


def test_a_saved_a_fitted_and_a_plain_calibrator_give_the_same(fitted, other, tmp_path):
    fitted.save(tmp_path / "c.safetensors")
    loaded = rightly.load_calibrator(tmp_path / "c.safetensors")
    expected = measure(fitted, *other)
    for one in (fitted, loaded, tmp_path / "c.safetensors", str(tmp_path / "c.safetensors")):
        evaluation = evaluate(one, {"mine": other}, intervals=False)
        after = {name: row.value for name, row in evaluation.sets["mine"].after.items()}
        assert after == pytest.approx(expected, nan_ok=True)
    assert len(evaluation) == 3 * len(METRICS)
    assert repr(evaluation) == f"<Evaluation: ca_views on 1 test set, {len(METRICS)} metrics>"


def test_test_sets_may_have_more_views_than_it_was_fitted_on(sample, other):
    fitted = rightly.calibrator("ca_views").fit(sample[0].with_views(["view1"]), sample[1])
    evaluation = evaluate(fitted, {"mine": other}, metrics=["brier"])
    assert evaluation.tests["mine"][0].view_names == ("view1",)


def test_intervals_and_accuracy_are_told(fitted, other):
    evaluation = evaluate(fitted, {"a": other}, metrics=["ece", "nll"], seed=2)
    assert (evaluation.resamples, evaluation.seed) == (1000, 2)
    accuracy = float(other[0].correct(other[1]).double().mean())
    assert evaluation.accuracy["a"] == pytest.approx(accuracy)
    text = evaluation.to_markdown()
    assert f"accuracy {100 * accuracy:.1f} %" in text and "1000 resamples, seed 2" in text
    assert "in %, except NLL" in text
    content = json.loads(evaluation.to_json())
    assert content["kind"] == "evaluation" and content["samples"] == {"a": 300}
    assert "with intervals" in repr(evaluation)


def test_figures_show_what_was_before(fitted, other):
    evaluation = evaluate(fitted, {"a": other}, metrics=["brier"])
    titles = [ax.get_title() for ax in evaluation.plot().figure.axes]
    assert titles[:2] == ["uncalibrated\na", "ca_views\na"]
    values = [patch.get_width() for patch in evaluation.plot("values").patches]
    results = evaluation.sets["a"]
    np.testing.assert_allclose(
        values, [100 * results.before["brier"].value, 100 * results.after["brier"].value]
    )


def test_what_is_no_calibrator_is_refused(other):
    with pytest.raises(RuntimeError, match="not fitted"):
        evaluate(rightly.calibrator("spline"), {"a": other})
    with pytest.raises(FileNotFoundError, match="no calibrator file"):
        evaluate("nowhere.safetensors", {"a": other})


def test_a_table_and_a_report_say_where_accuracy_changed(tmp_path):
    predictions, labels = make(n=600)
    moved = torch.where(
        torch.rand(600, generator=torch.Generator().manual_seed(0)) < 0.4, 0, labels
    )
    fitted = rightly.calibrator("vector_scaling").fit(predictions, moved)
    tests = {"mine": (predictions, moved)}
    before = float(predictions.correct(moved).double().mean())
    after = float((fitted.classes(predictions) == moved).double().mean())
    said = (
        f"vector_scaling predicts other classes: accuracy {100 * before:.2f} to {100 * after:.2f}"
    )
    assert before < after and said in rightly.evaluate(fitted, tests).to_markdown().replace(
        "\\", ""
    )
    page = rightly.report(fitted, tests, resamples=200).html
    assert said in page
    compared = rightly.compare(
        (predictions, moved),
        tests,
        methods=["ts", "vector_scaling"],
        metrics=["brier"],
        allow_overlap=True,
    )
    for name in "ab":
        compared.to_json(tmp_path / f"{name}.json")
    ranked = rightly.benchmark(tmp_path)
    assert f"With a: {said}" in ranked.to_markdown().replace("\\", "")
    assert len(ranked.notes) == 2
    kept = rightly.calibrator("ts").fit(predictions, moved)
    assert "other classes" not in rightly.evaluate(kept, tests).to_markdown()
