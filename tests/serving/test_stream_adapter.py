"""Serving at the shift estimate of the last images: over real files, sockets and restarts."""

import itertools
import json
import time
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from starlette.testclient import TestClient

import rightly
from rightly.calibrators.drift_reference import ScoredRows, learn_drift_reference
from rightly.calibrators.shift_adaptation import CONSTANTS, ShiftAdaptation
from rightly.decisions.expected_accuracy import ShiftConstants
from rightly.deployment import open_exported
from rightly.monitoring import drift, limits, monitor_log
from rightly.monitoring.stream import ShiftStream
from rightly.monitoring.window import Window
from rightly.serving import Limits, make_app, service
from rightly.serving.prometheus import ServerMetrics
from rightly.serving.stream_adapter import StreamAdapter, identify_model
from tests.conftest import make
from tests.deployment.tiny_onnx import ADAPTATION, GUARANTEED, write_adaptable, write_onnx
from tests.serving.clients import encode, serve_file
from tests.serving.fake_model import make_file

PALE = (120, 110, 100)  # nearly grey: confidence is low, as under a shift


@pytest.fixture
def file(tmp_path):
    return write_adaptable(tmp_path / "m.onnx")


def ask(client, colour=PALE):
    response = client.post("/predict", files={"image": ("x.png", make_file(colour), "image/png")})
    assert response.status_code == 200, response.text
    return response.json()["predictions"][0]


def test_the_command_adapts_over_restarts_and_logs(file, tmp_path):
    options = (file, "--adapt", 4, "--state", tmp_path / "s.json", "--log", tmp_path / "log.jsonl")
    with serve_file(*options) as client:
        answers = [ask(client) for _ in range(3)]
        before = client.get("/shift").json()
        metrics = client.get("/metrics").text
    first, second, _ = answers
    assert first["confidence"] == first["unadapted_confidence"]
    constants = ShiftConstants.of(ADAPTATION)
    estimate = constants.estimate(first["shift_score"], 1)
    assert estimate < -0.1
    pixels = np.full((1, 8, 8, 3), PALE, np.uint8)
    expected = open_exported(file).predict(pixels, estimate)
    assert second["confidence"] == pytest.approx(float(expected.confidence[0]), abs=1e-6)
    assert second["confidence"] < second["unadapted_confidence"] == first["confidence"]
    assert before["images"] == 3 and before["window"] == 4 and len(before["parts"]) == 3
    unadapted = np.array([answer["unadapted_confidence"] for answer in answers])
    now = constants.adjust(unadapted, before["shift_estimate"]).mean()
    assert before["expected_accuracy"] == pytest.approx(now, abs=0.02)  # scores are binned
    assert f"rightly_shift_estimate {before['shift_estimate']}" in metrics
    assert f"rightly_expected_accuracy {before['expected_accuracy']}" in metrics
    assert "rightly_window_images 3.0" in metrics

    with serve_file(*options) as client:
        assert client.get("/shift").json() == before
        ask(client)
        assert ask(client, (250, 0, 0))["confidence"] > 0.9
        assert client.get("/shift").json()["images"] == 4
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["class"] for line in lines] == [0] * 5
    assert [line["confidence"] for line in lines[:3]] == [a["confidence"] for a in answers]
    assert lines[0]["shift_score"] == first["shift_score"]
    assert lines[0]["agreement"] is None and lines[0]["time"] <= lines[4]["time"]


def test_workers_that_share_a_file_come_to_the_same_window(file, tmp_path):
    model, state = open_exported(file), tmp_path / "s.json"
    workers = [StreamAdapter(model, 100, state) for _ in range(3)]
    images = np.random.default_rng(0).integers(0, 256, (12, 8, 8, 3), dtype=np.uint8)
    for i in range(12):
        workers[i % 3].predict(images[i : i + 1])
    for worker in (*workers, *workers[:2]):
        worker.save()
    streams = [worker.stream for worker in (*workers, StreamAdapter(model, 100, state))]
    texts = {stream.to_json() for stream in streams} | {state.read_text()}
    assert len(texts) == 1 and streams[0].samples == 12
    assert len({stream.shift_estimate for stream in streams}) == 1
    assert streams[0].window.mean_shift_score == pytest.approx(
        float(model.predict(images).shift_score.mean()), abs=1e-5
    )


def test_the_server_and_python_answer_the_same_batches_alike(file):
    model = open_exported(file)
    adapter = StreamAdapter(model, 64)
    stream = ShiftStream(ShiftConstants.of(ADAPTATION), 64)
    rng = np.random.default_rng(0)
    for i in range(20):
        images = rng.integers(0, 256 - 8 * i, (1 + 3 * i, 1, 1, 3), dtype=np.uint8)
        images = images.repeat(8, 1).repeat(8, 2)
        answers, alone = adapter.predict(images), model.predict(images)
        expected = stream.observe(alone.classes, alone.confidence, alone.shift_score)
        np.testing.assert_allclose(answers.confidence, expected, atol=1e-6)
        assert adapter.stream.shift_estimate == stream.shift_estimate
    assert stream.shift_estimate < -0.1
    assert adapter.stream.expected_accuracy == stream.expected_accuracy


