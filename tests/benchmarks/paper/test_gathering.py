"""From a setup to predictions: read where they are stored, collected where only images are."""

import numpy as np
import torch
from benchmarks.paper.gathering import Places, gather_trials, restrict_classes, split_in_halves
from benchmarks.paper.setups import Classifier, Images, Setup
from PIL import Image

import rightly
from rightly.datasets import ImageDataset
from tests.conftest import make


def test_predictions_are_collected_where_only_images_are_there(tmp_path, monkeypatch):
    (tmp_path / "toy_model.py").write_text(
        "import torch\n"
        "def small():\n"
        "    torch.manual_seed(0)\n"
        "    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 2))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    rng = np.random.default_rng(0)
    for part in ("cal", "test"):
        for kind in ("cat", "dog"):
            folder = tmp_path / "data" / part / kind
            folder.mkdir(parents=True)
            for i in range(6):
                pixels = rng.integers(0, 256, (8, 8, 3), np.uint8)
                Image.fromarray(pixels).save(folder / f"{i}.png")
    toy = Setup(
        "toy",
        "",
        (Classifier("one", "py:toy_model:small"),),
        calibration=Images("cal", "cal", "folders"),
        tests=(Images("test", "test", "folders"),),
    )
    places = Places(tmp_path / "data", tmp_path / "predictions")
    messages = []
    (trial,) = gather_trials(toy, toy.classifiers[0], places, messages.append)
    assert len(trial.calibration[1]) == 12 and trial.tests["test"][0].view_names == toy.views
    assert messages == ["collecting one on cal: 12 images", "collecting one on test: 12 images"]
    gather_trials(toy, toy.classifiers[0], places, messages.append)
    assert len(messages) == 2  # the second time they are read


def test_halves_are_disjoint_and_share_each_class():
    predictions, labels = make(n=400, c=4)
    one, other = split_in_halves(predictions, labels)
    assert len(one[1]) + len(other[1]) == 400
    for k in range(4):
        assert abs(int((one[1] == k).sum()) - int((other[1] == k).sum())) <= 1
    rows = {tuple(row) for row in one[0].logits.tolist()}
    assert not rows & {tuple(row) for row in other[0].logits.tolist()}


def test_calibration_sets_are_restricted_to_the_classes_of_the_test_set():
    predictions, labels = make(c=6)
    groups = ((4,), (0, 2))
    source = ImageDataset(["image"], lambda i: None, kept_classes=groups)
    test = rightly.Predictions(torch.randn(5, 2), class_names=["e", "a or c"])
    fewer, kept = restrict_classes((predictions, labels), test, source)
    rows = torch.isin(labels, torch.tensor([4, 0, 2]))
    assert torch.equal(fewer.logits, source.restrict(predictions.logits[rows]))
    assert torch.equal(kept, torch.where(labels[rows] == 4, 0, 1))
    named = rightly.Predictions(predictions.logits, class_names=list("abcdef"))
    test = rightly.Predictions(torch.randn(5, 2), class_names=["b", "f"])
    fewer, kept = restrict_classes((named, labels), test, None)
    assert torch.equal(fewer.logits, predictions.logits[(labels == 1) | (labels == 5)][:, [1, 5]])
