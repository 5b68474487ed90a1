"""The server on a real exported file."""

import numpy as np
import pytest
from starlette.testclient import TestClient

from rightly.deployment import open_deployed
from rightly.serving import Limits, make_app
from tests.deployment.tiny_models import NAMES, VIEWS, exported
from tests.serving.fake_model import picture


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return open_deployed(exported(tmp_path_factory.mktemp("served"), ".onnx", threshold=0.7))


def test_the_server_says_what_the_file_says(model):
    colours = [(200, 40, 30), (20, 200, 30), (10, 20, 30)]
    files = [("images", (f"{i}.png", picture(c), "image/png")) for i, c in enumerate(colours)]
    with TestClient(make_app(model, Limits())) as client:
        answer = client.post("/predict", files=files)
        about = client.get("/model").json()
    assert answer.status_code == 200
    shown = np.stack([np.full((16, 16, 3), colour, np.uint8) for colour in colours])
    said = model.predict(shown)
    for i, found in enumerate(answer.json()["predictions"]):
        assert found["class"] == said.classes[i] and found["name"] == NAMES[said.classes[i]]
        assert found["confidence"] == pytest.approx(float(said.confidence[i]), abs=1e-6)
        assert found["raw_confidence"] == pytest.approx(float(said.raw_confidence[i]), abs=1e-6)
        assert found["accept"] is bool(said.accept[i])
        assert [view["view"] for view in found["views"]] == list(VIEWS)
    assert about["method"] == "ca_views" and about["threshold"]["value"] == 0.7


def test_a_bad_picture_does_not_stop_the_server(model):
    with TestClient(make_app(model, Limits())) as client:
        bad = client.post("/predict", files={"image": ("x.jpg", b"\x80\x04pickle", "image/jpeg")})
        good = client.post("/predict", files={"image": ("x.png", picture(), "image/png")})
    assert 400 <= bad.status_code < 500 and bad.json()["error"]["message"]
    assert good.status_code == 200
