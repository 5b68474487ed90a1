"""The server, asked over ASGI and over real sockets: what it answers, refuses and survives."""

import asyncio
import io
import json
import os
import pickle
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import zlib
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import httpx
import numpy as np
import pytest
import uvicorn
from PIL import Image

from rightly.classifiers import Preprocessing
from rightly.cli import main
from rightly.datasets.decoding import to_rgb
from rightly.serving import Limits, listen, make_app
from rightly.serving.batching import Batcher
from rightly.serving.image_uploads import decode
from rightly.serving.limits import RefusedRequest
from rightly.serving.uploads import BODIES_HELD, Intake, Upload
from tests.serving.fake_model import TinyDeployed, picture, serving_process

HERE = Path(__file__).parents[1]


@asynccontextmanager
async def client(model=None, limits=None, **given):
    app = make_app(model or TinyDeployed(), limits or Limits(), **given)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://test") as asked,
    ):
        yield asked


def ask(method, path, model=None, limits=None, origins=(), **request):
    async def go():
        async with client(model, limits, allow_origins=origins) as asked:
            return await asked.request(method, path, **request)

    return asyncio.run(go())


def post(*files, model=None, limits=None, field="images"):
    """One request with these files: bytes, or pairs of name and bytes."""
    named = [each if isinstance(each, tuple) else ("given.png", each) for each in files]
    sent = [(field, (name, data, "image/png")) for name, data in named]
    return ask("POST", "/predict", model, limits, files=sent)


def refusal(response, status, code):
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    error = response.json()["error"]
    assert set(response.json()) == {"error"} and set(error) == {"code", "message"}
    assert error["code"] == code
    return error["message"]


