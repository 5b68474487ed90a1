"""Files that commands read: predictions, a calibrator, an exported model and pictures."""

import pytest
from PIL import Image

import rightly
from rightly.cli import main
from tests.conftest import make
from tests.deployment.tiny_models import fitted, pictures

MODEL = "py:tests.cli.models:small"


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """Data: to calibrate, to test twice, without views, without labels; and two calibrators."""
    folder = tmp_path_factory.mktemp("files")
    for name, seed in (("cal", 0), ("ind", 1), ("blur", 2)):
        predictions, labels = make(n=200, seed=seed)
        rightly.save(folder / f"{name}.npz", predictions, labels)
    predictions, labels = make(n=50)
    rightly.save(folder / "bare.npz", rightly.Predictions(predictions.logits), labels)
    rightly.save(folder / "unlabelled.npz", predictions)
    for method, file in (("spline", "saved"), ("ca_views", "views")):
        rightly.calibrator(method).fit(*make(n=200)).save(folder / f"{file}.safetensors")
    return folder


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """A folder with a fitted calibrator, an exported model and three pictures."""
    folder = tmp_path_factory.mktemp("place")
    fitted(threshold=0.7).save(folder / "cal.safetensors")
    (folder / "photos" / "inner").mkdir(parents=True)
    for i, pixels in enumerate(pictures(3, size=20)):
        Image.fromarray(pixels).save(folder / "photos" / "inner" / f"{i}.png")
    saved, out = str(folder / "cal.safetensors"), str(folder / "model.onnx")
    card = ["--card", str(folder / "card.md")]
    assert main(["export", MODEL, saved, "--out", out, *card]) == 0
    return folder
