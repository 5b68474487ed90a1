"""What serves an ONNX file runs where neither torch nor SciPy is installed."""

import os
from pathlib import Path

import pytest

import rightly
from tests.deployment.tiny_onnx import write_onnx
from tests.processes import run_python
from tests.serving.clients import serve_file
from tests.serving.fake_model import make_file

ROOT = Path(rightly.__file__).parent
LIGHT = (
    "rightly.deployment.runtime",
    "rightly.deployment.outputs",
    "rightly.deployment.metadata",
    "rightly.deployment.card_markdown",
    *(f"rightly.serving.{file.stem}" for file in sorted((ROOT / "serving").glob("[a-z]*.py"))),
)
# Run by Python itself at its start, before anything of ours.
BLOCK = "import sys\nsys.modules.update(torch=None, scipy=None, sklearn=None)\n"


@pytest.fixture
def environment(tmp_path):
    """Of a process that finds neither torch nor SciPy."""
    folder = tmp_path / "blocked"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(BLOCK)
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT.parent)])}


def run_code(code, environment, *arguments):
    return run_python("-c", code, *arguments, env=environment, check=True).stdout.strip()


def test_torch_and_scipy_are_missing_here(environment):
    code = (
        "for name in ('torch', 'scipy'):\n"
        "    try:\n"
        "        __import__(name)\n"
        "    except ImportError:\n"
        "        print(name)\n"
    )
    assert run_code(code, environment).split() == ["torch", "scipy"]


def test_every_light_module_is_imported(environment):
    # Ours are unloaded before each: what one module loads must not hide what another lacks.
    code = (
        "import importlib, sys\n"
        "for module in sys.argv[1:]:\n"
        "    for name in [name for name in sys.modules if name.startswith('rightly')]:\n"
        "        del sys.modules[name]\n"
        "    print(importlib.import_module(module).__name__)\n"
    )
    assert run_code(code, environment, *LIGHT).split() == list(LIGHT)


def test_a_file_is_opened_and_predicts(environment, tmp_path):
    code = (
        "import sys\n"
        "import numpy as np\n"
        "from rightly.deployment import open_exported\n"
        "model = open_exported(sys.argv[1])\n"
        "print(*model.predict(np.full((1, 8, 8, 3), (10, 200, 30), np.uint8)).classes)\n"
    )
    assert run_code(code, environment, write_onnx(tmp_path / "m.onnx")) == "1"


def test_the_command_serves_a_file(environment, tmp_path):
    with serve_file(write_onnx(tmp_path / "m.onnx"), env=environment) as client:
        answer = client.post("/predict", files={"image": make_file((20, 200, 30))})
    assert answer.json()["predictions"][0]["name"] == "green"


def test_a_program_of_torch_says_that_torch_is_missing(environment, tmp_path):
    (tmp_path / "m.pt2").write_bytes(b"a program")
    code = (
        "import sys\n"
        "from rightly.deployment import open_exported\n"
        "try:\n"
        "    open_exported(sys.argv[1])\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    assert "torch" in run_code(code, environment, tmp_path / "m.pt2")