@contextmanager
def running(model=None, limits=None):
    """A server on a real port, in a thread."""
    config = uvicorn.Config(
        make_app(model or TinyDeployed(), limits or Limits()), log_level="critical"
    )
    server = uvicorn.Server(config)
    with listen("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield listening.getsockname()[:2]
        finally:
            server.should_exit = True
            thread.join()


# What is answered


def test_an_answer_says_all_that_the_model_said():
    model, data = TinyDeployed(), picture((200, 40, 30))
    response = post(("a photo.png", data), model=model)
    assert response.status_code == 200
    verdicts = model.predict(model.preprocessing.pixels(Image.open(io.BytesIO(data)))[None])
    answer = response.json()
    assert answer["model"] == {"method": "ca_views", "threshold": 0.6}
    (said,) = answer["predictions"]
    assert said["file"] == "a photo.png"
    assert (said["class"], said["name"], said["accept"]) == (0, "red", True)
    assert said["confidence"] == verdicts.confidence[0]
    assert said["raw_confidence"] == verdicts.raw_confidence[0]
    assert said["temperature"] == 2
    assert [each["class"] for each in said["top"]] == [0, 1, 2]
    assert [each["probability"] for each in said["top"]] == verdicts.probabilities[0].tolist()
    assert [each["view"] for each in said["views"]] == ["rotation", "grayscale", "color_jitter"]
    assert [each["class"] for each in said["views"]] == verdicts.view_classes[0].tolist()
    assert said["views"][0]["name"] == "red"


def test_a_view_that_was_not_run_is_null_and_not_minus_one():
    (said,) = post(picture((255, 0, 0))).json()["predictions"]
    assert said["views"][-1] == {
        "view": "color_jitter",
        "class": None,
        "name": None,
        "confidence": None,
    }


def test_a_model_without_names_views_or_threshold_says_so():
    model = TinyDeployed(threshold=None, names=None, views=())
    answer = post(picture(), model=model).json()
    (said,) = answer["predictions"]
    assert (said["name"], said["accept"], said["views"]) == (None, None, [])
    assert answer["model"]["threshold"] is None


def test_in_a_tie_the_predicted_class_leads_the_list():
    class Tied(TinyDeployed):
        def predict(self, images):
            said = super().predict(images)
            said.probabilities[:] = 1 / 3
            said.classes[:] = 2
            return said

    (said,) = post(picture(), model=Tied()).json()["predictions"]
    assert [each["class"] for each in said["top"]] == [2, 0, 1]


@pytest.mark.parametrize("field", ["image", "images", "file", "files"])
def test_each_usual_field_name_is_taken(field):
    assert post(picture(), field=field).status_code == 200


def test_several_pictures_are_answered_in_their_order():
    colours = [(200, 10, 10), (10, 200, 10), (10, 10, 200), (180, 10, 10)]
    response = post(*[(f"{i}.png", picture(each)) for i, each in enumerate(colours)])
    said = response.json()["predictions"]
    assert [each["name"] for each in said] == ["red", "green", "blue", "red"]
    assert [each["file"] for each in said] == ["0.png", "1.png", "2.png", "3.png"]


def as_bytes(stored, kind, **options):
    file = io.BytesIO()
    stored.save(file, kind, **options)
    return file.getvalue()


RGB = Image.new("RGB", (16, 16), (200, 40, 30))
GREY16 = Image.fromarray(np.full((16, 16), 40_000, np.uint16))
KINDS = {
    "jpeg": as_bytes(RGB, "JPEG"),
    "webp": as_bytes(RGB, "WEBP", lossless=True),
    "bmp": as_bytes(RGB, "BMP"),
    "tiff": as_bytes(RGB, "TIFF"),
    "cmyk": as_bytes(RGB.convert("CMYK"), "JPEG"),
    "grey": as_bytes(RGB.convert("L"), "PNG"),
    "bilevel": as_bytes(RGB.convert("1"), "PNG"),
    "16 bit": as_bytes(GREY16, "PNG"),
    "rgba": as_bytes(RGB.convert("RGBA"), "PNG"),
    "palette": as_bytes(RGB.convert("P"), "PNG"),
    "animated gif": as_bytes(
        RGB, "GIF", save_all=True, append_images=[Image.new("RGB", (16, 16), (0, 0, 255))]
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_picture_is_read_as_collect_reads_it(kind):
    model, data = TinyDeployed(), KINDS[kind]
    (said,) = post(data, model=model).json()["predictions"]
    with Image.open(io.BytesIO(data)) as stored:
        stored.load()
        verdicts = model.predict(model.preprocessing.pixels(to_rgb(stored))[None])
    assert said["class"] == verdicts.classes[0]
    assert said["confidence"] == verdicts.confidence[0]


def test_exif_rotation_is_not_applied():
    halves = Image.new("RGB", (16, 16), (200, 40, 30))
    halves.paste((20, 20, 250), (0, 0, 16, 8))
    turned = Image.Exif()
    turned[0x0112] = 6
    plain, marked = as_bytes(halves, "PNG"), as_bytes(halves, "PNG", exif=turned)

    class Corner(TinyDeployed):
        def run(self, images):
            return super().run(np.ascontiguousarray(images[:, :, :2, :2]))

    first, second = post(plain, marked, model=Corner()).json()["predictions"]
    assert first["name"] == second["name"] == "blue"
    assert first["confidence"] == second["confidence"]


# What is refused


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_with_flipped_bytes_is_read_or_refused_and_nothing_else(kind):
    draws = np.random.default_rng(0)
    limits, preprocessing = Limits(pixels=10_000), Preprocessing(size=(8, 8), resize=16)
    for _ in range(60):
        data = np.frombuffer(KINDS[kind], np.uint8).copy()
        places = draws.integers(0, len(data), draws.integers(1, 9))
        data[places] = draws.integers(0, 256, len(places))
        upload = Upload(1, None, io.BytesIO(data[: draws.integers(1, len(data) + 1)].tobytes()))
        try:
            assert decode(upload, preprocessing, limits).shape == (8, 8, 3)
        except RefusedRequest as refused:
            assert refused.status in (413, 415, 422)


def png_header(width, height):
    """A PNG that claims a size and holds no pixels."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b""))


WHOLE = as_bytes(Image.effect_noise((64, 64), 90).convert("RGB"), "JPEG")
BAD = {
    "text": (b"no picture at all", 415, "not_an_image"),
    "a pickle in disguise": (pickle.dumps({"a": [1, 2]}), 415, "not_an_image"),
    "html": (b"<svg xmlns='http://www.w3.org/2000/svg'/>", 415, "not_an_image"),
    "postscript": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", 415, "not_an_image"),
    "an empty file": (b"", 422, "empty_file"),
    "a truncated jpeg": (WHOLE[: len(WHOLE) // 2], 422, "damaged_image"),
    "a truncated png": (picture()[:-30], 422, "damaged_image"),
    "only a header": (png_header(8, 8), 422, "damaged_image"),
    "pixels without a range": (
        as_bytes(Image.new("F", (8, 8)), "TIFF"),
        422,
        "unsupported_pixels",
    ),
    "a bomb": (png_header(20_000, 20_000), 413, "too_many_pixels"),
    "a larger bomb": (png_header(10_000, 10_000), 413, "too_many_pixels"),
    "a smaller bomb": (png_header(8_000, 8_000), 413, "too_many_pixels"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_refused_by_name_and_the_server_goes_on(kind):
    data, status, code = BAD[kind]

    async def go():
        async with client() as asked:
            good = ("images", ("good.png", picture()))
            files = [good, ("images", ("odd \N{SNOWMAN}.png", data)), good]
            bad = await asked.post("/predict", files=files)
            return bad, await asked.post("/predict", files=[good])

    bad, after = asyncio.run(go())
    assert "file 2 (odd \N{SNOWMAN}.png)" in refusal(bad, status, code)
    assert after.status_code == 200


def test_a_bomb_is_refused_before_it_is_decoded(monkeypatch):
    def fail(*_):
        raise AssertionError("decoded")

    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", fail)
    message = refusal(post(png_header(8_000, 8_000)), 413, "too_many_pixels")
    assert "8000 x 8000" in message and "50,000,000" in message


@pytest.mark.parametrize(
    ("size", "preprocessing"),
    [
        ((1, 1_000_000), Preprocessing(size=(8, 8), resize=64)),
        ((1_000_000, 1), Preprocessing(size=(8, 8), resize=64)),
        ((1, 40_000_000), Preprocessing(size=(8, 8), resize=(8, 8))),
    ],
)
def test_a_strip_that_resizing_would_blow_up_is_refused(size, preprocessing):
    model = TinyDeployed()
    model.preprocessing = preprocessing
    message = refusal(post(png_header(*size), model=model), 413, "too_many_pixels")
    assert "resized" in message


def test_the_limit_on_pixels_is_exact():
    limits = Limits(pixels=256)
    assert post(picture(size=(16, 16)), limits=limits).status_code == 200
    refusal(post(picture(size=(16, 17)), limits=limits), 413, "too_many_pixels")


def test_a_body_that_is_announced_too_large_is_refused():
    message = refusal(
        post(picture() + bytes(2000), limits=Limits(body_bytes=1000)), 413, "body_too_large"
    )
    assert "1,000 bytes" in message


def form(*parts, boundary="edge", end=True):
    """A multipart body, written by hand: parts are headers and bytes."""
    lines = b"".join(
        b"--%s\r\n%s\r\n\r\n%s\r\n" % (boundary.encode(), headers.encode(), data)
        for headers, data in parts
    )
    return lines + (b"--%s--\r\n" % boundary.encode() if end else b"")


FORM = {"content-type": "multipart/form-data; boundary=edge"}
IMAGE = 'Content-Disposition: form-data; name="image"; filename="a.png"'


def send(content, headers=FORM, limits=None, model=None):
    return ask("POST", "/predict", model, limits, content=content, headers=headers)


def test_a_body_that_does_not_say_how_large_it_is_is_counted_as_it_comes():
    taken = 0

    async def endless():
        nonlocal taken
        yield form((IMAGE, b""), end=False)
        for _ in range(100):
            taken += 100
            yield bytes(100)

    limits = Limits(body_bytes=1000)
    refusal(send(endless(), limits=limits), 413, "body_too_large")
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
        (form(), FORM, 422, "no_image"),
        (form((IMAGE, picture()), end=False), FORM, 400, "malformed_form"),
        (form(("Content-Disposition: form-data", b"x")), FORM, 422, "unknown_field"),
        (
            form(('Content-Disposition: form-data; name="path"', b"/etc")),
            FORM,
            422,
            "unknown_field",
        ),
        (
            form(('Content-Disposition: form-data; name="image"', b"/etc")),
            FORM,
            415,
            "not_an_image",
        ),
    ],
)
def test_a_bad_form_is_refused(content, headers, status, code):
    refusal(send(content, headers), status, code)


def test_a_part_without_a_file_name_is_a_picture_without_a_name():
    content = form(('Content-Disposition: form-data; name="image"', picture()))
    (said,) = send(content).json()["predictions"]
    assert said["file"] is None and said["name"] == "red"


def test_more_images_than_allowed_are_refused():
    limits = Limits(images=3)
    assert post(*3 * [picture()], limits=limits).status_code == 200
    assert "at most 3" in refusal(post(*4 * [picture()], limits=limits), 413, "too_many_images")


@pytest.mark.parametrize(
    "name", ["../../../etc/passwd", "/etc/passwd", "C:\\x.png", "a\x00b.png", 3000 * "x", "%2e%2e"]
)
def test_names_of_files_are_said_back_and_never_opened(name):
    opened = []

    def watch(event, arguments):
        if watching and event in ("open", "os.open", "os.mkdir", "tempfile.mkstemp"):
            opened.append(arguments[0])

    watching = False
    sys.addaudithook(watch)

    async def go():
        nonlocal watching
        async with client() as asked:
            files = [("image", ("first.png", picture()))]
            await asked.post("/predict", files=files)  # loads what is loaded on first use
            watching = True
            try:
                large = picture() + bytes(3_000_000)
                return await asked.post("/predict", files=[("image", (name, large))])
            finally:
                watching = False

    response = asyncio.run(go())
    assert response.status_code == 200
    assert opened == []
    said = response.json()["predictions"][0]["file"]
    assert said.isprintable() and len(said) <= 200


def test_unknown_paths_and_methods_are_refused_in_the_same_shape():
    assert "/nothing" in refusal(ask("GET", "/nothing"), 404, "not_found")
    refusal(ask("GET", "/../../etc/passwd"), 404, "not_found")
    response = ask("GET", "/predict")
    refusal(response, 405, "method_not_allowed")
    assert response.headers["allow"] == "POST"


class Gated(TinyDeployed):
    """Answers at once until its gate is shut, then when it is opened again."""

    def __init__(self):
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()

    def predict(self, images):
        assert self.gate.wait(30)
        return super().predict(images)


def test_a_request_that_takes_too_long_is_refused_and_the_server_is_known_to_be_stuck():
    model, limits = Gated(), Limits(timeout_s=0.2)

    async def go():
        async with client(model, limits) as asked:
            model.gate.clear()
            late = await asked.post("/predict", files={"image": picture()})
            async with asyncio.timeout(20):
                while (stuck := await asked.get("/healthz")).status_code == 200:
                    await asyncio.sleep(0.01)
                model.gate.set()
                while (await asked.get("/healthz")).status_code != 200:
                    await asyncio.sleep(0.01)
            return late, stuck

    late, stuck = asyncio.run(go())
    assert "0.2 seconds" in refusal(late, 408, "timeout")
    assert (stuck.status_code, stuck.json()["status"]) == (503, "stuck")


def test_a_body_that_never_ends_is_refused_in_time():
    async def slow():
        yield form((IMAGE, b""), end=False)
        await asyncio.sleep(60)

    refusal(send(slow(), limits=Limits(timeout_s=0.2)), 408, "timeout")


def test_a_full_queue_sends_clients_away_for_a_while():
    model, limits = Gated(), Limits(images=2, queue=2, batch=1, wait_s=0.0)

    async def go():
        async with client(model, limits) as asked:
            model.gate.clear()
            requests = [
                asyncio.create_task(asked.post("/predict", files={"image": picture()}))
                for _ in range(8)
            ]
            async with asyncio.timeout(20):
                while sum(each.done() for each in requests) < 5:
                    await asyncio.sleep(0.01)
            model.gate.set()
            answers = [await each for each in requests]
            return answers, await asked.post("/predict", files={"image": picture()})

    answers, after = asyncio.run(go())
    refused = [each for each in answers if each.status_code != 200]
    assert len(refused) in (5, 6)  # two wait, and one is run, unless its turn came too late
    for each in refused:
        refusal(each, 429, "busy")
        assert each.headers["retry-after"] == "1"
    assert after.status_code == 200


def test_all_requests_together_hold_no_more_than_so_many_bytes():
    intake = Intake(Limits(body_bytes=100))
    with ExitStack() as full:
        for _ in range(BODIES_HELD):
            full.enter_context(intake.room())(100)
        with intake.room() as one_more, pytest.raises(RefusedRequest, match="busy"):
            one_more(1)
    assert intake.held == 0
    with intake.room() as take:
        take(60)
        with pytest.raises(RefusedRequest, match="body_too_large"):
            take(41)
        assert intake.held == 60
    assert intake.held == 0


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"body_bytes": 0}, "body_bytes"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"wait_s": -1.0}, "wait_s"),
        ({"images": 300}, "queue"),
        ({"pixels": 10**9}, "Pillow"),
    ],
)
def test_limits_that_make_no_sense_are_refused(given, word):
    with pytest.raises(ValueError, match=word):
        Limits(**given)


# Batches


def colour_of(i):
    return (100 + i % 100, 3 * (i // 100) % 90, i * 7 % 90)


def test_requests_at_once_share_batches_and_each_gets_its_own_answer():
    model, limits = TinyDeployed(), Limits(batch=8, wait_s=0.2)

    async def go():
        async with client(model, limits) as asked:
            model.batches.clear()
            requests = [
                asked.post("/predict", files={"image": picture(colour_of(i))}) for i in range(40)
            ]
            return await asyncio.gather(*requests)

    answers = asyncio.run(go())
    assert max(model.batches) <= 8 and len(model.batches) < 20 and sum(model.batches) == 40
    for i, each in enumerate(answers):
        pixels = np.full((1, 8, 8, 3), colour_of(i), np.uint8)
        alone = TinyDeployed().predict(pixels).confidence[0]
        assert each.json()["predictions"][0]["confidence"] == pytest.approx(alone, abs=1e-12)


@pytest.fixture
def batcher():
    made = []

    def make(predict, **limits):
        made.append(Batcher(predict, Limits(**limits)))
        made[-1].start()
        return made[-1]

    yield make
    for each in made:
        each.stop()


def pixels(colour=(200, 0, 0), size=(8, 8)):
    return np.full((*size, 3), colour, np.uint8)


def test_what_was_given_up_is_not_run(batcher):
    model, gate = TinyDeployed(), threading.Event()

    def predict(images):
        assert gate.wait(10)
        return model.predict(images)

    work = batcher(predict, batch=1, wait_s=0.0)
    (first,) = work.submit([pixels()])
    while work.waiting:
        time.sleep(0.001)  # until the first is being run
    given_up, kept = work.submit([pixels(), pixels((0, 200, 0))])
    assert given_up.cancel()
    gate.set()
    assert first.result(10)[0].classes[0] == 0 and kept.result(10)[0].classes[0] == 1
    assert model.batches == [1, 1]


def test_what_was_given_up_makes_room_in_a_full_queue(batcher):
    gate, model = threading.Event(), TinyDeployed()

    def predict(images):
        assert gate.wait(10)
        return model.predict(images)

    work = batcher(predict, batch=1, wait_s=0.0, queue=4, images=4)
    work.submit([pixels()])
    while work.waiting:
        time.sleep(0.001)
    waiting = work.submit(4 * [pixels()])
    with pytest.raises(RefusedRequest, match="busy"):
        work.submit([pixels()])
    for each in waiting:
        each.cancel()
    (last,) = work.submit([pixels()])
    gate.set()
    last.result(10)


def test_images_of_several_sizes_are_run_apart(batcher):
    model = TinyDeployed(size=None)
    work = batcher(model.predict, wait_s=0.05)
    sizes = [(8, 8), (4, 8), (8, 8), (4, 8)]
    colours = [(200, 0, 0), (0, 200, 0), (0, 0, 200), (200, 0, 0)]
    waiting = work.submit([pixels(*each) for each in zip(colours, sizes, strict=True)])
    rows = [each.result(10) for each in waiting]
    assert [verdicts.classes[i] for verdicts, i in rows] == [0, 1, 2, 0]
    assert model.batches == [2, 2]


def test_an_image_that_fails_does_not_fail_the_others_of_its_batch(batcher):
    model = TinyDeployed()

    def predict(images):
        if (images == 66).all((1, 2, 3)).any():
            raise RuntimeError("cannot stand 66")
        return model.predict(images)

    work = batcher(predict, wait_s=0.05)
    good, bad, other = work.submit([pixels(), pixels((66, 66, 66)), pixels((0, 200, 0))])
    assert good.result(10)[0].classes[0] == 0 and other.result(10)[0].classes[0] == 1
    with pytest.raises(RuntimeError, match="66"):
        bad.result(10)
    assert work.works


def test_a_stopped_batcher_runs_what_waits_and_takes_nothing_more(batcher):
    work = batcher(TinyDeployed(delay_s=0.02).predict, batch=1)
    waiting = work.submit(5 * [pixels()])
    work.stop()
    assert all(each.done() for each in waiting) and not work.works
    with pytest.raises(RefusedRequest, match="stopping"):
        work.submit([pixels()])


def test_a_model_that_fails_is_an_error_without_details_and_the_server_goes_on():
    class Failing(TinyDeployed):
        def predict(self, images):
            if (images[..., 2] > 200).any():
                raise RuntimeError("secret path")
            return super().predict(images)

    async def go():
        async with client(Failing()) as asked:
            bad = await asked.post("/predict", files={"image": picture((0, 0, 255))})
            return bad, await asked.post("/predict", files={"image": picture()})

    bad, after = asyncio.run(go())
    assert "secret" not in refusal(bad, 500, "model_failed")
    assert after.status_code == 200


# Over real sockets


def test_a_client_that_hangs_up_is_not_waited_for():
    model, limits = Gated(), Limits(batch=1, wait_s=0.0)
    body = form((IMAGE, picture()))
    head = (
        "POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=edge\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with running(model, limits) as (host, port):

        def wait_for(line):
            until = time.monotonic() + 20
            while line not in httpx.get(f"http://{host}:{port}/metrics").text.splitlines():
                assert time.monotonic() < until, f"never came: {line}"
                time.sleep(0.01)

        model.batches.clear()
        model.gate.clear()
        lines = [socket.create_connection((host, port)) for _ in range(6)]
        for line in lines:
            line.sendall(head.encode() + body)
        wait_for("rightly_queue_images 5.0")  # the first is being run
        for line in lines:
            line.close()
        wait_for('rightly_requests_total{route="/predict",status="499"} 6.0')
        model.gate.set()
        answer = httpx.post(f"http://{host}:{port}/predict", files={"image": picture()})
    assert answer.status_code == 200
    assert len(model.batches) == 2  # the first, and the one whose client waited


@pytest.mark.parametrize("chunked", [True, False])
def test_a_client_that_sends_too_much_gets_to_see_why(chunked):
    def chunks():
        yield form((IMAGE, b""), end=False)
        for _ in range(50):
            yield bytes(100_000)

    content = chunks() if chunked else b"".join(chunks())
    with running(limits=Limits(body_bytes=1_000_000)) as (host, port):
        response = httpx.post(f"http://{host}:{port}/predict", content=content, headers=FORM)
    refusal(response, 413, "body_too_large")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_serves_and_stops_in_good_order(tmp_path, number):
    script = tmp_path / "served.py"
    script.write_text(
        "import sys\n"
        "import rightly.deployment.runtime as deployed\n"
        "from rightly.cli import main\n"
        "from tests.serving.fake_model import TinyDeployed\n"
        "deployed.open_deployed = lambda path: TinyDeployed()\n"
        "sys.exit(main(['serve', 'model.onnx', '--port', '0']))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-u", str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": ":".join([str(HERE.parent), *sys.path])},
    )
    served, where = process.stdout.readline(), process.stdout.readline()
    assert "ca_views on brightest_channel, 3 classes, threshold 0.6" in served
    url = re.search(r"http://127\.0\.0\.1:\d+", where).group()
    assert httpx.post(f"{url}/predict", files={"image": picture()}).status_code == 200
    process.send_signal(number)
    _, told = process.communicate(timeout=20)
    assert process.returncode == 0 and told.strip() == "stopped"


def test_the_command_says_in_one_line_what_is_wrong(monkeypatch, capsys):
    monkeypatch.setattr("rightly.deployment.runtime.open_deployed", lambda path: TinyDeployed())
    with listen("127.0.0.1", 0) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", "model.onnx", "--port", port]) == 2
    assert main(["serve", "model.onnx", "--port", "99999"]) == 2
    assert main(["serve", "model.onnx", "--max-body-mb", "0"]) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 3
    assert "cannot listen" in told[0] and port in told[0]
    assert "65535" in told[1] and "--max-body-mb" in told[2]


# What else there is


def test_the_card_is_the_identity_of_the_model_in_strict_json():
    response = ask("GET", "/model")
    card = json.loads(response.text, parse_constant=pytest.fail)
    assert card["method"] == "ca_views" and card["class_names"] == ["red", "green", "blue"]
    assert card["threshold"]["spread"] is None  # nan, which JSON does not know


def test_health_says_ok():
    response = ask("GET", "/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok", "waiting": 0})


def test_counters_count_requests_predictions_and_batches():
    async def go():
        async with client() as asked:
            for colour in ((250, 0, 0), (130, 120, 110)):
                await asked.post("/predict", files={"image": picture(colour)})
            await asked.post("/predict", files={"image": b"no"})
            await asked.get("/some/secret/path")
            return await asked.get("/metrics")

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


def test_other_origins_are_let_in_only_by_name():
    origin = {"origin": "https://example.org"}
    assert "access-control-allow-origin" not in ask("GET", "/model", headers=origin).headers
    allowed = ask("GET", "/model", origins=("https://example.org",), headers=origin)
    assert allowed.headers["access-control-allow-origin"] == "https://example.org"
    other = {"origin": "https://example.com"}
    refused = ask("GET", "/model", origins=("https://example.org",), headers=other)
    assert "access-control-allow-origin" not in refused.headers


def test_the_schema_names_every_field_that_is_sent():
    schema = ask("GET", "/openapi.json").json()
    operation = schema["paths"]["/predict"]["post"]
    assert {"200", "400", "408", "413", "415", "422", "429"} <= set(operation["responses"])
    assert "multipart/form-data" in operation["requestBody"]["content"]
    (said,) = post(picture()).json()["predictions"]
    fields = schema["components"]["schemas"]
    assert set(fields["Prediction"]["properties"]) == set(said)
    assert set(fields["Choice"]["properties"]) == set(said["top"][0])
    assert set(fields["ViewOpinion"]["properties"]) == set(said["views"][0])
    assert operation["responses"]["413"]["content"]["application/json"]["schema"]["$ref"].endswith(
        "ErrorAnswer"
    )


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_pages_fetch_nothing_from_elsewhere_and_run_only_what_they_bring(path):
    response = ask("GET", path)
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert not re.search(r"(?:src|href)=[\"']?(?:https?:)?//", response.text)
    assert not re.search(r"\son\w+=|\sstyle=|javascript:", response.text)
    assert "{{" not in response.text


def test_the_docs_escape_what_a_request_says():
    text = ask("GET", "/docs", headers={"host": "x<script>alert(1)</script>"}).text
    assert "<script>" not in text and "/predict" in text and "curl -F image=@" in text


@pytest.mark.slow
def test_a_thousand_requests_are_answered_each_for_its_own_picture_in_flat_memory(capsys):
    """Load from a second process, this one, 32 requests at once."""
    at_once, margin_mb = 32, 16

    pictures = [picture(colour_of(i), size=(320, 240)) for i in range(1000)]

    async def load(url, count, seconds):
        turns = asyncio.Semaphore(at_once)
        async with httpx.AsyncClient(timeout=60) as asked:

            async def one(i):
                files = {"image": (f"{i}", pictures[i])}
                async with turns:
                    started = time.perf_counter()
                    answer = await asked.post(f"{url}/predict", files=files)
                    seconds.append(time.perf_counter() - started)
                return answer

            return await asyncio.gather(*[one(i) for i in range(count)])

    with serving_process() as (url, pid):
        asyncio.run(load(url, 300, []))  # until what is allocated once has been
        before, seconds = resident_mb(pid), []
        answers = asyncio.run(load(url, 1000, seconds))
        after = resident_mb(pid)
    alone = TinyDeployed().predict(
        np.stack([np.full((8, 8, 3), colour_of(i), np.uint8) for i in range(1000)])
    )
    for i, answer in enumerate(answers):
        assert answer.status_code == 200
        (said,) = answer.json()["predictions"]
        assert said["file"] == f"{i}" and said["class"] == alone.classes[i]
        assert said["confidence"] == pytest.approx(alone.confidence[i], abs=1e-12)
    p50, p99 = np.quantile(seconds, [0.5, 0.99])
    with capsys.disabled():
        sys.stdout.write(
            f"\nserving: 1,000 of 1,000 answered, {at_once} at once, p50 {1000 * p50:.0f} ms, "
            f"p99 {1000 * p99:.0f} ms, memory {before:.1f} MB before, {after:.1f} MB after\n"
        )
    assert after - before < margin_mb


def resident_mb(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024
