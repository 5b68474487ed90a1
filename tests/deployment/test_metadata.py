"""What a file says about itself, and which of it is refused."""

import json

import pytest

from rightly.deployment.metadata import VERSION, check_metadata, parse_metadata, read_config
from tests.deployment.tiny_onnx import ADAPTATION, METADATA


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
        (
            json.dumps(METADATA | {"version": VERSION - 1}),
            f"format version {VERSION - 1}, but this rightly",
        ),
        (json.dumps(METADATA | {"version": 99}), "update rightly, or write it with"),
        (json.dumps(METADATA | {"preprocessing": None}), "damaged metadata"),
        (json.dumps(METADATA | {"preprocessing": {"rotate": 3}}), "damaged metadata"),
        (json.dumps(METADATA | {"decision": {}}), "damaged metadata"),
        (json.dumps(METADATA | {"passes": "many"}), "damaged metadata"),
        (
            json.dumps(METADATA | {"shift_adaptation": ADAPTATION | {"weights": [0.5, 0.0]}}),
            "damaged metadata",
        ),
        (
            json.dumps(METADATA | {"shift_adaptation": ADAPTATION | {"kind_estimates": []}}),
            "damaged metadata",
        ),
    ],
)
def test_what_cannot_be_relied_on_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse_metadata(text, "m.onnx")


DRIFT = {
    "reference": [2.0, 2.0, 2.0],
    "centres": [[2.0, 0.8, 1.0]] * 3,
    "scale": [1.0, 0.2, 0.0],
    "allowance": [0.1, 0.1, 0.0],
    "counts": [5, 4, 0],
    "rows": [[0.1, 0.2, 0.0], [-0.1, 0.0, 0.0]],
    "row_classes": [0, 1],
    "row_labels": [0, 2],
}


def test_drift_is_read_if_it_is_whole():
    values = METADATA | {"drift": DRIFT}
    assert check_metadata(values, "m.onnx") == values


@pytest.mark.parametrize(
    "change",
    [
        {"counts": [0, 0, 0]},
        {"reference": 3},
        {"reference": [2.0], "centres": [[2.0, 0.8, 1.0]], "counts": [5], "row_labels": [0, 0]},
        {"rows": [[0.1, 0.2]] * 2},
        {"row_classes": [0, 3]},
        {"row_labels": [0]},
        {"scale": [-1.0, 0.0, 0.0]},
        {"more": 1},
    ],
)
def test_drift_that_would_fail_at_work_is_refused(change):
    with pytest.raises(ValueError, match="damaged metadata"):
        check_metadata(METADATA | {"drift": DRIFT | change}, "m.onnx")


def test_a_missing_entry_is_named():
    values = {name: value for name, value in METADATA.items() if name != "views"}
    with pytest.raises(ValueError, match="views"):
        check_metadata(values, "m.onnx")


def test_a_folder_without_config_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"must hold a config\.json"):
        read_config(tmp_path)
