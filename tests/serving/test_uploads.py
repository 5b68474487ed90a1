"""Bodies and forms: what is read, counted and refused."""

import asyncio
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
        post_files(make_file() + bytes(2000), limits=Limits(body_bytes=1000)), 413, "body_too_large"
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

    limits = Limits(body_bytes=1000)
    check_refusal(post_body(endless(), limits=limits), 413, "body_too_large")
    assert taken == 10_000  # read to its end and dropped, so that the client sees the answer


@pytest.mark.parametrize(
    ("content", "headers", "status", "code"),
    [
        (b"", {}, 415, "not_a_form"),
        (b"{}", {"content-type": "application/json"}, 415, "not_a_form"),
        (b"x", {"content-type": "multipart/form-data"}, 415, "not_a_form"),
        (
            b"x",
            {"content-type": "multipart/form-data; boundary=" + 300 * "x"},
            400,
            "malformed_form",
        ),
        (b"nothing like a form", FORM, 400, "malformed_form"),
        (b"", FORM, 422, "no_image"),
        (make_form(), FORM, 422, "no_image"),
        (make_form((IMAGE, make_file()), end=False), FORM, 400, "malformed_form"),
        (make_form(("Content-Disposition: form-data", b"x")), FORM, 422, "unknown_field"),
        (
            make_form(('Content-Disposition: form-data; name="path"', b"/etc")),
            FORM,
            422,
            "unknown_field",
        ),
        (
            make_form(('Content-Disposition: form-data; name="image"', b"/etc")),
            FORM,
            415,
            "not_an_image",
        ),
    ],
)
def test_a_bad_form_is_refused(content, headers, status, code):
    check_refusal(post_body(content, headers), status, code)


def test_a_part_without_a_file_name_is_an_image_without_a_name():
    content = make_form(('Content-Disposition: form-data; name="image"', make_file()))
    (prediction,) = post_body(content).json()["predictions"]
    assert prediction["file"] is None and prediction["name"] == "red"


def test_more_images_than_allowed_are_refused():
    limits = Limits(images=3)
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
    memory = MemoryBudget(Limits(body_bytes=100))
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
    with run_server(limits=Limits(body_bytes=1_000_000)) as (host, port):
        response = httpx.post(f"http://{host}:{port}/predict", content=content, headers=FORM)
    check_refusal(response, 413, "body_too_large")
