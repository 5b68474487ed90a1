"""Files of calibrators: what they hold, and which are refused."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

import rightly
from tests.conftest import make


@pytest.fixture
def path(tmp_path):
    rightly.calibrator("ca_views", seed=3).fit(*make(n=80)).save(tmp_path / "a.safetensors")
    return tmp_path / "a.safetensors"


def test_arguments_travel_along(path):
    loaded = rightly.load_calibrator(path)
    assert loaded.method == "ca_views" and loaded.arguments == {"seed": 3}
    assert loaded.view_names == ("view0", "view1", "view2")


@pytest.mark.parametrize(
    "damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b"\x80\x04K\x01."]
)
def test_damaged_files_are_refused(path, damage):
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match="not a whole safetensors file"):
        rightly.load_calibrator(path)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"rightly-calibrator", b"another-calibrator", "not a calibrator of rightly"),
        (b'"version":"2"', b'"version":"9"', "format version 9.*fit again"),
        (b"ca_views", b"xx_views", "method must be one of"),
        (b"class_count", b"class_cuont", "damaged header"),
    ],
)
def test_files_of_another_kind_are_refused_with_the_reason(path, old, new, words):
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))
    with pytest.raises(ValueError, match=words):
        rightly.load_calibrator(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere.safetensors"):
        rightly.load_calibrator(tmp_path / "nowhere.safetensors")


def test_a_calibrator_without_a_name_says_how_to_get_one(tmp_path):
    from rightly.calibrators.spline import Spline

    with pytest.raises(ValueError, match=r"rightly.calibrator\(name\)"):
        Spline().fit(*make(n=50)).save(tmp_path / "a.safetensors")


def rewrite(path, **changes):
    """The same file with other values in its header."""
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        header = file.metadata()
    save_file(load_file(path), path, header | changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"threshold": '"high"'}, "damaged header: threshold and record must be"),
        ({"record": "[1]"}, "damaged header: threshold and record must be"),
        ({"arguments": "{seed"}, "damaged header"),
        ({"arguments": json.dumps({"sides": 3})}, "damaged header.*sides"),
        ({"version": "1"}, "format version 1, but this rightly reads 2: .*fit again"),
    ],
)
def test_a_header_that_makes_no_sense_is_refused(path, changes, words):
    rewrite(path, **changes)
    with pytest.raises(ValueError, match=words):
        rightly.load_calibrator(path)


def test_a_saved_file_is_readable_for_others_as_the_umask_says(path):
    assert path.stat().st_mode & 0o044


def test_class_names_travel_along(tmp_path):
    predictions, labels = make(n=60)
    names = [f"kind {i}" for i in range(10)]
    named = rightly.Predictions(predictions.logits, class_names=names)
    rightly.calibrator("ts").fit(named, labels).save(tmp_path / "a.safetensors")
    loaded = rightly.load_calibrator(tmp_path / "a.safetensors")
    assert loaded.class_names == tuple(names) and loaded.calibrator.sample_count == 60
    assert torch.equal(loaded.classes(predictions), predictions.classes)
