"""`rightly serve`: what it refuses and announces. That it serves is in tests/serving."""

import sys

import pytest
from fastapi.testclient import TestClient

from rightly.cli import main
from tests.deployment.tiny_onnx import GUARANTEED, write_adaptable


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--max-body-mb", "0"], "max_body_mb must be positive"),
        (["--max-pixels", "999999999"], "max_pixels must be at most"),
        (["--max-wait-ms", "-1"], "max_wait_ms must be positive"),
        (["--queue", "2"], "queue must be at least max_images"),
        ([], "there is no model file"),
    ],
)
def test_limits_are_named_by_their_arguments(capsys, arguments, words):
    assert main(["serve", "nowhere.onnx", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_it_says_what_is_served_and_where(place, monkeypatch, capsys):
    answers = []

    def ask(app, listening, timeout_s):
        with TestClient(app) as client:
            origin = {"Origin": "https://example.org"}
            answers.append((client.get("/healthz", headers=origin), timeout_s))

    monkeypatch.setattr("rightly.serving.run_app", ask)  # instead of waiting for a signal
    options = ["--port", "0", "--timeout-s", "7", "--allow-origin", "https://example.org"]
    assert main(["serve", str(place / "model.onnx"), *options]) == 0
    captured = capsys.readouterr()
    assert ":small, 4 classes, threshold 0.7" in captured.out
    assert "listening on http://127.0.0.1:" in captured.out and captured.err == "stopped\n"
    [(answer, timeout_s)] = answers
    assert (answer.status_code, timeout_s) == (200, 7)
    assert answer.headers["access-control-allow-origin"] == "https://example.org"


def test_it_says_what_is_guaranteed_and_that_drift_is_not_watched(tmp_path, monkeypatch, capsys):
    file = write_adaptable(tmp_path / "m.onnx", decision=GUARANTEED.to_dict())
    monkeypatch.setattr("rightly.serving.run_app", lambda *arguments: None)
    assert main(["serve", str(file), "--port", "0"]) == 0
    shown = capsys.readouterr().out
    assert "of 1,000 samples about 700 accepted, at most 2 % of them wrong" in shown
    assert "which the server cannot know" in shown and "drift is not watched" in shown
    assert main(["serve", str(file), "--port", "0", "--adapt", "8"]) == 0
    assert "guarantee void: adapted data" in capsys.readouterr().out


def test_without_its_packages_the_error_names_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "rightly.serving", None)
    assert main(["serve", "model.onnx"]) == 2
    assert "pip install 'rightly[serve]'" in capsys.readouterr().err
