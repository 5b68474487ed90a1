"""A metric and a calibrator are one entry each: registered at run time, they are everywhere."""

import io

import numpy as np
import pytest
from rich.console import Console

from rightly.calibrators import CALIBRATORS, Method
from rightly.calibrators.base import Calibrator
from rightly.evaluation.benchmark import benchmark
from rightly.evaluation.compare import Comparison, compare
from rightly.evaluation.evaluate import evaluate
from rightly.metrics import METRICS, Metric
from rightly.registry import register
from rightly.reporting import report, terminal
from rightly.reporting.method_list import render_methods
from tests.conftest import make


def measure_log_odds(confidence, correct):
    """Mean log-odds of confidence where it is wrong: larger than 1, so that no range fits."""
    c = np.clip(confidence[~correct], 1e-6, 1 - 1e-6)
    return float(np.log(c / (1 - c)).mean()) + 5


class Halved(Calibrator):
    """Half of the classifier's own confidence."""

    def learn(self, predictions, labels):
        self.store(factor=predictions.logits.new_full((1,), 0.5))

    def compute_confidence(self, predictions):
        return self.factor * predictions.confidence


@pytest.fixture
def registered():
    register(
        Metric(
            "log_odds",
            measure_log_odds,
            unit="nats",
            title="Log-odds when wrong",
            meaning="how sure it is of its mistakes",
        )
    )
    register(Method("halved", Halved, "own", "nobody", aliases=("half",), note="halves"))
    yield
    METRICS.remove("log_odds")
    CALIBRATORS.remove("halved")


def print_wide(render, *arguments):
    console = Console(width=80, file=io.StringIO(), record=True)
    terminal.show(console, render, *arguments)
    return console.export_text()


@pytest.mark.usefixtures("registered")
class TestRegistered:
    def test_both_are_compared_with_intervals_and_tests(self, tmp_path):
        tests = {"a": make(seed=1)}
        comparison = compare(
            make(), tests, metrics=["ece", "log_odds"], intervals=True, resamples=1000
        )
        assert "halved" in comparison.methods  # it is in the group own
        rows = {row.calibrator: row for row in comparison if row.metric == "log_odds"}
        predictions, labels = tests["a"]
        confidence = 0.5 * predictions.confidence.numpy()
        expected = measure_log_odds(confidence, predictions.correct(labels).numpy())
        halved = rows["halved"]
        assert halved.value == pytest.approx(expected)
        # Its range is unknown, so that nothing is clipped.
        assert 1 < halved.low < halved.value < halved.high
        assert halved.p_holm <= 0.05
        text = print_wide(terminal.render_comparison, comparison)
        assert "log_odds ↓" in text and "halved" in text
        assert f"{halved.value:.3f} ▲" in text and "except Log-odds when wrong" in text
        assert r"log\_odds" in comparison.to_latex() and "halved" in comparison._repr_html_()
        comparison.to_json(tmp_path / "c.json")
        assert Comparison.load(tmp_path / "c.json").metrics == ["ece", "log_odds"]
        assert "log_odds" in benchmark(tmp_path).to_csv()
        assert comparison.plot("values", metric="log_odds").get_xlabel().startswith("Log-odds")

    def test_the_metric_is_evaluated_without_asking(self):
        fitted = CALIBRATORS["half"].build().fit(*make())
        evaluation = evaluate(fitted, {"a": make(seed=1)})
        assert evaluation.sets["a"].after["log_odds"].value < 5
        assert "log_odds ↓" in print_wide(terminal.render_evaluation, evaluation)

    def test_both_are_in_the_report(self):
        page = report(
            "half",
            {"a": make(seed=1)},
            cal=make(),
            metrics=["brier", "log_odds"],
            resamples=200,
        ).html
        assert "halved, fitted on 300 samples" in page
        assert "Log-odds when wrong ↓" in page and "how sure it is of its mistakes" in page

    def test_the_calibrator_is_listed(self):
        text = print_wide(render_methods, CALIBRATORS.values())
        assert "halved (half)" in text and "halves" in text


def test_what_was_taken_back_is_unknown_again():
    with pytest.raises(ValueError, match="metric .* is not known"):
        compare(make(), {"a": make(seed=1)}, methods=["ts"], metrics=["log_odds"])
