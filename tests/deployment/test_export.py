"""Writing files, and refusing to."""

from pathlib import Path

import pytest
import torch
from PIL import Image

import rightly
from rightly import CalibratedClassifier
from rightly.classifiers import Preprocessing
from rightly.deployment import export_classifier, export_model, open_exported
from tests.deployment.tiny_models import PREPROCESSING, Small, fitted, pictures, to_tensor
from tests.processes import run_python


class Unlike(Small):
    """Computes something else as soon as it is traced."""

    def forward(self, images):
        logits = super().forward(images)
        return -logits if torch.compiler.is_exporting() else logits


def make_model(classifier, method="temperature_scaling", **options):
    calibrator = fitted(method)
    calibrator.record = {}
    return CalibratedClassifier(
        classifier, calibrator, **{"preprocessing": PREPROCESSING} | options
    )


@pytest.mark.parametrize("suffix", [".onnx", ".pt2"])
def test_a_file_that_differs_from_torch_is_not_written(tmp_path, suffix):
    with pytest.raises(ValueError, match="nothing was written"):
        export_classifier(make_model(Unlike()), tmp_path / f"m{suffix}")
    assert not list(tmp_path.iterdir())


def test_classes_that_only_rounding_tells_apart_are_no_difference(tmp_path):
    class Even(Small):
        def forward(self, images):
            return 1e-8 * super().forward(images)  # all classes as likely, in any engine

    export_classifier(make_model(Even()), tmp_path / "m.onnx")
    assert open_exported(tmp_path / "m.onnx").predict(pictures(2)).confidence.max() < 0.26


def test_functions_cannot_be_exported_and_say_so(tmp_path):
    module = Small().eval()
    model = make_model(lambda images: module(images))
    with pytest.raises(ValueError, match="must be a torch module or an ONNX file"):
        export_classifier(model, tmp_path / "m.onnx")
    with pytest.raises(ValueError, match="must be a torch module"):
        export_classifier(model, tmp_path / "m.pt2")


def test_a_classifier_and_a_saved_calibrator_become_a_file(tmp_path):
    fitted("temperature_scaling", threshold=0.7).save(tmp_path / "cal.safetensors")
    (tmp_path / "photos" / "inner").mkdir(parents=True)
    for i, pixels in enumerate(pictures(5, size=20)):
        Image.fromarray(pixels).save(tmp_path / "photos" / "inner" / f"{i}.png")
    out = tmp_path / "m.onnx"
    metadata = export_model(
        Small(), tmp_path / "cal.safetensors", out, images=tmp_path / "photos", samples=2
    )
    assert metadata["parity"]["images"] == 2 and metadata["parity"]["kind"] == "real"
    exported = open_exported(out)
    assert exported.metadata == metadata and exported.threshold == 0.7
    expected = CalibratedClassifier(
        Small(), rightly.load_calibrator(tmp_path / "cal.safetensors")
    ).predict(to_tensor(pictures(3)))
    outputs = exported.predict(pictures(3))
    assert (outputs.classes == expected.to_numpy().classes).all()
    assert outputs.confidence == pytest.approx(expected.to_numpy().confidence, abs=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"out": "m.bin"}, r"out must end in \.onnx or \.pt2"),
        ({"out": "nowhere/m.onnx"}, "the folder .*nowhere does not exist"),
        ({"images": "empty"}, "images must be a folder with images"),
        ({"images": "empty", "samples": 0}, "samples must be at least 1"),
        ({"size": (20, 20)}, r"size must be \(16, 16\), which the classifier takes"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_traced(tmp_path, options, message):
    (tmp_path / "empty").mkdir()
    places = {"out": "m.onnx"} | {k: v for k, v in options.items() if isinstance(v, str)}
    paths = {name: tmp_path / place for name, place in places.items()}
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        export_model(Small(), fitted("temperature_scaling"), **options | paths)
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def test_a_classifier_of_any_size_needs_to_be_given_one(tmp_path):
    model = make_model(Small(), preprocessing=Preprocessing())
    with pytest.raises(ValueError, match="give size, or images"):
        export_classifier(model, tmp_path / "m.onnx")
    with pytest.raises(ValueError, match="size must be that of the images"):
        export_classifier(model, tmp_path / "m.onnx", list(pictures(1)), (20, 20))


def test_a_size_becomes_preprocessing_where_the_calibrator_knows_of_none(tmp_path):
    calibrator = fitted("temperature_scaling")
    calibrator.record = {}
    metadata = export_model(Small(), calibrator, tmp_path / "m.pt2", size=(20, 20))
    assert metadata["preprocessing"]["size"] == [20, 20]
    assert metadata["parity"]["kind"] == "synthetic"


def test_a_module_that_cannot_be_traced_says_why(tmp_path):
    class Branching(Small):
        def forward(self, images):
            if images.sum() > 0:
                return super().forward(images)
            return -super().forward(images)

    for suffix in (".onnx", ".pt2"):
        with pytest.raises(ValueError, match="cannot be traced"):
            export_classifier(make_model(Branching()), tmp_path / f"m{suffix}")


def test_a_model_too_large_for_one_onnx_file_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(rightly.deployment.export, "MAX_ONNX_BYTES", 1000)
    with pytest.raises(ValueError, match=r"export to \.pt2"):
        export_classifier(make_model(Small()), tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def test_one_image_is_enough_to_compare_on(tmp_path):
    metadata = export_classifier(make_model(Small()), tmp_path / "m.pt2", list(pictures(1)))
    assert metadata["parity"]["images"] == 1
    assert len(open_exported(tmp_path / "m.pt2").predict(pictures(3))) == 3


@pytest.mark.parametrize("suffix", [".onnx", ".pt2"])
def test_a_full_disk_is_told_with_the_name_of_the_file(tmp_path, suffix):
    """In a process of its own that may write 100 bytes to a file."""
    code = (
        "import resource, signal, sys\n"
        "import rightly, rightly.deployment\n"
        "from tests.deployment.tiny_models import Small, fitted, pictures\n"
        "model = rightly.CalibratedClassifier(Small(), fitted('temperature_scaling'))\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "try:\n"
        "    rightly.deployment.export_classifier(model, sys.argv[1], list(pictures(2)))\n"
        "except OSError as error:\n"
        "    print(error)\n"
    )
    path = tmp_path / f"m{suffix}"
    # -B: a compiled module that is cut short at the limit would break later imports.
    done = run_python("-B", "-c", code, path, cwd=Path(__file__).parents[2], check=True)
    assert f"cannot write {path}: File too large" in done.stdout
    assert list(tmp_path.iterdir()) == []
