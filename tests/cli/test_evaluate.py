"""`rightly evaluate`, run as a user would."""

import json

import pytest
import torch

import rightly
from rightly.cli import main
from tests.conftest import make


@pytest.fixture
def saved(files):
    return str(files / "views.safetensors")


def test_every_metric_is_printed_before_and_after(files, saved, tmp_path, capsys):
    table = tmp_path / "t.json"
    arguments = ["--resamples", "200", "--seed", "4", "--json", str(table)]
    assert main(["evaluate", saved, str(files / "ind.npz"), *arguments]) == 0
    printed = capsys.readouterr().out
    assert "change" in printed and "no detectable difference" in printed
    assert "before" in printed and all(name in printed for name in rightly.metrics.METRICS)
    document = json.loads(table.read_text())
    assert (document["format"], document["version"]) == ("rightly-results", 2)
    assert document["seed"] == 4 and document["resamples"] == 200
    values = {(row["calibrator"], row["metric"]): row["value"] for row in document["rows"]}
    predictions, labels = rightly.load(files / "ind.npz")
    correct = predictions.correct(labels)
    brier = rightly.metrics.brier(predictions.confidence.numpy(), correct.numpy())
    assert values["uncalibrated", "brier"] == pytest.approx(brier)


def test_without_intervals_there_are_values_alone(files, saved, capsys):
    assert main(["evaluate", saved, str(files / "ind.npz"), "--no-intervals"]) == 0
    printed = capsys.readouterr().out
    assert "after" in printed and "interval" not in printed


@pytest.fixture(scope="module")
def guaranteed(tmp_path_factory):
    """A calibrator with a guarantee, its test set, and a shifted one."""
    folder = tmp_path_factory.mktemp("guaranteed")
    cal, test = make_sure(0), make_sure(1)
    fitted = rightly.fit(*cal, "temperature_scaling", accuracy=0.9)
    fitted.save(folder / "c.safetensors")
    rightly.save(folder / "test.npz", *test)
    truth = test[1].clone()
    truth[::4] = 1 - truth[::4]  # a world in which far more is wrong
    rightly.save(folder / "other.npz", test[0], truth)
    return folder


def make_sure(seed):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(1000, 2, generator=generator) * 3
    wrong = (
        torch.rand(1000, generator=generator) < 0.3 * (-(logits[:, 0] - logits[:, 1]).abs()).exp()
    )
    classes = logits.argmax(1)
    return rightly.Predictions(logits), torch.where(wrong, 1 - classes, classes)


def test_the_decision_is_shown_with_its_guarantee_and_whether_it_is_met(guaranteed, capsys):
    def evaluate(name):
        arguments = [str(guaranteed / "c.safetensors"), str(guaranteed / name), "--no-intervals"]
        costs = ["--cost-error", "20", "--cost-review", "1", "--json", str(guaranteed / "t.json")]
        assert main(["evaluate", *arguments, *costs]) == 0
        return " ".join(capsys.readouterr().out.split())

    met = evaluate("test.npz")
    assert "Guaranteed at least 90 %, confidence level 95 %: met; the guarantee holds for" in met
    assert "On test: 1,000 samples cost" in met
    stored = json.loads((guaranteed / "t.json").read_text())["decisions"]["test"]
    assert stored["is_guaranteed"] and stored["verdict"] == "met"
    assert stored["accuracy"] >= 0.9 and stored["cost"]["low"] < stored["cost"]["high"]
    assert "95 %: not met; the guarantee holds" in evaluate("other.npz")


def test_adapting_voids_the_guarantee():
    fitted = rightly.fit(*make(n=1000), "temperature_scaling", accuracy=0.5)
    test = {"test": make(n=200, seed=1)}
    assert rightly.evaluate(fitted, test, metrics="ece").decisions["test"].decision.is_guaranteed
    outcome = rightly.evaluate(fitted, test, metrics="ece", adapt=True).decisions["test"]
    assert outcome.verdict is None and not outcome.to_dict()["is_guaranteed"]
    assert outcome.to_dict()["void"] == "adapted data"
    assert 0.5 < outcome.expected_accuracy <= 1
    (line,) = outcome.describe()
    assert "expected accuracy" in line and line.endswith("; guarantee void: adapted data.")


@pytest.mark.parametrize(
    ("requirements", "code", "words"),
    [
        (["accuracy_accepted.low>=0.85", "ece<=0.1", "coverage > 0.2"], 0, ""),
        (["ece.high<0.2", "brier<=0.01"], 3, "missed: brier on test is 0."),
        (["accuracy_accepted.low>=0.999"], 3, "missed: accuracy_accepted.low on test is 0.9"),
        (["tea<=1"], 2, "require must name something that is measured, got 'tea': one of accur"),
        (["ece=0.1"], 2, "require must be like 'ece<=0.03'"),
        (["ece.middle<=0.1"], 2, "require must be like 'ece<=0.03'"),
        (["ece<=nan"], 2, "require must be like"),
        (["cost<=10"], 2, "needs a threshold and costs to measure cost"),
    ],
)
def test_requirements_are_gates(guaranteed, capsys, requirements, code, words):
    arguments = [
        str(guaranteed / "c.safetensors"),
        str(guaranteed / "test.npz"),
        "--resamples",
        "100",
    ]
    gates = [word for text in requirements for word in ("--require", text)]
    assert main(["evaluate", *arguments, *gates]) == code
    printed = capsys.readouterr().err
    assert words in printed if words else "missed" not in printed


def test_requirements_on_what_was_not_measured_are_refused(guaranteed, saved, files, capsys):
    gate = ["--require", "ece.low<=1", "--no-intervals"]
    arguments = [str(guaranteed / "c.safetensors"), str(guaranteed / "test.npz")]
    assert main(["evaluate", *arguments, *gate]) == 2
    assert "require needs intervals for ece.low" in capsys.readouterr().err
    gate = ["--require", "accuracy_accepted>=0", "--no-intervals"]
    assert main(["evaluate", saved, str(files / "ind.npz"), *gate]) == 2
    assert "require needs a threshold to measure accuracy_accepted" in capsys.readouterr().err
