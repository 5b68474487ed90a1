"""compare and evaluate with adapting: each test set is one unlabelled batch, or many."""

import json

import numpy as np
import pytest
import torch

import rightly
from rightly.calibrators.shift_adaptation import ShiftError
from rightly.cli import main
from rightly.demo_data import load_demo_set
from rightly.evaluation.compare import Comparison, compare
from rightly.evaluation.evaluate import evaluate
from rightly.metrics import brier
from tests.conftest import make

BATCH = 700  # of 2,500 rows: the last batch is a smaller one


@pytest.fixture(scope="module")
def cal():
    return load_demo_set("cal")


@pytest.fixture(scope="module")
def haze():
    return load_demo_set("haze")


@pytest.fixture(scope="module")
def fitted(cal):
    return rightly.calibrator("temperature_scaling").fit(*cal).learn_shift(*cal)


def measure_brier(fitted, predictions, labels, batch):
    parts = [predictions[i : i + batch] for i in range(0, len(predictions), batch)]
    confidence = torch.cat([fitted.adapt(part).confidence(part) for part in parts])
    return brier(confidence.numpy(), (predictions.classes == labels).numpy())


@pytest.mark.filterwarnings("ignore:the shift estimate of this batch")
@pytest.mark.parametrize("adapt", [True, BATCH])
def test_every_test_set_is_adapted_to_as_one_batch_or_many_in_row_order(cal, haze, fitted, adapt):
    expected = measure_brier(fitted, *haze, len(haze[0]) if adapt is True else adapt)
    shown = compare(cal, {"haze": haze}, methods=["ts"], metrics="brier", adapt=adapt)
    assert shown[0].value == pytest.approx(expected, abs=1e-12)
    evaluation = evaluate(fitted, {"haze": haze}, metrics="brier", adapt=adapt)
    assert evaluation.sets["haze"].after["brier"].value == pytest.approx(expected, abs=1e-12)
    plain = compare(cal, {"haze": haze}, methods=["ts"], metrics=["brier"])
    assert expected < plain[0].value and not plain.adapt
    assert "Adapted" not in plain.to_markdown()
    to = "each test set" if adapt is True else "each 700 rows of a test set in their order"
    for table in (shown, evaluation):
        assert f"Adapted to {to}, without labels." in table.to_markdown()
        assert json.loads(table.to_json())["adapt"] == adapt


def test_what_was_adapted_to_is_read_back_and_drawn(cal, haze, fitted, tmp_path):
    shown = compare(cal, {"haze": haze}, methods=["ts"], metrics=["nll"], adapt=BATCH)
    shown.to_json(tmp_path / "a.json")
    again = Comparison.load(tmp_path / "a.json")
    assert again.adapt == BATCH
    plain = compare(cal, {"haze": haze}, methods=["ts"], metrics=["nll"])
    for kind in ("temperature", "ks"):
        adapted, unadapted = (
            [line.get_ydata() for line in one.plot(kind).lines] for one in (shown, plain)
        )
        assert not all(map(np.array_equal, adapted, unadapted))


def test_methods_that_cannot_be_adapted_are_left_out_with_their_reason():
    options = {"metrics": ["ece"], "intervals": True, "resamples": 200, "adapt": True}
    methods = ["proximity", "spline", "uncalibrated"]  # the first would be the reference
    tests = {"a": make(seed=1)}
    shown = compare(make(), tests, methods=methods, **options)
    assert shown.methods == list(shown.calibrators) == ["spline", "uncalibrated"]
    assert (shown.resamples, shown.reference) == (200, "spline")
    (note,) = (note for note in shown.notes if note.startswith("Left out: "))
    assert "proximity cannot be adapted: the calibration data have no shifted rows" in note
    assert note in shown.lay_out().notes
    with pytest.raises(ShiftError, match="proximity cannot be adapted"):
        compare(make(), tests, methods=["proximity"], adapt=True)


def test_evaluate_refuses_what_cannot_be_adapted():
    fitted = rightly.calibrator("proximity").fit(*make())
    with pytest.raises(ShiftError, match="proximity cannot be adapted"):
        evaluate(fitted, {"a": make(seed=1)}, metrics=["ece"], adapt=True)


def test_what_is_no_batch_is_refused(fitted, sample, other):
    for ask in (
        lambda **options: compare(sample, {"a": other}, methods=["ts"], **options),
        lambda **options: evaluate(fitted, {"a": other}, **options),
    ):
        for adapt in (0, -3):
            with pytest.raises(ValueError, match=f"adapt must be False, True .* got {adapt}: pass"):
                ask(adapt=adapt)


def test_both_commands_adapt(tmp_path, capsys, fitted, cal, haze):
    rightly.save(tmp_path / "cal.npz", *cal)
    rightly.save(tmp_path / "haze.npz", *haze)
    fitted.save(tmp_path / "c.safetensors")
    compared = ["compare", str(tmp_path / "cal.npz"), str(tmp_path / "haze.npz")]
    compared += ["--methods", "ts", "--metrics", "brier"]
    evaluated = ["evaluate", str(tmp_path / "c.safetensors"), str(tmp_path / "haze.npz")]
    for command in (compared, evaluated):
        asked = [*command, "--no-intervals", "--json", str(tmp_path / "out.json")]
        assert main([*asked, "--adapt", "700"]) == 0
        assert "Adapted to each 700 rows of a test set" in capsys.readouterr().out
        assert json.loads((tmp_path / "out.json").read_text())["adapt"] == 700
        assert main([*asked, "--adapt", "some"]) == 2
        assert "adapt must be a number of rows from 1, or all" in capsys.readouterr().err
