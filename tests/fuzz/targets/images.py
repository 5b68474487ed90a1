"""Decoding of uploaded images, as the server does it: every format, chunks with right checksums."""

import io
import struct
import zlib
from contextlib import suppress
from pathlib import Path
from random import Random

import numpy as np
from PIL import Image

from rightly.classifiers.preprocessing import Preprocessing
from rightly.serving import Limits
from rightly.serving.image_uploads import decode_upload
from rightly.serving.limits import RefusedRequest
from rightly.serving.uploads import Upload
from tests.fuzz.mutators import INTEGERS, mutate_bytes
from tests.fuzz.target import Files, Target

NAME = "a.png"  # whatever the format: the server never looks at it
PREPROCESSINGS = (Preprocessing(size=(8, 8)), Preprocessing(size=(8, 8), resize=12))
REFUSALS = {
    "damaged_image": 422,
    "empty_file": 422,
    "not_an_image": 415,
    "too_many_pixels": 413,
    "unsupported_pixels": 422,
}
# Chunks of PNG that something is done with.
CHUNKS = (b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"iCCP", b"eXIf", b"zTXt", b"iTXt", b"acTL")


def make_samples() -> list[Files]:
    pixels = np.random.default_rng(0).integers(0, 256, (14, 18, 3), np.uint8)
    image = Image.fromarray(pixels)
    turned = Image.Exif()
    turned[0x0112] = 6
    turned[0x010F] = "maker"
    deep = Image.fromarray(pixels[..., 0].astype(np.uint16) * 257)
    frames = [image.convert("P"), image.rotate(90).convert("P")]
    return [
        _encode(image, "JPEG", exif=turned),
        _encode(image, "JPEG", progressive=True, quality=40),
        _encode(image.convert("CMYK"), "JPEG"),
        _encode(image, "PNG"),
        _encode(image.convert("P"), "PNG", transparency=3),
        _encode(image.convert("LA"), "PNG"),
        _encode(deep, "PNG"),
        _encode(image, "WEBP", lossless=True, exif=turned),
        _encode(image.convert("RGBA"), "WEBP"),
        _encode(image, "BMP"),
        _encode(image.convert("1"), "BMP"),
        _encode(frames[0], "GIF", save_all=True, append_images=frames[1:]),
        _encode(image, "TIFF"),
        _encode(image, "TIFF", compression="tiff_lzw"),
        _encode(image, "TIFF", compression="tiff_adobe_deflate"),
        _encode(image, "TIFF", compression="jpeg"),
        _encode(deep, "TIFF"),
    ]


def _encode(image: Image.Image, kind: str, **options: object) -> Files:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return {NAME: file.getvalue()}


def mutate(random: Random, samples: list[Files]) -> Files:
    data = random.choice(samples)[NAME]
    if data.startswith(b"\x89PNG") and random.random() < 0.8:
        data = _change_chunks(random, data)
    elif random.random() < 0.05:
        data = data[: random.randint(0, 30)] + random.randbytes(random.choice((0, 8, 400)))
    else:
        data = mutate_bytes(random, data, random.choice(samples)[NAME])
    return {NAME: data}


def _change_chunks(random: Random, data: bytes) -> bytes:
    """A PNG with changed chunks, whose lengths and checksums fit."""
    chunks, at = [], 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + length]))
        at += 12 + length
    for _ in range(random.randint(1, 3)):
        i = random.randrange(len(chunks))
        kind, content = chunks[i]
        action = random.random()
        if action < 0.25 and kind == b"IHDR":
            side = struct.pack(">I", random.choice((*INTEGERS, 7_000, 30_000)) % 2**32)
            place = random.choice((0, 4))
            chunks[i] = (kind, content[:place] + side + content[place + 4 :])
        elif action < 0.35 and kind == b"IDAT":
            with suppress(zlib.error):  # a second change may come upon the first
                pixels = zlib.decompressobj().decompress(content)
                chunks[i] = (kind, zlib.compress(mutate_bytes(random, pixels, pixels)))
        elif action < 0.7:
            chunks[i] = (kind, mutate_bytes(random, content, data))
        elif action < 0.8:
            chunks.insert(i, (random.choice(CHUNKS), random.choice(chunks)[1]))
        elif action < 0.85:
            bomb = b"a\0\0" + zlib.compress(bytes(random.choice((10**5, 2 * 10**7))))
            chunks.insert(1, (random.choice((b"zTXt", b"iCCP")), bomb))
        elif action < 0.92:
            chunks[i] = (random.choice(CHUNKS), content)
        elif len(chunks) > 1:
            del chunks[i]
    return data[:8] + b"".join(
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in chunks
    )


def read(folder: Path) -> None:
    data = (folder / NAME).read_bytes()
    for preprocessing in PREPROCESSINGS:
        try:
            pixels = decode_upload(Upload(1, NAME, io.BytesIO(data)), preprocessing, Limits())
        except RefusedRequest as refused:
            assert REFUSALS.get(refused.code) == refused.status, refused
            raise
        assert pixels.shape == (8, 8, 3) and pixels.dtype == np.uint8, pixels.shape


# Fifty million pixels, in the modes that they pass on their way to RGB.
TARGET = Target("images", (RefusedRequest,), make_samples, mutate, read, 1024 * 2**20)
