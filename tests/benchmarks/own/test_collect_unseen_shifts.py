"""Images are halved at random and collected once, with all views and shifts."""

import sys

import numpy as np
import torch
from benchmarks.own import collect_unseen_shifts

import rightly
from rightly.transforms.shifts import SHIFTS
from rightly.transforms.views import VIEWS


class Kit:
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
    monkeypatch.setattr(collect_unseen_shifts, "load_cifar10", lambda folder: Kit)
    arguments = [".", str(tmp_path), "--classifiers", "one", "--shifted", "5", "--augmented", "6"]
    monkeypatch.setattr(sys, "argv", ["collect_unseen_shifts", *arguments])
    collect_unseen_shifts.main()
    for half, other in (("one_1", "one_2"), ("one_2", "one_1")):
        cal, labels = rightly.load(tmp_path / half / "cal.npz")
        assert len(cal) == 10 and cal.view_names == tuple(VIEWS)
        assert set(labels.tolist()) == {0, 1}  # not one class after the other
        test, _ = rightly.load(tmp_path / other / "ind.npz")
        assert torch.equal(test.logits, cal.logits)
        for name in SHIFTS:
            assert len(rightly.load(tmp_path / half / f"{name}.npz")[0]) == 5
        shifted, truth = rightly.load(tmp_path / "shift_augmentation" / f"{half}.npz")
        assert shifted.shift_names == tuple(f"{name}:4" for name in SHIFTS)
        assert shifted.image.tolist() == [*range(6)] * len(SHIFTS)
        assert shifted.shift.bincount().tolist() == [0, *[6] * len(SHIFTS)]
        assert torch.equal(truth[:6], labels[:6]) and torch.equal(truth[-6:], labels[:6])
    capsys.readouterr()
    collect_unseen_shifts.main()
    assert "written" not in capsys.readouterr().out
