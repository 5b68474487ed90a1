"""Files of calibrators: what they hold, and which are refused."""

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import rightly
from rightly import Decision
from rightly.calibrators import CALIBRATORS, serialization
from rightly.cli import main
from tests.calibrators.quick import choose_quick_arguments
from tests.conftest import make, make_for

SAVED: dict[str, bytes] = {}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What a file holds."""
    path = tmp_path_factory.mktemp("saved") / "a.safetensors"
    rightly.calibrator("ca_views", seed=3).fit(*make(n=80)).save(path)
    return path.read_bytes()


@pytest.fixture
def path(whole, tmp_path):
    """A file that a test may damage."""
    path = tmp_path / "a.safetensors"
    path.write_bytes(whole)
    return path


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
        (b'"version":"6"', b'"version":"9"', "format version 9.*fit again"),
        (b"ca_views", b"xx_views", "is damaged: its checksum"),
        (b"class_count", b"class_cuont", "is damaged: its checksum"),
        (b"sha256", b"sha255", "is damaged: its checksum"),
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


def forge(path, drop=(), **changes):
    """The same file with other values in its header, or without some, and the right checksum."""
    header, tensors = serialization.read(path)
    header = {name: value for name, value in (header | changes).items() if name not in drop}
    serialization.write(path, header, tensors)


def forge_tensors(path, drop=(), **changes):
    """The same file with other tensors, and the right list of them and checksum."""
    header, tensors = serialization.read(path)
    tensors = {name: value for name, value in (tensors | changes).items() if name not in drop}
    serialization.write(path, header, tensors)


MANUAL = Decision(0.9, n=10).to_dict()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"method": "xx_views"}, "which is not known here"),
        ({"method": ["ca_views"]}, "a.safetensors holds no calibrator"),
        ({"arguments": {"sides": 3}}, "sides"),
        ({"arguments": [3]}, "a.safetensors holds no calibrator"),
        ({"decision": 0.9}, "decision must be a table, got 0.9"),
        ({"decision": MANUAL | {"threshold": "high"}}, "threshold must be a number from 0 to 1"),
        ({"decision": MANUAL | {"threshold": 1.5}}, "threshold must be a number .* got 1.5"),
        ({"decision": MANUAL | {"threshold": -0.1}}, "decision.threshold must be"),
        ({"decision": MANUAL | {"threshold": True}}, "decision.threshold must be"),
        ({"record": [1]}, "record must be a table"),
        ({"record": {"classifier": "resnet"}}, "record.classifier must be a table or null"),
        ({"decision": MANUAL | {"kind": "sure"}}, "decision.kind must be one of"),
        ({"decision": MANUAL | {"coverage": 2}}, "decision.coverage must be a number"),
        (
            {"decision": MANUAL | {"kind": "guaranteed"}},
            "decision must have coverage, max_error, confidence_level",
        ),
        ({"class_count": 1}, "class_count must be a number of classes from 2 on, got 1"),
        ({"class_count": "10"}, "class_count must be"),
        ({"class_count": 2**40}, "more than any classifier|context.reference must have shape"),
        ({"sample_count": -1}, "sample_count must be"),
        ({"sample_count": None}, "sample_count must be"),
        ({"feature_count": 0.5}, "feature_count must be"),
        ({"class_names": ["cat", "dog"]}, "class_names must have 10 names, one per class, got 2"),
        ({"class_names": "abcdefghij"}, "class_names must be a list of names or null"),
        ({"class_names": [1] * 10}, "class_names must be a list of names or null"),
        ({"view_names": ["a", "a", "b"]}, "view_names must be a list of different names"),
        ({"view_names": []}, "ca_views needs view_logits, but was fitted on none"),
        ({"view_names": ["a"]}, "do not fit together"),
        ({"view_names": None}, "view_names must be"),
    ],
)
def test_a_header_that_makes_no_sense_is_refused(path, changes, words):
    forge(path, **changes)
    with pytest.raises(ValueError, match=words) as caught:
        rightly.load_calibrator(path)
    assert "a.safetensors" in str(caught.value)


@pytest.mark.parametrize("name", ["class_count", "view_names", "decision", "record", "method"])
def test_a_header_that_lacks_something_is_refused(path, name):
    forge(path, drop=[name])
    with pytest.raises(ValueError, match=f"damaged header: '{name}' is missing"):
        rightly.load_calibrator(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000 + "]" * 100_000, "nested at most 32 deep"),
        ('{"a":' * 40 + "1" + "}" * 40, "nested at most 32 deep"),
        ("{seed", "damaged header"),
        ('{"a": NaN}', "must hold numbers, got NaN"),
        ('{"a": 1, "a": 2}', "each key once"),
    ],
)
def test_json_that_is_no_header_is_refused(path, text, words):
    """With the right checksum: only the text is off."""
    with safe_open(path, "pt") as file:
        encoded = file.metadata()
    tensors = load_file(path)
    encoded["record"] = text
    del encoded["sha256"]
    encoded["sha256"] = serialization._compute_checksum(encoded, tensors)
    save_file(tensors, path, encoded)
    with pytest.raises(ValueError, match=words):
        rightly.load_calibrator(path)


def test_brackets_inside_strings_are_no_nesting(path):
    forge(path, record={"note": '"' + "[{" * 100})
    assert rightly.load_calibrator(path).record["note"].endswith("[{")


def test_every_bit_of_a_file_counts(path):
    content = path.read_bytes()
    for place in range(0, len(content), 37):
        changed = bytearray(content)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(ValueError, match="a.safetensors"):
            rightly.load_calibrator(path)


def test_a_list_of_other_tensors_is_refused(path):
    with safe_open(path, "pt") as file:
        encoded = file.metadata()
    tensors = load_file(path)
    del encoded["sha256"]
    tensors["centre"] = tensors["centre"].float()
    encoded["sha256"] = serialization._compute_checksum(encoded, tensors)
    save_file(tensors, path, encoded)
    with pytest.raises(ValueError, match="damaged header: the tensors are not those that it lists"):
        rightly.load_calibrator(path)


DATA = make(n=60)


def test_every_calibrator_declares_what_it_stores():
    for name in CALIBRATORS:
        assert rightly.calibrator(name).stores is not None, name


FORGED = ["temperature_scaling", "ca_views", "correctness_logistic"]
OTHERS = [name for name in CALIBRATORS if name not in FORGED]


@pytest.mark.parametrize(
    "name", [*FORGED, *(pytest.param(name, marks=pytest.mark.long) for name in OTHERS)]
)
class TestEveryCalibrator:
    """Files that are whole, with the right checksum, but could only have been made by hand."""

    @pytest.fixture
    def saved(self, name, tmp_path):
        if name not in SAVED:
            calibrator = rightly.calibrator(name, **choose_quick_arguments(name))
            calibrator.fit(*make_for(name, n=60)).save(tmp_path / "whole.safetensors")
            SAVED[name] = (tmp_path / "whole.safetensors").read_bytes()
        path = tmp_path / "a.safetensors"
        path.write_bytes(SAVED[name])
        return path

    def refuses(self, path, words="a.safetensors holds no calibrator"):
        with pytest.raises(ValueError, match=words):
            rightly.load_calibrator(path)

    def test_nan_and_infinity_are_refused(self, saved):
        content = saved.read_bytes()
        for key, tensor in serialization.read(saved)[1].items():
            for value in (torch.nan, torch.inf):
                if tensor.numel() and tensor.is_floating_point():
                    forge_tensors(saved, **{key: torch.full_like(tensor, value)})
                    self.refuses(saved, f"{key} must be finite")
                    saved.write_bytes(content)

    def test_a_missing_tensor_is_refused(self, saved):
        content = saved.read_bytes()
        for key in serialization.read(saved)[1]:
            forge_tensors(saved, drop=[key])
            self.refuses(saved, "is missing|do not fit together")
            saved.write_bytes(content)

    def test_a_tensor_left_over_is_refused(self, saved):
        forge_tensors(saved, surplus=torch.ones(3))
        self.refuses(saved, "surplus is left over")

    def test_a_tensor_of_a_part_that_does_not_exist_is_refused(self, saved):
        forge_tensors(saved, **{"second.inverse": torch.ones(())})
        self.refuses(saved, "second.inverse is left over")

    def test_a_misshapen_tensor_is_refused(self, saved):
        content = saved.read_bytes()
        for key, tensor in serialization.read(saved)[1].items():
            if tensor.numel():
                forge_tensors(saved, **{key: tensor[None].repeat(3, *[1] * tensor.ndim)})
                self.refuses(saved)
                saved.write_bytes(content)

    def test_other_types_are_refused(self, saved):
        content = saved.read_bytes()
        for key, tensor in serialization.read(saved)[1].items():
            for kind in (torch.float16, torch.int32, torch.bool):
                forge_tensors(saved, **{key: tensor.to(kind)})
                self.refuses(saved, f"{key} must be of (float32 or float64|int64), got torch")
                saved.write_bytes(content)

    def test_scales_and_temperatures_that_are_not_positive_are_refused(self, saved):
        content = saved.read_bytes()
        for key, tensor in serialization.read(saved)[1].items():
            if key in ("inverse", "scale") and tensor.numel():
                for value in (-1.0, 0.0):
                    forge_tensors(saved, **{key: torch.full_like(tensor, value)})
                    self.refuses(saved, f"{key} must lie in 1e-300")
                    saved.write_bytes(content)


def test_tables_must_be_ascending_and_hold_probabilities(tmp_path):
    path = tmp_path / "a.safetensors"
    for name in ("spline", "multi_isotonic"):
        rightly.calibrator(name).fit(*make_for(name, n=60)).save(path)
        tensors = serialization.read(path)[1]
        forge_tensors(path, xs=tensors["xs"].flip(0))
        with pytest.raises(ValueError, match="xs must be ascending"):
            rightly.load_calibrator(path)
        forge_tensors(path, xs=tensors["xs"], ys=tensors["ys"] + 2)
        with pytest.raises(ValueError, match="ys must lie in 0..1"):
            rightly.load_calibrator(path)


def test_parts_of_a_cascade_are_checked_too(tmp_path):
    path = tmp_path / "a.safetensors"
    rightly.calibrator("rightly", budget=2.0, first="ts").fit(*DATA).save(path)
    assert rightly.load_calibrator(path).confidence(DATA[0]).isfinite().all()
    forge_tensors(path, **{"first.inverse": torch.tensor(-1.0).double()})
    with pytest.raises(ValueError, match="first.inverse must lie in"):
        rightly.load_calibrator(path)


def test_no_command_writes_what_a_forged_calibrator_gives(tmp_path, capsys):
    path, out = tmp_path / "a.safetensors", tmp_path / "out.csv"
    rightly.save(tmp_path / "test.npz", *DATA)
    rightly.calibrator("ts").fit(*DATA).save(path)
    forge_tensors(path, inverse=torch.tensor(torch.nan).double())
    assert main(["predict", str(path), str(tmp_path / "test.npz"), "--out", str(out)]) == 2
    assert "inverse must be finite" in capsys.readouterr().err.replace("\n", " ")
    assert not out.exists()


def test_a_saved_file_is_readable_for_others_as_the_umask_says(tmp_path):
    path = tmp_path / "a.safetensors"
    rightly.calibrator("ts").fit(*DATA).save(path)
    assert path.stat().st_mode & 0o044


def test_class_names_travel_along(tmp_path):
    predictions, labels = make(n=60)
    names = [f"kind {i}" for i in range(10)]
    named = rightly.Predictions(predictions.logits, class_names=names)
    rightly.calibrator("ts").fit(named, labels).save(tmp_path / "a.safetensors")
    loaded = rightly.load_calibrator(tmp_path / "a.safetensors")
    assert loaded.class_names == tuple(names) and loaded.sample_count == 60
    assert torch.equal(loaded.classes(predictions), predictions.classes)


def test_a_calibrator_is_not_saved_under_the_name_of_another_kind_of_file(tmp_path, sample):
    calibrator = rightly.calibrator("ts").fit(*sample)
    for name in ("c.pt", "c", "c.safetensors.gz"):
        with pytest.raises(ValueError, match=rf"ends in \.safetensors, got {name}$"):
            calibrator.save(tmp_path / name)
    assert not list(tmp_path.iterdir())
