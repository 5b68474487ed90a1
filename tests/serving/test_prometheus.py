"""Metrics for Prometheus."""

import asyncio

from tests.serving.clients import open_client
from tests.serving.fake_model import make_file


def test_counters_count_requests_predictions_and_batches():
    async def go():
        async with open_client() as http:
            for colour in ((250, 0, 0), (130, 120, 110)):
                await http.post("/predict", files={"image": make_file(colour)})
            await http.post("/predict", files={"image": b"no"})
            await http.get("/some/secret/path")
            return await http.get("/metrics")

    response = asyncio.run(go())
    assert response.headers["content-type"].startswith("text/plain")
    values = dict(
        line.rsplit(" ", 1) for line in response.text.splitlines() if not line.startswith("#")
    )
    assert values['rightly_requests_total{route="/predict",status="200"}'] == "2.0"
    assert values['rightly_requests_total{route="/predict",status="415"}'] == "1.0"
    assert values['rightly_requests_total{route="unmatched",status="404"}'] == "1.0"
    assert values['rightly_request_seconds_count{route="/predict"}'] == "3.0"
    assert values['rightly_predictions_total{accepted="yes"}'] == "1.0"
    assert values['rightly_predictions_total{accepted="no"}'] == "1.0"
    assert values["rightly_batch_images_count"] == "2.0"
    assert values["rightly_confidence_count"] == "2.0"
    assert values["rightly_queue_images"] == "0.0"
    assert "secret" not in response.text
