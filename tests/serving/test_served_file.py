"""The server on a real exported file."""

import numpy as np
import pytest
from starlette.testclient import TestClient

from rightly.deployment import open_exported
from rightly.serving import Limits, make_app
from tests.deployment.tiny_models import NAMES, VIEWS, exported
from tests.serving.fake_model import make_file


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return open_exported(exported(tmp_path_factory.mktemp("served"), ".onnx", threshold=0.7))


def test_the_server_says_what_the_file_says(model):
    colours = [(200, 40, 30), (20, 200, 30), (10, 20, 30)]
    files = [("images", (f"{i}.png", make_file(c), "image/png")) for i, c in enumerate(colours)]
    with TestClient(make_app(model, Limits())) as client:
        answer = client.post("/predict", files=files)
        about = client.get("/model").json()
    assert answer.status_code == 200
    shown = np.stack([np.full((16, 16, 3), colour, np.uint8) for colour in colours])
    outputs = model.predict(shown)
    for i, prediction in enumerate(answer.json()["predictions"]):
        assert (
            prediction["class"] == outputs.classes[i]
            and prediction["name"] == NAMES[outputs.classes[i]]
        )
        assert prediction["confidence"] == pytest.approx(float(outputs.confidence[i]), abs=1e-6)
        assert prediction["raw_confidence"] == pytest.approx(
            float(outputs.raw_confidence[i]), abs=1e-6
        )
        assert prediction["accept"] is bool(outputs.accept[i])
        assert [view["view"] for view in prediction["views"]] == list(VIEWS)
    assert about["method"] == "ca_views" and about["decision"]["threshold"] == 0.7


def test_a_bad_image_does_not_stop_the_server(model):
    with TestClient(make_app(model, Limits())) as client:
        bad = client.post("/predict", files={"image": ("x.jpg", b"\x80\x04pickle", "image/jpeg")})
        good = client.post("/predict", files={"image": ("x.png", make_file(), "image/png")})
    assert 400 <= bad.status_code < 500 and bad.json()["error"]["message"]
    assert good.status_code == 200
