"""The server as a process: sockets, signals, the command line, a real file."""

import os
import signal
import socket
import threading
import time
from contextlib import asynccontextmanager

import httpx
import pytest
from fastapi import FastAPI

from rightly.cli import main
from rightly.serving import Limits, make_app, open_socket, run_app
from rightly.serving.server import format_address
from tests.deployment.tiny_onnx import write_onnx
from tests.serving.clients import Gated, run_command, run_server, stop_command
from tests.serving.fake_model import make_file

FILES = {"image": make_file()}


@pytest.fixture
def model(tmp_path):
    return write_onnx(tmp_path / "model.onnx")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_the_command_serves_and_stops_in_good_order(model, number):
    with run_command(model) as (process, url):
        answer = httpx.post(f"{url}/predict", files={"image": make_file((20, 200, 30))}, timeout=30)
        assert answer.json()["predictions"][0]["name"] == "green"
        stop_command(process, number)


def test_started_by_nohup_it_goes_on_when_the_terminal_is_closed(model):
    with run_command(model, before=["nohup"]) as (process, url):
        process.send_signal(signal.SIGHUP)
        time.sleep(0.5)  # in which a server that heeds it would stop
        assert httpx.get(f"{url}/healthz", timeout=30).status_code == 200
        stop_command(process)


def test_the_command_says_in_one_line_what_is_wrong(model, capsys):
    with open_socket("127.0.0.1", 0) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", str(model), "--port", port]) == 2
    assert main(["serve", str(model), "--port", "99999"]) == 2
    assert main(["serve", str(model), "--max-body-mb", "0"]) == 2
    assert main(["serve", str(model), "--max-body-mb", "-1"]) == 2
    assert main(["serve", str(model), "--timeout-s", "inf"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 5
    assert "cannot listen" in lines[0] and port in lines[0]
    assert "port must be from 0 to 65535" in lines[1]
    assert "max_body_mb must be positive and finite, got 0" in lines[2]
    assert "max_body_mb must be positive and finite, got -1" in lines[3]
    assert "timeout_s must be positive and finite, got inf" in lines[4]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_requests_under_way_are_answered_before_the_stop(number, default_signals):
    """In this process, which the signal must neither end nor leave with other handlers."""
    model, answers = Gated(), []
    before = [signal.getsignal(one) for one in default_signals]

    def ask(url):
        while httpx.get(f"{url}/healthz").status_code != 200:
            pass
        model.gate.clear()
        asking = threading.Thread(
            target=lambda: answers.append(httpx.post(f"{url}/predict", files=FILES, timeout=30))
        )
        asking.start()
        while "rightly_queue_images 0.0" in httpx.get(f"{url}/metrics").text and not model.entered:
            pass
        os.kill(os.getpid(), number)
        model.gate.set()
        asking.join()

    with open_socket("127.0.0.1", 0) as listening:
        client = threading.Thread(target=ask, args=[format_address(listening)])
        app = make_app(model, Limits(timeout_s=20.0))
        client.start()
        run_app(app, listening, 20.0)
        client.join()
    assert [answer.status_code for answer in answers] == [200]
    assert before == [signal.getsignal(one) for one in default_signals]


def test_an_app_that_cannot_start_is_an_error():
    @asynccontextmanager
    async def fail(app):
        raise RuntimeError("no")
        yield

    with open_socket("127.0.0.1", 0) as listening, pytest.raises(OSError, match="could not start"):
        run_app(FastAPI(lifespan=fail), listening, 1.0)


@pytest.mark.parametrize("path", ["/docs/", "/predict/", "/model/", "//evil.example/.."])
def test_no_answer_leads_to_the_host_that_a_request_names(path):
    with run_server() as address, socket.create_connection(address, timeout=30) as connection:
        head = f"GET {path} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
        connection.sendall(head.encode())
        answer = connection.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 404 ") and b"location" not in answer.lower()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"class_names": ["red"]}, "class_names must have 3 names"),
        ({"preprocessing": {"size": [20_000, 20_000]}}, "its metadata say images of floats"),
        (
            {"sides": ("h", "w"), "preprocessing": {"size": [20_000, 20_000]}},
            "max_pixels must be at least the 20000 x 20000",
        ),
        ({"width": None, "class_names": None, "class_count": 4}, "model.onnx gives probabilities"),
    ],
)
def test_a_file_that_cannot_answer_is_refused_before_the_server_listens(
    tmp_path, monkeypatch, capsys, changes, words
):
    path = write_onnx(tmp_path / "model.onnx", **changes)
    monkeypatch.setattr("rightly.serving.open_socket", None)  # which nobody calls
    assert main(["serve", str(path), "--port", "0"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert words in printed.err and len(printed.err.splitlines()) == 1


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