def test_a_state_from_a_machine_ahead_of_time_does_not_freeze_what_is_served(file, tmp_path):
    model, state = open_exported(file), tmp_path / "s.json"
    ahead = ShiftStream(
        ShiftConstants.of(ADAPTATION), 8, identify_model(model), lambda: time.time() + 1e6
    )
    ahead.observe(np.zeros(8, int), np.full(8, 0.9), np.zeros(8))
    state.write_text(ahead.to_json())
    with pytest.warns(UserWarning, match="more than an hour ahead of the present clock"):
        adapter = StreamAdapter(model, 8, state)
    assert adapter.stream.samples == 8 and adapter.stream.shift_estimate == 0
    adapter.predict(np.full((8, 8, 8, 3), PALE, np.uint8))
    assert adapter.stream.shift_estimate < -0.1
    with pytest.warns(UserWarning, match="ahead of the present clock"):
        adapter.save()
    assert StreamAdapter(model, 8, state).stream.shift_estimate == adapter.stream.shift_estimate


def test_nothing_adapts_unless_asked(file):
    with TestClient(make_app(open_exported(file), Limits())) as client:
        first, second = ask(client), ask(client)
        assert client.get("/shift").status_code == 404
        assert "rightly_shift_estimate" not in client.get("/metrics").text
        assert 'data-adapts="no"' in client.get("/").text
    assert first == second and "unadapted_confidence" not in first and first["name"] == "red"


def test_the_page_charts_what_the_server_adapts_to(file):
    with TestClient(make_app(open_exported(file), Limits(), adapt=8)) as client:
        page, schema = client.get("/"), client.get("/openapi.json").json()
    assert 'data-adapts="yes"' in page.text and "<svg" in page.text
    assert "unsafe" not in page.headers["content-security-policy"]
    assert "/shift" in schema["paths"]


def send(client, images):
    """One request with these images of 8 by 8 pixels."""
    files = [
        ("images", (f"{k}.png", encode(Image.fromarray(x), "PNG"))) for k, x in enumerate(images)
    ]
    response = client.post("/predict", files=files)
    assert response.status_code == 200, response.text
    return response.json()["model"]


USUAL = np.random.default_rng(0).integers(0, 256, (1024, 1, 1, 3), dtype=np.uint8)
USUAL = USUAL.repeat(8, 1).repeat(8, 2)


@pytest.fixture(scope="module")
def watching(tmp_path_factory):
    """A calibrator that knows what images without drift look like, and a file that does too."""
    folder = tmp_path_factory.mktemp("watching")
    outputs = open_exported(write_adaptable(folder / "m.onnx")).predict(USUAL)
    score, right = outputs.shift_score + 2.0, np.arange(1024) % 5 > 0
    label = np.where(right, outputs.classes, (outputs.classes + 1) % 3)
    rows = ScoredRows(score, outputs.classes, label, np.arange(1024), np.ones(1024))
    calibrator = rightly.calibrator("temperature_scaling").fit(*make(c=3))
    constants = {name: torch.tensor(ADAPTATION[name], dtype=torch.float64) for name in CONSTANTS}
    shift = ShiftAdaptation.of(reference=torch.full((3,), 2.0), **constants)
    shift.drift = learn_drift_reference(rows, 3)
    calibrator.shift = shift
    decision = GUARANTEED.to_dict()
    file = write_adaptable(folder / "d.onnx", drift=shift.describe_drift(), decision=decision)
    return calibrator, file


@pytest.mark.parametrize("adapt", [None, 512])
def test_drift_is_watched_and_voids_guarantees(watching, monkeypatch, adapt):
    monkeypatch.setattr(drift, "BLOCK_S", 0.0)  # blocks of 64 images, as soon as they came
    monkeypatch.setattr(limits, "BLOCKS_PER_DAY", 1)  # limits for fewer blocks a year: sooner
    app = make_app(open_exported(watching[1]), Limits(max_images=64, max_batch=64), adapt=adapt)
    with TestClient(app) as client:
        assert 'data-watches="yes"' in client.get("/").text
        assert client.get("/drift").json()["status"] == "starting"
        first = send(client, USUAL[:64])["guarantee"]
        assert first.startswith("guarantee void: adapted" if adapt else "of 1,000 samples about 70")
        app.state.service.drift._planning.join()
        for start in range(64, 512, 64):
            send(client, USUAL[start : start + 64])
        found, text = client.get("/drift").json(), client.get("/metrics").text
        assert found["status"] == "no alarm" and len(found["levels"]) == 8
        assert f"rightly_guarantee_void {1.0 if adapt else 0.0}" in text
        for _ in range(8):
            summary = send(client, np.full((64, 8, 8, 3), PALE, np.uint8))
        found, text = client.get("/drift").json(), client.get("/metrics").text
    assert "shift" in found["status"] and found["alarms"]["shift"] > 0
    assert max(level["shift"] for level in found["levels"]) > 1
    assert f'rightly_drift_alarms{{name="shift"}} {found["alarms"]["shift"]}.0' in text
    assert 'rightly_drift{name="class prior"}' in text and "rightly_guarantee_void 1.0" in text
    void = "adapted data" if adapt else f"drift alarm ({found['status']})"
    assert summary["void"] == void and summary["guarantee"] == f"guarantee void: {void}"


