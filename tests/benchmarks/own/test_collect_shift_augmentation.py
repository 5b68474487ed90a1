"""Shift augmentation for stored predictions: the same images, views and labels."""

import sys

import numpy as np
import torch
from benchmarks.own import collect_shift_augmentation
from benchmarks.own.classifier_outputs import compute_logits, read_test_images

import rightly
from rightly import Predictions
from rightly.transforms.shifts import SHIFTS
from tests.benchmarks.own.test_collect_unseen_shifts import Kit


def test_images_are_matched_by_their_logits_and_shifted(tmp_path, monkeypatch):
    images, labels = read_test_images(Kit, "cpu")
    model = Kit.classifier("one")
    logits, rows = compute_logits(model, images), torch.tensor([7, 19, 3, 12])
    stored = Predictions(logits[rows], logits[rows][:, None], view_names=["grayscale"])
    (tmp_path / "one").mkdir()
    rightly.save(tmp_path / "one" / "cal.npz", stored, labels[rows.numpy()])
    monkeypatch.setattr(collect_shift_augmentation, "load_cifar10", lambda folder: Kit)
    names = ["contrast:4", "gaussian_noise:2"]
    out = tmp_path / "out.npz"
    arguments = [".", str(tmp_path), "one", str(out), "--images", "3", "--shifts", ",".join(names)]
    monkeypatch.setattr(sys, "argv", ["collect_shift_augmentation", *arguments])
    collect_shift_augmentation.main()
    predictions, truth = rightly.load(out)
    assert predictions.shift_names == tuple(names) and predictions.view_names == ("grayscale",)
    assert predictions.shift.tolist() == [1, 1, 1, 2, 2, 2]
    assert predictions.image.tolist() == [0, 1, 2, 0, 1, 2]
    assert truth.tolist() == np.tile(labels[rows[:3].numpy()], 2).tolist()
    shifted = SHIFTS.find("contrast")(images[rows[:3]], 4, 0)
    assert torch.allclose(predictions.logits[:3], compute_logits(model, shifted), atol=1e-5)


def test_all_shifts_are_listed_at_one_severity():
    names = collect_shift_augmentation.list_shifts("all:2")
    assert names == [f"{name}:2" for name in SHIFTS]
