"""The examples run as they are written, each in a process of its own."""

import importlib.util
import re
from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient
from PIL import Image

from tests.processes import run_python

EXAMPLES = Path(__file__).parents[1] / "examples"
# PyPI's torchvision, which timm imports, is a CUDA build: on a CPU torch it lacks two operators.
# tests/test_models.py declares them in the same way.
WITH_TORCHVISION = """
import runpy, sys, torch
from importlib.util import find_spec
from pathlib import Path
version = Path(find_spec("torchvision").origin).with_name("version.py").read_text()
if "+cu" in version and torch.version.cuda is None:
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
"""
RUN = "sys.argv = sys.argv[1:]\nrunpy.run_path(sys.argv[0], run_name='__main__')\n"
MODEL = """
import timm
model = timm.create_model("mobilenetv3_small_050", pretrained=False, num_classes=2)
timm.models.save_for_hf(model, sys.argv[1], safe_serialization=True)
"""


def run(*arguments, status=0):
    done = run_python(*arguments, timeout=280)
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


@pytest.mark.long
def test_digits_goes_from_images_to_a_calibrator_and_a_report(tmp_path):
    said = run(EXAMPLES / "digits.py", "--out", tmp_path)
    assert "rightly " in said and "rotation:2" in said
    assert (tmp_path / "calibrator.safetensors").is_file()
    assert "<html" in (tmp_path / "report.html").read_text()
    for part in ("cal", "test"):
        assert list((tmp_path / part).glob("part-*.parquet"))


def test_logits_only_needs_neither_images_nor_views():
    said = run(EXAMPLES / "logits_only.py")
    assert "temperature_scaling" in said and "above 0.9" in said


def test_the_timm_example_says_what_it_needs_or_does_its_work(tmp_path):
    script = EXAMPLES / "timm_model.py"
    if importlib.util.find_spec("timm") is None:
        said = run(script, "resnet50", "--images", tmp_path, status=2)
        assert "pip install timm" in said
        return
    rng = np.random.default_rng(0)
    for kind in ("cat", "dog"):
        (tmp_path / "photos" / kind).mkdir(parents=True)
        for i in range(12):
            pixels = rng.integers(0, 256, (48, 40, 3), np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / kind / f"{i}.jpg")
    model, out = tmp_path / "model", tmp_path / "said"
    run("-c", WITH_TORCHVISION + MODEL, model)
    asked = [f"local-dir:{model}", "--images", tmp_path / "photos", "--out", out]
    said = run("-c", WITH_TORCHVISION + RUN, script, *asked, "--method", "temperature_scaling")
    assert "of 12 right" in said and out.with_suffix(".safetensors").is_file()


@pytest.mark.long
def test_the_notebook_runs_and_is_kept_without_outputs(tmp_path):
    notebook = nbformat.read(EXAMPLES / "tour.ipynb", as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in cells)
    client = NotebookClient(notebook, timeout=600, kernel_name="python3")
    client.execute(cwd=str(tmp_path))
    outputs = [output for cell in cells for output in cell.outputs]
    shown = {kind for output in outputs for kind in output.get("data", {})}
    assert {"text/html", "image/png"} <= shown  # the table, and the figure
    said = "".join(output.get("text", "") for output in outputs)
    assert re.search(r"correctness_logistic .*2/3", said)  # the bar
    assert "expected accuracy" in said and "on the other half" in said