@pytest.mark.parametrize(
    ("adapt", "step_s", "shifted", "status"),
    [
        (None, 0.5, 10, "starting"),  # seconds of traffic, however different, tell nothing yet
        (None, 1500.0, 0, "no alarm"),
        (64, 1500.0, 10, "shift and class prior"),
        (None, 20000.0, 10, "shift and class prior"),  # fewer than 64 images in an hour
    ],
)
def test_the_log_of_a_server_gives_the_answer_that_it_gave(
    watching, tmp_path, monkeypatch, adapt, step_s, shifted, status
):
    monkeypatch.setattr(limits, "BLOCKS_PER_DAY", 1)
    calibrator, file = watching
    now = itertools.chain(1.7e9 + np.arange(4) * step_s, 1.7e9 + np.arange(999) * step_s)
    # The clock steps back to where it began after four requests.
    monkeypatch.setattr(service, "time", SimpleNamespace(time=lambda: float(next(now))))
    log = tmp_path / "log.jsonl"
    app = make_app(open_exported(file), Limits(max_images=64), adapt=adapt, log=log)
    with TestClient(app) as client:
        for start in range(0, 1024 - 16 * shifted, 40):
            send(client, USUAL[start : start + 40])
        for _ in range(shifted):
            send(client, np.full((40, 8, 8, 3), PALE, np.uint8))
        app.state.service.drift._planning.join()
        send(client, USUAL[:1])  # what came before there were limits is tested now
        live = client.get("/drift").json()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* rows more than an hour older")
        report = monitor_log(log, calibrator)
    assert report.status == live["status"] == status
    assert {alarm.name: alarm.count for alarm in report.alarms} == {
        name: count for name, count in live["alarms"].items() if count
    }
    assert report.blocks == len(live["levels"]) or report.blocks > 32
    if status == "starting":
        assert report.samples_per_day is None and report.blocks == 0
    else:
        assert report.blocks < report.rows / 64


def test_the_range_of_what_is_expected_is_measured(file):
    adapter, metrics = StreamAdapter(open_exported(file), 512), ServerMetrics()
    usual = np.random.default_rng(0).integers(0, 256, (64, 1, 1, 3), dtype=np.uint8)
    adapter.predict(usual.repeat(8, 1).repeat(8, 2))
    metrics.watch_stream(adapter.stream)
    before = adapter.stream.describe()
    assert before["expected_low"] < before["expected_accuracy"] < before["expected_high"]
    for _ in range(8):
        adapter.predict(np.full((64, 8, 8, 3), PALE, np.uint8))
    after = adapter.stream.describe()
    # Less sure, farther from what was learned.
    assert after["expected_low"] < before["expected_low"]
    assert f"rightly_expected_accuracy_low {after['expected_low']}" in metrics.render().decode()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"adapt": 0}, "adapt must be a number of images from 1 on, got 0"),
        ({"state": "s.json"}, "state must be left out where nothing adapts"),
        ({"adapt": 8, "state": "broken"}, "state must be a file that serve wrote"),
        ({"adapt": 8, "state": "other"}, "state must be of the model that is served"),
        ({"adapt": 8, "state": "no/s.json"}, "does not exist"),
        ({"log": "no/log.jsonl"}, "log must be a file that can be written"),
    ],
)
def test_what_cannot_work_is_refused_before_it_serves(file, tmp_path, options, message):
    (tmp_path / "broken").write_text("{}")
    (tmp_path / "other").write_text(Window(8, "tea").to_json())
    paths = {k: tmp_path / v if isinstance(v, str) else v for k, v in options.items()}
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        make_app(open_exported(file), Limits(), **paths)


def test_a_model_without_shift_estimate_cannot_adapt(tmp_path):
    with pytest.raises(ValueError, match="adapt needs a model that can be adapted"):
        make_app(open_exported(write_onnx(tmp_path / "plain.onnx")), Limits(), adapt=8)
