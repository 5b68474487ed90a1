"""Photos with all eight EXIF orientations, as real files: everywhere they are turned upright."""

import io

import numpy as np
import pytest
from PIL import Image

import rightly
from rightly.classifiers import Preprocessing
from rightly.datasets.decoding import ImageFiles, to_image
from rightly.reporting.html.study import make_thumbnail
from rightly.serving import Limits
from rightly.serving.image_uploads import decode_upload
from rightly.serving.uploads import Upload

TURN = Image.Transpose
# What a camera that is held so does to the upright picture, by EXIF orientation.
CAMERAS = {
    1: None,
    2: TURN.FLIP_LEFT_RIGHT,
    3: TURN.ROTATE_180,
    4: TURN.FLIP_TOP_BOTTOM,
    5: TURN.TRANSPOSE,
    6: TURN.ROTATE_90,
    7: TURN.TRANSVERSE,
    8: TURN.ROTATE_270,
}
SHOWN = Preprocessing(size=(32, 48))


def upright():
    """A picture that no turn leaves as it is, in blocks that JPEG keeps."""
    blocks = np.random.default_rng(0).integers(0, 256, (2, 3, 3)).astype(np.uint8)
    return Image.fromarray(blocks.repeat(16, 0).repeat(16, 1))


def take(orientation, kind="JPEG", mode="RGB"):
    picture = upright().convert(mode)
    turn = CAMERAS[orientation]
    stored = picture if turn is None else picture.transpose(turn)
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"JPEG": {"quality": 95, "subsampling": 0}, "WEBP": {"lossless": True}}
    data = io.BytesIO()
    stored.save(data, kind, exif=exif, **options.get(kind, {}))
    return data.getvalue()


def check(pixels, mode="RGB"):
    expected = np.asarray(upright().convert(mode).convert("RGB")).astype(int)
    assert pixels.shape == expected.shape
    assert np.abs(pixels.astype(int) - expected).mean() < 4


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", CAMERAS)
def test_a_file_is_read_upright(tmp_path, orientation, kind):
    (tmp_path / "a").write_bytes(data := take(orientation, kind))
    check(SHOWN.pixels(ImageFiles(tmp_path, ["a"])(0)))
    check(SHOWN.pixels(to_image(Image.open(io.BytesIO(data)), "a")))
    check(decode_upload(Upload(1, "a", io.BytesIO(data)), SHOWN, Limits()))


@pytest.mark.parametrize("mode", ["L", "CMYK"])
@pytest.mark.parametrize("orientation", CAMERAS)
def test_a_converted_file_is_read_upright(tmp_path, orientation, mode):
    (tmp_path / "a").write_bytes(take(orientation, "JPEG", mode))
    check(SHOWN.pixels(ImageFiles(tmp_path, ["a"])(0)), mode)


def test_all_orientations_are_collected_alike_and_the_setting_is_recorded(tmp_path):
    (tmp_path / "images").mkdir()
    for orientation in CAMERAS:
        (tmp_path / "images" / f"{orientation}.jpg").write_bytes(take(orientation))

    def classify(images):
        return images[:, :, :16, :16].mean((2, 3)) * 20

    out = tmp_path / "preds"
    collected, _ = rightly.collect(
        classify, tmp_path / "images", views=(), preprocessing=SHOWN, out=out
    )
    assert float((collected.logits - collected.logits[0]).abs().max()) < 0.3
    recorded = collected.source.classifier["preprocessing"]
    assert recorded["orientation"] == "exif"
    images = rightly.datasets.open_images(tmp_path / "images")
    assert all(make_thumbnail(images, i) for i in range(8))
    as_stored = Preprocessing((32, 48), orientation="stored")
    sideways, _ = rightly.collect(classify, tmp_path / "images", views=(), preprocessing=as_stored)
    assert float((sideways.logits - collected.logits).abs().max()) > 1


def test_settings_without_orientation_are_of_older_versions():
    values = SHOWN.as_dict()
    assert Preprocessing.from_dict(values) == SHOWN
    del values["orientation"]
    assert Preprocessing.from_dict(values).orientation == "stored" != SHOWN.orientation
    with pytest.raises(ValueError, match="orientation must be one of exif, stored"):
        Preprocessing(orientation="up")


def test_damaged_exif_leaves_the_picture_as_it_is():
    picture = upright()
    picture.info["exif"] = b"Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x09\x01\x12"
    check(SHOWN.pixels(picture))
    exif = Image.Exif()
    exif[0x0112] = 99
    picture.info["exif"] = exif.tobytes()
    check(SHOWN.pixels(picture))
