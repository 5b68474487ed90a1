"""What a file says about itself, and which of it is refused."""

import json

import pytest

from rightly.deployment.metadata import VERSION, check_metadata, parse_metadata, read_config
from tests.deployment.tiny_onnx import METADATA


def test_metadata_are_read_from_json_and_from_a_folder(tmp_path):
    assert parse_metadata(json.dumps(METADATA), "m.onnx") == METADATA
    (tmp_path / "config.json").write_text(json.dumps(METADATA))
    assert read_config(tmp_path) == METADATA


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "m.onnx has no Rightly metadata: write it with rightly export"),
        ("[]", "no Rightly metadata"),
        ('{"format": "other"}', "no Rightly metadata"),
        ("{", "damaged metadata"),
        (json.dumps(METADATA | {"version": VERSION - 1}), "format version 1, but this rightly"),
        (json.dumps(METADATA | {"version": 99}), "use the rightly that wrote it, or write it with"),
        (json.dumps(METADATA | {"preprocessing": None}), "damaged metadata"),
        (json.dumps(METADATA | {"preprocessing": {"rotate": 3}}), "damaged metadata"),
        (json.dumps(METADATA | {"threshold": {}}), "damaged metadata"),
        (json.dumps(METADATA | {"passes": "many"}), "damaged metadata"),
    ],
)
def test_what_cannot_be_relied_on_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse_metadata(text, "m.onnx")


def test_a_missing_entry_is_named():
    values = {name: value for name, value in METADATA.items() if name != "views"}
    with pytest.raises(ValueError, match="views"):
        check_metadata(values, "m.onnx")


def test_a_folder_without_config_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"must hold a config\.json"):
        read_config(tmp_path)
