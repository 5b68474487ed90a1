"""The server as a process: sockets, signals, the command line, a real file."""

import re
import signal
import socket
import subprocess
import sys

import httpx
import pytest

from rightly.cli import main
from rightly.serving import open_socket
from rightly.serving.server import format_address
from tests.deployment.tiny_onnx import write_onnx
from tests.serving.fake_model import make_file


@pytest.fixture
def model(tmp_path):
    return write_onnx(tmp_path / "model.onnx")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_serves_and_stops_in_good_order(model, number):
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "rightly", "serve", str(model), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    served, where = process.stdout.readline(), process.stdout.readline()
    assert "temperature_scaling on brightest_channel, 3 classes, threshold 0.6" in served
    url = re.search(r"http://127\.0\.0\.1:\d+", where).group()
    answer = httpx.post(f"{url}/predict", files={"image": make_file((20, 200, 30))})
    assert answer.json()["predictions"][0]["name"] == "green"
    process.send_signal(number)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 0 and errors.strip() == "stopped"


def test_the_command_says_in_one_line_what_is_wrong(model, capsys):
    with open_socket("127.0.0.1", 0) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", str(model), "--port", port]) == 2
    assert main(["serve", str(model), "--port", "99999"]) == 2
    assert main(["serve", str(model), "--max-body-mb", "0"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert "cannot listen" in lines[0] and port in lines[0]
    assert "--port must be from 0 to 65535" in lines[1]
    assert "--max-body-mb must be positive, got 0" in lines[2]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"class_names": ["red"]}, "class_names must have 3 names"),
        ({"preprocessing": {"size": [20_000, 20_000]}}, "its metadata say images of floats"),
        (
            {"sides": ("h", "w"), "preprocessing": {"size": [20_000, 20_000]}},
            "--max-pixels must be at least the 20000 x 20000",
        ),
        ({"width": None, "class_names": None, "class_count": 4}, "cannot answer: the model gives"),
    ],
)
def test_a_file_that_cannot_answer_is_refused_before_the_server_listens(tmp_path, changes, words):
    path = write_onnx(tmp_path / "model.onnx", **changes)
    command = [sys.executable, "-m", "rightly", "serve", str(path), "--port", "0"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 2 and run.stdout == ""
    assert words in run.stderr and len(run.stderr.splitlines()) == 1


def test_an_address_of_ipv6_stands_in_brackets():
    with open_socket("127.0.0.1", 0) as listening:
        assert format_address(listening) == f"http://127.0.0.1:{listening.getsockname()[1]}"
    if socket.has_ipv6:
        try:
            listening = open_socket("::1", 0)
        except OSError:
            pytest.skip("this machine has no IPv6 address")
        with listening:
            assert format_address(listening).startswith("http://[::1]:")
