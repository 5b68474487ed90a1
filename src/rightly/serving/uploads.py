"""Reading a multipart body into memory, within limits; nothing of it touches the file system."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BytesIO
from typing import NoReturn

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect

from rightly.serving.limits import Limits, RefusedRequest, refuse_busy

FIELDS = ("image", "images", "file", "files")
MAX_BODIES = 16  # as many full bodies as all requests together may keep in memory
DRAIN_TIMEOUT_S = 5.0  # a refused body is read on so long, for the client to see the answer
MAX_NAME_LENGTH = 200  # of a file, in an answer


@dataclass(frozen=True)
class Upload:
    """One part of the form. The name is only ever sent back, never used as a path."""

    position: int
    name: str | None
    data: BytesIO

    def __str__(self) -> str:
        return f"file {self.position}" + (f" ({self.name})" if self.name else "")


class MemoryBudget:
    """Counts the bytes that requests hold in memory, each and all together."""

    def __init__(self, limits: Limits) -> None:
        self.held = 0
        self._limits = limits

    @contextmanager
    def reserve(self) -> Iterator[Callable[[int], None]]:
        """A function that reserves so many bytes more; all are released at the end."""
        reserved = 0

        def reserve_bytes(count: int) -> None:
            nonlocal reserved
            if reserved + count > self._limits.body_bytes:
                _refuse_large(self._limits)
            if self.held + count > MAX_BODIES * self._limits.body_bytes:
                refuse_busy("the server holds as many images as it may")
            reserved += count
            self.held += count

        try:
            yield reserve_bytes
        finally:
            self.held -= reserved


async def read_uploads(
    request: Request, limits: Limits, reserve: Callable[[int], None]
) -> list[Upload]:
    """The files in the body of a request, in order.

    A refused body is read on for a while: a client that still sends would not see the answer.
    """
    body = request.stream()  # once: where the last chunk is refused, it cannot be opened again
    holds_back = "expect" in request.headers  # a client that sends nothing before it is asked to
    try:
        _check_announced(request, limits)
        form = _Form(_read_boundary(request), limits)
        async for chunk in body:
            holds_back = False
            reserve(len(chunk))
            form.write(chunk)
        return form.finish()
    except RefusedRequest:
        if not holds_back:
            await _drain(body)
        raise


def _check_announced(request: Request, limits: Limits) -> None:
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limits.body_bytes:
        _refuse_large(limits)


def _read_boundary(request: Request) -> bytes:
    kind, options = parse_options_header(request.headers.get("content-type"))
    if kind != b"multipart/form-data" or not options.get(b"boundary"):
        raise RefusedRequest(
            415,
            "not_a_form",
            "the body must be multipart/form-data with a boundary, such as "
            f"curl -F image=@photo.jpg sends, got {kind.decode('latin-1') or 'no content type'}",
        )
    return options[b"boundary"]


async def _drain(body: AsyncIterator[bytes]) -> None:
    with suppress(TimeoutError, ClientDisconnect):
        async with asyncio.timeout(DRAIN_TIMEOUT_S):
            async for _ in body:
                pass


def _refuse_large(limits: Limits) -> NoReturn:
    raise RefusedRequest(
        413,
        "body_too_large",
        f"the body must have at most {limits.body_bytes:,} bytes: send fewer or smaller images",
    )


@dataclass
class _Part:
    header: bytearray = field(default_factory=bytearray)
    value: bytearray = field(default_factory=bytearray)
    disposition: bytes = b""


class _Form:
    """A form that is parsed as it arrives."""

    def __init__(self, boundary: bytes, limits: Limits) -> None:
        self._limits = limits
        self._uploads: list[Upload] = []
        self._part = _Part()
        self._ended = False
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._begin_part,
                    "on_header_field": lambda data, i, j: self._part.header.extend(data[i:j]),
                    "on_header_value": lambda data, i, j: self._part.value.extend(data[i:j]),
                    "on_header_end": self._end_header,
                    "on_headers_finished": self._begin_file,
                    "on_part_data": lambda data, i, j: self._write_file(data[i:j]),
                    "on_end": self._end,
                },
            )
        except FormParserError as error:
            _refuse_malformed(str(error))

    def write(self, chunk: bytes) -> None:
        try:
            self._parser.write(chunk)
        except FormParserError as error:
            _refuse_malformed(str(error))

    def finish(self) -> list[Upload]:
        """The files, once the whole body was written."""
        if not self._ended and self._uploads:
            _refuse_malformed("it ends in the middle of a part")
        if not self._uploads:
            raise RefusedRequest(
                422, "no_image", f"the form must have a file in one of the fields {list(FIELDS)}"
            )
        return self._uploads

    def _begin_part(self) -> None:
        self._part = _Part()

    def _end_header(self) -> None:
        if self._part.header.lower() == b"content-disposition":
            self._part.disposition = bytes(self._part.value)
        self._part.header.clear()
        self._part.value.clear()

    def _begin_file(self) -> None:
        _, options = parse_options_header(self._part.disposition)
        name = options.get(b"name", b"").decode(errors="replace")
        if name not in FIELDS:
            raise RefusedRequest(
                422,
                "unknown_field",
                f"fields of the form must be called one of {list(FIELDS)}, got "
                f"{_clean_name(name)!r}",
            )
        if len(self._uploads) == self._limits.max_images:
            raise RefusedRequest(
                413,
                "too_many_images",
                f"a request must have at most {self._limits.max_images} images: "
                "send several requests",
            )
        file_name = _clean_name(options.get(b"filename", b"").decode(errors="replace")) or None
        self._uploads.append(Upload(len(self._uploads) + 1, file_name, BytesIO()))

    def _write_file(self, data: bytes) -> None:
        self._uploads[-1].data.write(data)

    def _end(self) -> None:
        self._ended = True


def _clean_name(name: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in name[:MAX_NAME_LENGTH])


def _refuse_malformed(reason: str) -> NoReturn:
    raise RefusedRequest(
        400, "malformed_form", f"the body is no well-formed multipart form: {reason}"
    )
