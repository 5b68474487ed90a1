"""Bodies and forms: what is read, counted and refused."""

import asyncio
import socket
import sys
from contextlib import ExitStack

import httpx
import pytest

from rightly.serving import Limits
from rightly.serving.limits import RefusedRequest
from rightly.serving.uploads import MAX_BODIES, MemoryBudget
from tests.serving.clients import (
    FORM,
    IMAGE,
    check_refusal,
    make_form,
    open_client,
    post_body,
    post_files,
    run_server,
    send_bytes,
)
from tests.serving.fake_model import make_file


@pytest.mark.parametrize("field", ["image", "images", "file", "files"])
def test_each_usual_field_name_is_taken(field):
    assert post_files(make_file(), field=field).status_code == 200


def test_several_images_are_answered_in_their_order():
    colours = [(200, 10, 10), (10, 200, 10), (10, 10, 200), (180, 10, 10)]
    response = post_files(*[(f"{i}.png", make_file(each)) for i, each in enumerate(colours)])
    predictions = response.json()["predictions"]
    assert [each["name"] for each in predictions] == ["red", "green", "blue", "red"]
    assert [each["file"] for each in predictions] == ["0.png", "1.png", "2.png", "3.png"]


def test_a_body_that_is_announced_too_large_is_refused():
    message = check_refusal(
        post_files(make_file() + bytes(2000), limits=Limits(max_body_mb=0.001)),
        413,
        "body_too_large",
    )
    assert "1,000 bytes" in message


def test_a_body_that_does_not_say_how_large_it_is_is_counted_as_it_comes():
    taken = 0

    async def endless():
        nonlocal taken
        yield make_form((IMAGE, b""), end=False)
        for _ in range(100):
            taken += 100
            yield bytes(100)

    limits = Limits(max_body_mb=0.001)
    check_refusal(post_body(endless(), limits=limits), 413, "body_too_large")
    assert taken == 10_000  # read to its end and dropped, so that the client sees the answer


def name_part(field, file="a.png"):
    return f'Content-Disposition: form-data; name="{field}"; filename="{file}"'


FORM_LINE = "Content-Type: multipart/form-data; boundary=edge"
GOOD = make_form((IMAGE, make_file()))
MANY_HEADERS = "\r\n".join(f"X-{i}: y" for i in range(1000))
REFUSED = {
    "no content type": ("X: y", b"", 415, "not_a_form"),
    "JSON": ("Content-Type: application/json", b"{}", 415, "not_a_form"),
    "no boundary": ("Content-Type: multipart/form-data", GOOD, 415, "not_a_form"),
    "an empty boundary": (
        'Content-Type: multipart/form-data; boundary=""',
        GOOD,
        415,
        "not_a_form",
    ),
    "a long boundary": (FORM_LINE + 300 * "x", b"x", 400, "malformed_form"),
    "another boundary": (FORM_LINE + "\xff", GOOD, 400, "malformed_form"),
    "no form": (FORM_LINE, b"nothing like a form", 400, "malformed_form"),
    "nothing": (FORM_LINE, b"", 422, "no_image"),
    "no part": (FORM_LINE, make_form(), 422, "no_image"),
    "bare LF": (FORM_LINE, GOOD.replace(b"\r\n", b"\n"), 400, "malformed_form"),
    "bare LF after a good part": (
        FORM_LINE,
        make_form((IMAGE, make_file()), end=False) + b"--edge\r\nContent-Disposition: x\n\ny",
        400,
        "malformed_form",
    ),
    "no end": (FORM_LINE, make_form((IMAGE, b"x"), end=False), 400, "malformed_form"),
    "a long field": (FORM_LINE, make_form((name_part(99999 * "x"), b"x")), 400, "malformed_form"),
    "a long file name": (
        FORM_LINE,
        make_form((name_part("image", 99999 * "x"), b"x")),
        400,
        "malformed_form",
    ),
    "a long header": (FORM_LINE, make_form((9999 * "X" + ": y", b"x")), 400, "malformed_form"),
    "many headers": (FORM_LINE, make_form((MANY_HEADERS, b"x")), 400, "malformed_form"),
    "a bad header": (FORM_LINE, make_form(("a b: y", b"x")), 400, "malformed_form"),
    "no header": (FORM_LINE, b"--edge\r\n\r\nx\r\n--edge--\r\n", 422, "unknown_field"),
    "no field": (
        FORM_LINE,
        make_form(("Content-Disposition: form-data", b"x")),
        422,
        "unknown_field",
    ),
    "an unknown field": (FORM_LINE, make_form((name_part("path"), b"/etc")), 422, "unknown_field"),
    "a field that is no UTF-8": (
        FORM_LINE,
        make_form((name_part("path"), b"x")).replace(b"path", b"\xff\xfe"),
        422,
        "unknown_field",
    ),
    "33 files": (FORM_LINE, make_form(*33 * [(IMAGE, b"x")]), 413, "too_many_images"),
    "no image": (FORM_LINE, make_form((name_part("image"), b"/etc")), 415, "not_an_image"),
    "an empty file": (FORM_LINE, make_form((IMAGE, b"")), 422, "empty_file"),
    "too many bytes": (FORM_LINE, make_form((IMAGE, bytes(200_000))), 413, "body_too_large"),
}


