"""Routes, health, origins, and the answer where something fails."""

import asyncio

from tests.serving.clients import check_refusal, open_client, send_request
from tests.serving.fake_model import BrightestChannel, make_file


def test_unknown_paths_and_methods_are_refused_in_the_same_shape():
    assert "/nothing" in check_refusal(send_request("GET", "/nothing"), 404, "not_found")
    check_refusal(send_request("GET", "/../../etc/passwd"), 404, "not_found")
    response = send_request("GET", "/predict")
    check_refusal(response, 405, "method_not_allowed")
    assert response.headers["allow"] == "POST"


def test_health_says_ok():
    response = send_request("GET", "/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok", "waiting": 0})


def test_other_origins_are_let_in_only_by_name():
    origin = {"origin": "https://example.org"}
    assert (
        "access-control-allow-origin" not in send_request("GET", "/model", headers=origin).headers
    )
    allowed = send_request("GET", "/model", origins=("https://example.org",), headers=origin)
    assert allowed.headers["access-control-allow-origin"] == "https://example.org"
    other = {"origin": "https://example.com"}
    refused = send_request("GET", "/model", origins=("https://example.org",), headers=other)
    assert "access-control-allow-origin" not in refused.headers


def test_a_model_that_fails_is_an_error_without_details_and_the_server_goes_on():
    class Failing(BrightestChannel):
        def predict(self, images):
            if (images[..., 2] > 200).any():
                raise RuntimeError("secret path")
            return super().predict(images)

    async def go():
        async with open_client(Failing()) as http:
            bad = await http.post("/predict", files={"image": make_file((0, 0, 255))})
            return bad, await http.post("/predict", files={"image": make_file()})

    bad, after = asyncio.run(go())
    assert "secret" not in check_refusal(bad, 500, "model_failed")
    assert after.status_code == 200
