"""What measures Rightly's own calibrator against its targets."""

import sys

import numpy as np
import pytest
import torch
from benchmarks.long_table import read_entries
from benchmarks.own import evaluate_own

import rightly
from rightly import Predictions
from rightly.evaluation.measurement import TABLE_METRICS, measure
from tests.conftest import make

RESEMBLING = {"gaussian_blur:4": 1, "motion_blur:4": 2, "jpeg:4": 3}


@pytest.fixture
def stored(tmp_path):
    """One classifier with three sets and shift augmentation, where evaluate_own looks for them."""
    for seed, name in enumerate(("cal", "ind", "gaussian_blur")):
        (tmp_path / "one").mkdir(exist_ok=True)
        rightly.save(tmp_path / "one" / f"{name}.npz", *make(seed=seed))
    parts, truth = [], []
    for number in RESEMBLING.values():
        predictions, labels = make(n=100, seed=10 + number)
        parts.append(
            Predictions(
                predictions.logits,
                predictions.view_logits,
                view_names=predictions.view_names,
                shift=np.full(100, number),
                shift_names=tuple(RESEMBLING),
                image=np.arange(100),
            )
        )
        truth.append(labels)
    (tmp_path / "shift_augmentation").mkdir()
    rightly.save(
        tmp_path / "shift_augmentation" / "one.npz", rightly.concatenate(parts), torch.cat(truth)
    )
    return tmp_path


@pytest.mark.parametrize(("options", "left"), [([], 2), (["--strict"], 1)])
def test_no_shift_is_tested_after_a_fit_on_it(stored, monkeypatch, capsys, options, left):
    arguments = [str(stored), "--classifiers", "all", "--shifts", "all"]
    arguments += ["--shift-augmentation", str(stored / "shift_augmentation"), *options]
    monkeypatch.setattr(sys, "argv", ["evaluate_own", *arguments])
    evaluate_own.main()
    printed = capsys.readouterr().out
    assert "one: correctness_logistic fitted" in printed and "ind: fitted on 3 shifts" in printed
    assert f"gaussian_blur: fitted on {left} shifts" in printed
    assert "correctness_logistic, shift augmentation" in printed


def test_where_the_shift_is_known_each_half_is_measured_by_the_other():
    predictions, labels = make(n=200)
    values = evaluate_own.measure_oracle(predictions, labels)
    even = torch.arange(200) % 2 == 0
    squares = []
    for half in (even, ~even):
        fitted = rightly.calibrator("correctness_logistic", expected_shift=0.0)
        fitted.fit(predictions[half], labels[half])
        correct = predictions[~half].correct(labels[~half]).double()
        squares.append(float((fitted.confidence(predictions[~half]) - correct).square().mean()))
    assert values["brier"] == pytest.approx(np.mean(squares))


def test_ratios_are_to_temperature_scaling(stored, monkeypatch, capsys):
    arguments = [str(stored), "--classifiers", "one", "--shifts", "gaussian_blur"]
    monkeypatch.setattr(sys, "argv", ["evaluate_own", *arguments])
    evaluate_own.main()
    cal, test = (rightly.load(stored / "one" / f"{name}.npz") for name in ("cal", "gaussian_blur"))
    brier = [
        measure(rightly.calibrator(name).fit(*cal), *test, ["brier"])["brier"]
        for name in ("correctness_logistic", "temperature_scaling")
    ]
    assert f"brier {brier[0] / brier[1]:.3f} (0.9" in capsys.readouterr().out


def test_values_are_kept_in_the_long_table_and_not_fitted_again(stored, monkeypatch, capsys):
    out = stored / "results.csv"
    arguments = [str(stored), "--classifiers", "one", "--shifts", "all", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["evaluate_own", *arguments])
    evaluate_own.main()
    first = capsys.readouterr().out
    entries = read_entries(out)
    assert len(entries) == 2 * 2 * len(TABLE_METRICS) and {e.n for e in entries} == {300}
    evaluate_own.main()
    again = capsys.readouterr().out
    assert "fitted in" in first and "fitted in" not in again
    tables = (first[first.index("in %") :].strip(), again.strip())
    assert tables[0].replace("-0.000", "0.000") == tables[1].replace("-0.000", "0.000")
    # Another setting is another fit, kept beside the first.
    monkeypatch.setattr(sys, "argv", ["evaluate_own", *arguments, "--expected-shift", "0"])
    evaluate_own.main()
    assert "one: correctness_logistic fitted" in capsys.readouterr().out
    assert len(read_entries(out)) == 2 * len(entries)
