"""An app on a port, until it is told to stop."""

import logging
import signal
import socket
import threading
from types import FrameType

import uvicorn
from fastapi import FastAPI

STOP = (signal.SIGINT, signal.SIGTERM)


def open_socket(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 lets the system choose."""
    if not 0 <= port < 65536:
        raise ValueError(f"port must be from 0 to 65535, got {port}")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise OSError(
            f"cannot listen on {host}, port {port} ({error.strerror or error}): "
            "choose another host or port"
        ) from error


def format_address(listening: socket.socket) -> str:
    """Where a browser finds it."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run_app(app: FastAPI, listening: socket.socket, timeout_s: float) -> None:
    """Serves until SIGTERM or SIGINT; requests under way are answered first."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,  # /metrics counts requests, and a line for each would be all one reads
        server_header=False,
        timeout_graceful_shutdown=int(timeout_s) + 1,
    )
    # It warns of every malformed form, in words that clients choose; they are answered 400.
    logging.getLogger("python_multipart").setLevel(logging.ERROR)
    # uvicorn raises the signal again when it is done: the stop was asked for, and is no failure.
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.signal(number, _ignore_signal) for number in STOP}
    try:
        server = uvicorn.Server(config)
        server.run(sockets=[listening])
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if not server.started:
        raise OSError("the server could not start: its log says why")


def _ignore_signal(number: int, frame: FrameType | None) -> None:
    pass
