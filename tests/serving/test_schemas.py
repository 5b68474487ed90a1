"""The JSON of answers and of the card."""

import io
import json

import pytest
from PIL import Image

from rightly.deployment.metadata import void_reason
from rightly.serving.answers import summarise_model
from tests.deployment.tiny_onnx import GUARANTEED
from tests.serving.clients import post_files, send_request
from tests.serving.fake_model import BrightestChannel, make_file


def test_an_answer_says_all_that_the_model_said():
    model, data = BrightestChannel(), make_file((200, 40, 30))
    response = post_files(("a photo.png", data), model=model)
    assert response.status_code == 200
    outputs = model.predict(model.preprocessing.pixels(Image.open(io.BytesIO(data)))[None])
    answer = response.json()
    expected = {"method": "ca_views", "threshold": 0.6}
    expected |= dict.fromkeys(("guarantee", "coverage", "set_guarantee", "void"))
    assert answer["model"] == expected
    (prediction,) = answer["predictions"]
    assert prediction["file"] == "a photo.png"
    assert (prediction["class"], prediction["name"], prediction["accept"]) == (0, "red", True)
    assert prediction["confidence"] == outputs.confidence[0]
    assert prediction["raw_confidence"] == outputs.raw_confidence[0]
    assert prediction["temperature"] == 2
    assert [each["class"] for each in prediction["top"]] == [0, 1, 2]
    assert [each["probability"] for each in prediction["top"]] == outputs.probabilities[0].tolist()
    assert [each["view"] for each in prediction["views"]] == [
        "rotation",
        "grayscale",
        "color_jitter",
    ]
    assert [each["class"] for each in prediction["views"]] == outputs.view_classes[0].tolist()
    assert prediction["views"][0]["name"] == "red"


def test_a_view_that_was_not_run_is_null_and_not_minus_one():
    (prediction,) = post_files(make_file((255, 0, 0))).json()["predictions"]
    assert prediction["views"][-1] == {
        "view": "color_jitter",
        "class": None,
        "name": None,
        "confidence": None,
    }


def test_a_model_without_names_views_or_threshold_says_so():
    model = BrightestChannel(threshold=None, names=None, views=())
    answer = post_files(make_file(), model=model).json()
    (prediction,) = answer["predictions"]
    assert (prediction["name"], prediction["accept"], prediction["views"]) == (None, None, [])
    assert answer["model"]["threshold"] is None


def test_a_guarantee_comes_with_what_it_holds_for_and_may_be_void():
    model = BrightestChannel()
    model.metadata["decision"] = GUARANTEED.to_dict()
    guarantee = post_files(make_file(), model=model).json()["model"]["guarantee"]
    assert "(guaranteed, confidence level 95 %); holds for data like the calibration" in guarantee
    void = void_reason(model.metadata, alarm="shift")
    assert summarise_model(model, void).guarantee == "guarantee void: drift alarm (shift)"
    void = void_reason(model.metadata, adapts=True)
    summary = summarise_model(model, void)
    assert summary.guarantee == "guarantee void: adapted data" and summary.void == "adapted data"


def test_in_a_tie_the_predicted_class_leads_the_list():
    class Tied(BrightestChannel):
        def predict(self, images):
            prediction = super().predict(images)
            prediction.probabilities[:] = 1 / 3
            prediction.classes[:] = 2
            return prediction

    (prediction,) = post_files(make_file(), model=Tied()).json()["predictions"]
    assert [each["class"] for each in prediction["top"]] == [2, 0, 1]


def test_the_card_is_the_identity_of_the_model_in_strict_json():
    response = send_request("GET", "/model")
    card = json.loads(response.text, parse_constant=pytest.fail)
    assert card["method"] == "ca_views" and card["class_names"] == ["red", "green", "blue"]
    assert card["spread"] is None  # nan, which JSON does not know


def test_the_schema_names_every_field_that_is_sent():
    schema = send_request("GET", "/openapi.json").json()
    operation = schema["paths"]["/predict"]["post"]
    assert {"200", "400", "408", "413", "415", "422", "429"} <= set(operation["responses"])
    assert "multipart/form-data" in operation["requestBody"]["content"]
    (prediction,) = post_files(make_file()).json()["predictions"]
    fields = schema["components"]["schemas"]
    adapting = {"unadapted_confidence", "shift_score"}  # see test_stream_adapter
    assert set(fields["Prediction"]["properties"]) == set(prediction) | adapting
    assert set(fields["Choice"]["properties"]) == set(prediction["top"][0])
    assert set(fields["ViewOpinion"]["properties"]) == set(prediction["views"][0])
    assert operation["responses"]["413"]["content"]["application/json"]["schema"]["$ref"].endswith(
        "ErrorAnswer"
    )
