"""What measures Rightly's own calibrator against its bars, and what collects for it."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import own
import rightly
import unseen
from rightly import Predictions
from rightly.evaluation.measurement import measure
from rightly.transforms.shifts import SHIFTS
from rightly.transforms.views import VIEWS
from tests.conftest import make

RESEMBLING = {"gaussian_blur:4": 1, "motion_blur:4": 2, "jpeg:4": 3}


@pytest.fixture
def stored(tmp_path):
    """One classifier with three sets and rehearsal rows, as own.py finds them."""
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
            )
        )
        truth.append(labels)
    (tmp_path / "rehearsal").mkdir()
    rightly.save(tmp_path / "rehearsal" / "one.npz", rightly.concatenate(parts), torch.cat(truth))
    return tmp_path


@pytest.mark.parametrize(("options", "left"), [([], 2), (["--strict"], 1)])
def test_no_shift_is_judged_after_rehearsing_it(stored, monkeypatch, capsys, options, left):
    arguments = [str(stored), "--classifiers", "all", "--shifts", "all"]
    arguments += ["--rehearsal", str(stored / "rehearsal"), *options]
    monkeypatch.setattr(sys, "argv", ["own.py", *arguments])
    own.main()
    printed = capsys.readouterr().out
    assert "one: rightly fitted" in printed and "ind: rehearsed 3 shifts" in printed
    assert f"gaussian_blur: rehearsed {left} shifts" in printed
    assert "rightly, rehearsed" in printed


def test_where_the_shift_is_known_each_half_is_measured_by_the_other():
    shown, truth = make(n=200)
    told = own._known((shown, truth))
    even = torch.arange(200) % 2 == 0
    squares = []
    for half in (even, ~even):
        fitted = rightly.calibrator("rightly", expected_shift=0.0).fit(shown[half], truth[half])
        correct = shown[~half].correct(truth[~half]).double()
        squares.append(float((fitted.confidence(shown[~half]) - correct).square().mean()))
    assert told["brier"] == pytest.approx(np.mean(squares))


def test_ratios_are_to_temperature_scaling(stored, monkeypatch, capsys):
    arguments = [str(stored), "--classifiers", "one", "--shifts", "gaussian_blur"]
    monkeypatch.setattr(sys, "argv", ["own.py", *arguments])
    own.main()
    cal, test = (rightly.load(stored / "one" / f"{name}.npz") for name in ("cal", "gaussian_blur"))
    brier = [
        measure(rightly.calibrator(name).fit(*cal), *test, ["brier"])["brier"]
        for name in ("rightly", "temperature_scaling")
    ]
    assert f"brier {brier[0] / brier[1]:.3f} (0.9" in capsys.readouterr().out


class _Kit:
    """Stands for cifar10.py: ten pictures of each of two classes, stored class by class."""

    @staticmethod
    def images(split):
        pictures = np.random.default_rng(0).integers(0, 256, (20, 32, 32, 3), dtype=np.uint8)
        return pictures, np.repeat([0, 1], 10)

    @staticmethod
    def classifier(name):
        torch.manual_seed(0)
        layers = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 2))
        return layers.eval()


def test_images_are_mixed_halved_and_collected_once(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(unseen, "cifar10_module", lambda folder: _Kit)
    arguments = [".", str(tmp_path), "--classifiers", "one", "--shifted", "5", "--rehearsed", "6"]
    monkeypatch.setattr(sys, "argv", ["unseen.py", *arguments])
    unseen.main()
    for half, other in (("one_1", "one_2"), ("one_2", "one_1")):
        cal, labels = rightly.load(tmp_path / half / "cal.npz")
        assert len(cal) == 10 and cal.view_names == tuple(VIEWS)
        assert set(labels.tolist()) == {0, 1}  # not one class after the other
        judging, _ = rightly.load(tmp_path / other / "ind.npz")
        assert torch.equal(judging.logits, cal.logits)
        for name in SHIFTS:
            assert len(rightly.load(tmp_path / half / f"{name}.npz")[0]) == 5
        rehearsed, truth = rightly.load(tmp_path / "rehearsal" / f"{half}.npz")
        assert rehearsed.shift_names == tuple(f"{name}:4" for name in SHIFTS)
        assert rehearsed.shift.bincount().tolist() == [0, *[6] * len(SHIFTS)]
        assert torch.equal(truth[:6], labels[:6]) and torch.equal(truth[-6:], labels[:6])
    capsys.readouterr()
    unseen.main()
    assert "written" not in capsys.readouterr().out
