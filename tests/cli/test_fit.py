"""`rightly fit`, run as a user would."""

import csv
import re

import pytest

import rightly
from rightly.cli import main
from tests.conftest import make


@pytest.fixture
def cal(tmp_path):
    rightly.save(tmp_path / "cal.npz", *make(n=400))
    return str(tmp_path / "cal.npz")


@pytest.mark.filterwarnings("ignore:accuracy .* cannot be guaranteed")
def test_it_stores_the_threshold_that_reaches_an_accuracy(cal, tmp_path, capsys):
    predictions, labels = make(n=400)
    out = str(tmp_path / "c.safetensors")
    arguments = ["--method", "temperature_scaling", "--accuracy", "0.6", "--out", out]
    assert main(["fit", cal, *arguments]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert "accepts confidence from" in printed[-3] and "like the calibration data" in printed[-2]
    assert re.fullmatch(
        r"of 1,000 samples about \d+ accepted, at most 40 % of them wrong "
        r"\(guaranteed, confidence level 95 %\)",
        printed[-1],
    )
    loaded = rightly.load_calibrator(out)
    accepted = loaded.accept(predictions)
    assert predictions.correct(labels)[accepted].double().mean() >= 0.6
    assert main(["fit", cal, *arguments[:3], "0.98", "--out", out]) == 3  # saved all the same
    assert rightly.load_calibrator(out).threshold is None
    assert "no threshold: not with these 200 samples" in capsys.readouterr().out
    assert main(["fit", cal, *arguments, "--crossfit"]) == 0
    assert "approximate: violation rate" in capsys.readouterr().out
    assert main(["fit", cal, *arguments[:2], "--cost-error", "5", "--out", out]) == 2
    assert "cost_error and cost_review must come together" in capsys.readouterr().err
    costs = ["--cost-error", "5", "--cost-review", "1", "--out", out]
    assert main(["fit", cal, *arguments[:2], *costs]) == 0
    assert "accepted, at a cost of" in capsys.readouterr().out
    assert main(["fit", cal, *arguments[:2], "--out", out]) == 0
    assert rightly.load_calibrator(out).threshold is None
    assert main(["fit", cal, *arguments, "--threshold", "0.5"]) == 2
    assert "threshold and accuracy exclude each other" in capsys.readouterr().err


def test_it_takes_a_budget(files, tmp_path, capsys):
    out = str(tmp_path / "c.safetensors")
    arguments = ["--method", "ca_views", "--budget", "1.5", "--out", out]
    assert main(["fit", str(files / "cal.npz"), *arguments]) == 0
    assert rightly.load_calibrator(out).record["passes"] <= 1.6


def test_it_says_when_a_threshold_accepts_nothing(cal, tmp_path, capsys):
    out = ["--threshold", "1.0", "--out", str(tmp_path / "c.safetensors")]
    assert main(["fit", cal, "--method", "temperature_scaling", *out]) == 0
    assert "from 1.0000: none of the calibration samples" in capsys.readouterr().out


def test_views_can_be_chosen(files, tmp_path, capsys):
    saved = str(tmp_path / "two.safetensors")
    arguments = ["--views", "view2,view0", "--out", saved]
    assert main(["fit", str(files / "cal.npz"), *arguments]) == 0
    assert "3.00 forward passes per image, over the views view2, view0" in capsys.readouterr().out
    assert rightly.load_calibrator(saved).view_names == ("view2", "view0")
    # A calibrator takes the views it knows from files that have more.
    assert main(["evaluate", saved, str(files / "ind.npz"), "--no-intervals"]) == 0


def test_auto_prints_what_it_compared(files, tmp_path, capsys):
    out = str(tmp_path / "a.safetensors")
    arguments = ["--method", "auto", "--set", "expected_shift=0.2", "--out", out]
    assert main(["fit", str(files / "cal.npz"), *arguments]) == 0
    printed = capsys.readouterr().out
    assert "from the simplest on" in printed and rightly.load_calibrator(out).method in printed


@pytest.mark.parametrize("name", ["expected_shift", "neighbours"])
def test_arguments_of_one_method_are_refused_for_others(cal, capsys, name):
    arguments = ["--method", "temperature_scaling", "--set", f"{name}=1", "--out", "a.safetensors"]
    assert main(["fit", cal, *arguments]) == 2
    assert name in capsys.readouterr().err


def test_the_seed_is_of_the_fit(files, tmp_path):
    predictions, labels = make(n=200)
    out, cal = str(tmp_path / "c.safetensors"), str(files / "cal.npz")
    assert main(["fit", cal, "--method", "ca_views", "--seed", "3", "--out", out]) == 0
    again = rightly.calibrator("ca_views", seed=3).fit(predictions, labels)
    saved = rightly.load_calibrator(out)
    assert saved.confidence(predictions).equal(again.confidence(predictions))
    other = rightly.calibrator("ca_views", seed=0).fit(predictions, labels)
    assert not saved.confidence(predictions).equal(other.confidence(predictions))


def test_a_name_that_is_no_calibrators_is_refused_before_the_fit(tmp_path, capsys):
    assert main(["fit", str(tmp_path / "no.npz"), "--out", str(tmp_path / "c.pt")]) == 2
    assert "out must be a calibrator's file, which ends in .safetensors, got c.pt" in (
        capsys.readouterr().err
    )


def test_a_fit_that_ends_in_one_temperature_is_noted(files, tmp_path, capsys):
    arguments = ["fit", str(files / "cal.npz"), "--method", "ca_views_released"]
    notes = []
    for seed in range(8):  # until both have been seen
        out = tmp_path / f"{seed}.safetensors"
        assert main([*arguments, "--seed", str(seed), "--out", str(out)]) == 0
        is_noted = "note: one temperature for all samples" in capsys.readouterr().out
        assert is_noted == bool(rightly.load_calibrator(out).fit_note)
        notes.append(is_noted)
        if len(set(notes)) == 2:
            return
    raise AssertionError(f"all fits are alike: {notes}")


def test_sets_go_from_fit_to_apply_and_evaluate(cal, tmp_path, capsys):
    out, scores = str(tmp_path / "c.safetensors"), tmp_path / "scores.csv"
    arguments = ["--coverage", "0.8", "--set-score", "aps", "--class-conditional"]
    method = ["--method", "temperature_scaling"]
    assert main(["fit", cal, *method, *arguments, "--out", out]) == 0
    printed = capsys.readouterr().out
    assert "(aps) hold the true class of 80 % of images like the 200 held out, in each" in printed
    test, labels = make(n=150, seed=1)
    rightly.save(tmp_path / "test.npz", test, labels)
    assert main(["predict", out, str(tmp_path / "test.npz"), "--out", str(scores)]) == 0
    with scores.open() as file:
        written = [row["prediction_set"].split() for row in csv.DictReader(file)]
    members = rightly.load_calibrator(out).prediction_sets(test)
    assert [sorted(map(int, row)) for row in written] == [
        row.nonzero().squeeze(-1).tolist() for row in members
    ]
    assert written[0][0] == str(int(test.classes[0]))  # the likeliest first
    capsys.readouterr()
    assert main(["evaluate", out, str(tmp_path / "test.npz"), "--no-intervals"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    covered = members.gather(1, labels[:, None]).double().mean()
    assert f"hold the true class of {100 * float(covered):.1f} % (95 % interval" in shown