@pytest.fixture(scope="module")
def address():
    with run_server(limits=Limits(max_body_mb=0.15)) as address:
        yield address


@pytest.mark.parametrize("chunk", [None, 50_000, 100])
@pytest.mark.parametrize("case", REFUSED)
def test_a_bad_form_is_refused_over_a_socket(address, case, chunk, caplog):
    head, body, status, code = REFUSED[case]
    response = send_bytes(address, ["POST /predict HTTP/1.1", head], body, chunk)
    check_refusal(response, status, code)
    assert not [record for record in caplog.records if record.exc_info]
    good = send_bytes(address, ["POST /predict HTTP/1.1", FORM_LINE], GOOD, chunk)
    assert good.status_code == 200


def test_a_client_that_asks_first_is_refused_before_it_sends(address):
    head = ["POST /predict HTTP/1.1", FORM_LINE, "Expect: 100-continue", "Host: test"]
    head += ["Connection: close", "Content-Length: 999999", "", ""]
    with socket.create_connection(address, timeout=30) as connection:
        connection.sendall("\r\n".join(head).encode())
        assert connection.makefile("rb").readline().startswith(b"HTTP/1.1 413 ")


def test_a_part_without_a_file_name_is_an_image_without_a_name():
    content = make_form(('Content-Disposition: form-data; name="image"', make_file()))
    (prediction,) = post_body(content).json()["predictions"]
    assert prediction["file"] is None and prediction["name"] == "red"


def test_more_images_than_allowed_are_refused():
    limits = Limits(max_images=3)
    assert post_files(*3 * [make_file()], limits=limits).status_code == 200
    assert "at most 3" in check_refusal(
        post_files(*4 * [make_file()], limits=limits), 413, "too_many_images"
    )


@pytest.mark.parametrize(
    "name", ["../../../etc/passwd", "/etc/passwd", "C:\\x.png", "a\x00b.png", 3000 * "x", "%2e%2e"]
)
def test_names_of_files_are_sent_back_and_never_opened(name):
    opened = []

    def watch(event, arguments):
        if watching and event in ("open", "os.open", "os.mkdir", "tempfile.mkstemp"):
            opened.append(arguments[0])

    watching = False
    sys.addaudithook(watch)

    async def go():
        nonlocal watching
        async with open_client() as http:
            files = [("image", ("first.png", make_file()))]
            await http.post("/predict", files=files)  # loads what is loaded on first use
            watching = True
            try:
                large = make_file() + bytes(3_000_000)
                return await http.post("/predict", files=[("image", (name, large))])
            finally:
                watching = False

    response = asyncio.run(go())
    assert response.status_code == 200
    assert opened == []
    prediction = response.json()["predictions"][0]["file"]
    assert prediction.isprintable() and len(prediction) <= 200


def test_all_requests_together_hold_no_more_than_so_many_bytes():
    memory = MemoryBudget(Limits(max_body_mb=0.0001))
    with ExitStack() as full:
        for _ in range(MAX_BODIES):
            full.enter_context(memory.reserve())(100)
        with memory.reserve() as one_more, pytest.raises(RefusedRequest, match="busy"):
            one_more(1)
    assert memory.held == 0
    with memory.reserve() as take:
        take(60)
        with pytest.raises(RefusedRequest, match="body_too_large"):
            take(41)
        assert memory.held == 60
    assert memory.held == 0


@pytest.mark.parametrize("chunked", [True, False])
def test_a_client_that_sends_too_much_gets_to_see_why(chunked):
    def chunks():
        yield make_form((IMAGE, b""), end=False)
        for _ in range(50):
            yield bytes(100_000)

    content = chunks() if chunked else b"".join(chunks())
    with run_server(limits=Limits(max_body_mb=1.0)) as (host, port):
        response = httpx.post(f"http://{host}:{port}/predict", content=content, headers=FORM)
    check_refusal(response, 413, "body_too_large")
