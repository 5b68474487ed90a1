"""Uploaded files: every kind that is decoded, and every kind that is refused."""

import asyncio
import io
import pickle
import struct
import zlib

import numpy as np
import pytest
from PIL import Image, ImageFile

from rightly.classifiers.preprocessing import Preprocessing
from rightly.datasets.decoding import to_rgb
from rightly.serving import Limits
from rightly.serving.image_uploads import decode_upload
from rightly.serving.limits import RefusedRequest
from rightly.serving.uploads import Upload
from tests.serving.clients import check_refusal, encode, open_client, post_files
from tests.serving.fake_model import BrightestChannel, make_file

RGB = Image.new("RGB", (16, 16), (200, 40, 30))


GREY16 = Image.fromarray(np.full((16, 16), 40_000, np.uint16))


KINDS = {
    "jpeg": encode(RGB, "JPEG"),
    "webp": encode(RGB, "WEBP", lossless=True),
    "bmp": encode(RGB, "BMP"),
    "tiff": encode(RGB, "TIFF"),
    "cmyk": encode(RGB.convert("CMYK"), "JPEG"),
    "grey": encode(RGB.convert("L"), "PNG"),
    "bilevel": encode(RGB.convert("1"), "PNG"),
    "16 bit": encode(GREY16, "PNG"),
    "rgba": encode(RGB.convert("RGBA"), "PNG"),
    "palette": encode(RGB.convert("P"), "PNG"),
    "animated gif": encode(
        RGB, "GIF", save_all=True, append_images=[Image.new("RGB", (16, 16), (0, 0, 255))]
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_image_is_read_as_collect_reads_it(kind):
    model, data = BrightestChannel(), KINDS[kind]
    (prediction,) = post_files(data, model=model).json()["predictions"]
    with Image.open(io.BytesIO(data)) as stored:
        stored.load()
        outputs = model.predict(model.preprocessing.pixels(to_rgb(stored))[None])
    assert prediction["class"] == outputs.classes[0]
    assert prediction["confidence"] == outputs.confidence[0]


def test_a_photo_is_turned_upright_unless_an_older_file_says_as_stored():
    halves = Image.new("RGB", (16, 16), (200, 40, 30))
    halves.paste((20, 20, 250), (0, 0, 16, 8))
    turned = Image.Exif()
    turned[0x0112] = 3
    plain, marked = encode(halves, "PNG"), encode(halves, "PNG", exif=turned)

    class Corner(BrightestChannel):
        def run(self, images, shift_estimate=None):
            return super().run(np.ascontiguousarray(images[:, :, :2, :2]), shift_estimate)

    model = Corner()
    first, second = post_files(plain, marked, model=model).json()["predictions"]
    assert (first["name"], second["name"]) == ("blue", "red")
    values = model.preprocessing.as_dict()
    del values["orientation"]
    model.preprocessing = Preprocessing.from_dict(values)
    first, second = post_files(plain, marked, model=model).json()["predictions"]
    assert first["name"] == second["name"] == "blue"


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_with_flipped_bytes_is_read_or_refused_and_nothing_else(kind):
    draws = np.random.default_rng(0)
    limits, preprocessing = Limits(max_pixels=10_000), Preprocessing(size=(8, 8), resize=16)
    for _ in range(60):
        data = np.frombuffer(KINDS[kind], np.uint8).copy()
        places = draws.integers(0, len(data), draws.integers(1, 9))
        data[places] = draws.integers(0, 256, len(places))
        upload = Upload(1, None, io.BytesIO(data[: draws.integers(1, len(data) + 1)].tobytes()))
        try:
            assert decode_upload(upload, preprocessing, limits).shape == (8, 8, 3)
        except RefusedRequest as refused:
            assert refused.status in (413, 415, 422)


def make_png_header(width, height):
    """A PNG that claims a size and holds no pixels."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b""))


WHOLE = encode(Image.effect_noise((64, 64), 90).convert("RGB"), "JPEG")


BAD = {
    "text": (b"no picture at all", 415, "not_an_image"),
    "a pickle in disguise": (pickle.dumps({"a": [1, 2]}), 415, "not_an_image"),
    "html": (b"<svg xmlns='http://www.w3.org/2000/svg'/>", 415, "not_an_image"),
    "postscript": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", 415, "not_an_image"),
    "an empty file": (b"", 422, "empty_file"),
    "a truncated jpeg": (WHOLE[: len(WHOLE) // 2], 422, "damaged_image"),
    "a truncated png": (make_file()[:-30], 422, "damaged_image"),
    "only a header": (make_png_header(8, 8), 422, "damaged_image"),
    "pixels without a range": (
        encode(Image.new("F", (8, 8)), "TIFF"),
        422,
        "unsupported_pixels",
    ),
    "a bomb": (make_png_header(20_000, 20_000), 413, "too_many_pixels"),
    "a larger bomb": (make_png_header(10_000, 10_000), 413, "too_many_pixels"),
    "a smaller bomb": (make_png_header(8_000, 8_000), 413, "too_many_pixels"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_refused_by_name_and_the_server_goes_on(kind):
    data, status, code = BAD[kind]

    async def go():
        async with open_client() as http:
            good = ("images", ("good.png", make_file()))
            files = [good, ("images", ("odd \N{SNOWMAN}.png", data)), good]
            bad = await http.post("/predict", files=files)
            return bad, await http.post("/predict", files=[good])

    bad, after = asyncio.run(go())
    assert "file 2 (odd \N{SNOWMAN}.png)" in check_refusal(bad, status, code)
    assert after.status_code == 200


def test_a_bomb_is_refused_before_it_is_decoded(monkeypatch):
    load = ImageFile.ImageFile.load

    def load_small(self):
        assert self.width < 8_000, "decoded"
        return load(self)

    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", load_small)
    message = check_refusal(post_files(make_png_header(8_000, 8_000)), 413, "too_many_pixels")
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
    model = BrightestChannel()
    model.preprocessing = preprocessing
    message = check_refusal(post_files(make_png_header(*size), model=model), 413, "too_many_pixels")
    assert "resized" in message


def test_the_limit_on_pixels_is_exact():
    limits = Limits(max_pixels=256)
    assert post_files(make_file(size=(16, 16)), limits=limits).status_code == 200
    check_refusal(post_files(make_file(size=(16, 17)), limits=limits), 413, "too_many_pixels")
