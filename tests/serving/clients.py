"""How tests talk to the server: over ASGI, over real sockets, with forms written by hand."""

import asyncio
import io
import re
import signal
import socket
import sys
import threading
import time
from contextlib import asynccontextmanager, contextmanager

import httpx
import numpy as np
import uvicorn

from rightly.serving import Limits, make_app, open_socket
from tests.processes import PIPE, spawn
from tests.serving.fake_model import BrightestChannel


@asynccontextmanager
async def open_client(model=None, limits=None, **options):
    app = make_app(model or BrightestChannel(), limits or Limits(), **options)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://test") as http,
    ):
        yield http


def send_request(method, path, model=None, limits=None, origins=(), log=None, **request):
    async def go():
        async with open_client(model, limits, allow_origins=origins, log=log) as http:
            return await http.request(method, path, **request)

    return asyncio.run(go())


def post_files(*files, model=None, limits=None, field="images", **options):
    """One request with these files: bytes, or pairs of name and bytes."""
    named = [each if isinstance(each, tuple) else ("photo.png", each) for each in files]
    sent = [(field, (name, data, "image/png")) for name, data in named]
    return send_request("POST", "/predict", model, limits, files=sent, **options)


def check_refusal(response, status, code):
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    error = response.json()["error"]
    assert set(response.json()) == {"error"} and set(error) == {"code", "message"}
    assert error["code"] == code
    return error["message"]


@contextmanager
def run_server(model=None, limits=None):
    """A server on a real port, in a thread."""
    config = uvicorn.Config(
        make_app(model or BrightestChannel(), limits or Limits()), log_level="critical"
    )
    server = uvicorn.Server(config)
    with open_socket("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield listening.getsockname()[:2]
        finally:
            server.should_exit = True
            thread.join()


def encode(stored, kind, **options):
    file = io.BytesIO()
    stored.save(file, kind, **options)
    return file.getvalue()


def make_form(*parts, boundary="edge", end=True):
    """A multipart body, written by hand: parts are headers and bytes."""
    lines = b"".join(
        b"--%s\r\n%s\r\n\r\n%s\r\n" % (boundary.encode(), headers.encode(), data)
        for headers, data in parts
    )
    return lines + (b"--%s--\r\n" % boundary.encode() if end else b"")


FORM = {"content-type": "multipart/form-data; boundary=edge"}


IMAGE = 'Content-Disposition: form-data; name="image"; filename="a.png"'


def post_body(content, headers=FORM, limits=None, model=None):
    return send_request("POST", "/predict", model, limits, content=content, headers=headers)


def send_bytes(address, head, body, chunk=None):
    """The answer of a server to these very bytes, sent whole or in HTTP chunks of a size."""
    length = f"Content-Length: {len(body)}" if chunk is None else "Transfer-Encoding: chunked"
    if chunk is not None:
        starts = range(0, len(body), chunk)
        parts = [body[start : start + chunk] for start in starts]
        body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in [*parts, b""])
    lines = [*head, "Host: test", "Connection: close", length, "", ""]
    with socket.create_connection(address, timeout=30) as connection:
        connection.sendall("\r\n".join(lines).encode("latin-1") + body)
        with connection.makefile("rb") as file:
            status, _, rest = file.read().partition(b"\r\n")
    fields, _, content = rest.partition(b"\r\n\r\n")
    headers = [line.split(b": ", 1) for line in fields.split(b"\r\n")]
    return httpx.Response(int(status.split()[1]), headers=headers, content=content)


class Gated(BrightestChannel):
    """Answers at once until its gate is shut, then when it is opened again."""

    def __init__(self):
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.entered = False  # whether somebody stands before the shut gate

    def predict(self, images):
        self.entered = self.entered or not self.gate.is_set()
        assert self.gate.wait(30)
        return super().predict(images)


def make_colour(i):
    return (100 + i % 100, 3 * (i // 100) % 90, i * 7 % 90)


def make_pixels(colour=(200, 0, 0), size=(8, 8)):
    return np.full((*size, 3), colour, np.uint8)


@contextmanager
def run_command(*arguments, before=(), env=None):
    """The process of `rightly serve`, and its address; `before` is a command that starts it."""
    python = [*before, sys.executable, "-u", "-m", "rightly"]
    pipes = {"stdout": PIPE, "stderr": PIPE}
    with spawn([*python, "serve", *arguments, "--port", "0"], env=env, **pipes) as process:
        lines = [process.stdout.readline() for _ in range(2)]
        address = re.search(r"http://127\.0\.0\.1:\d+", lines[1])
        assert address, (lines, process.poll() is not None and process.stderr.read())
        yield process, address.group()


def stop_command(process, number=signal.SIGTERM):
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 0 and errors.strip() == "stopped"


@contextmanager
def serve_file(*arguments, env=None):
    """A client of `rightly serve` in a process of its own, stopped in good order at the end."""
    with run_command(*arguments, env=env) as (process, address):
        with httpx.Client(base_url=address, timeout=30) as client:
            yield client
        stop_command(process)
