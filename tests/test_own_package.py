"""docs/from-your-own-package.md to the letter: its package is built, installed and used.

Code, project file and commands are read from the page, so that page and test cannot differ.
"""

import os
import shlex
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import rightly
from rightly.calibrators import serialization
from rightly.demo_data import load_demo_set
from rightly.metrics import METRICS
from tests.conftest import make
from tests.processes import run_python
from tests.test_doc_code import DOCS, read_blocks

PAGE = DOCS / "from-your-own-package.md"
MODEL = "def load():\n    return lambda images: 6 * images.mean((2, 3))\n"


def run(arguments, folder, packages=()):
    source = Path(rightly.__file__).parents[1]
    path = os.pathsep.join(map(str, (*packages, source)))
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "200"}
    done = run_python(*arguments, cwd=folder, env=environment)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that the page takes for granted."""
    folder = tmp_path_factory.mktemp("user")
    rightly.save(folder / "cal.npz", *load_demo_set("cal"))
    rightly.save(folder / "test.npz", *load_demo_set("ind"))
    rng = np.random.default_rng(0)
    for i in range(6):
        (folder / "photos" / f"c{i % 3}").mkdir(parents=True, exist_ok=True)
        image = Image.fromarray(rng.integers(0, 255, (8, 8, 3), np.uint8))
        image.save(folder / "photos" / f"c{i % 3}" / f"{i}.png")
    (folder / "our_model.py").write_text(MODEL)
    return folder


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The page's two files."""
    source = tmp_path_factory.mktemp("source")
    (project,) = read_blocks(PAGE, "toml")
    (source / "pyproject.toml").write_text(project)
    (source / "our_calibration.py").write_text(read_blocks(PAGE, "python")[1])
    return source


@pytest.fixture(scope="module")
def installed(source, folder, tmp_path_factory):
    """Where pip put the package, and what each of the page's commands printed."""
    site = tmp_path_factory.mktemp("site")
    first, second = read_blocks(PAGE, "console")
    built = shutil.copytree(source, tmp_path_factory.mktemp("build") / "our-calibration")
    printed = {}
    for line in (first + second).splitlines():
        program, *arguments = shlex.split(line.removeprefix("$ "))
        if program == "pip":
            assert arguments == ["install", "."]
            offline = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
            arguments = ["-m", "pip", *arguments, *offline, "--target", str(site)]
            code, out, err = run(arguments, built)
        else:
            code, out, err = run(["-m", program, *arguments], folder, [site])
        assert code == 0, f"{line}: {err}"
        name = arguments[0] if "--list" not in arguments else "list"
        printed[name if program == "rightly" else program] = out + err
    return site, printed


@pytest.mark.long
def test_every_kind_of_entry_point_is_seen_by_the_command_line(installed, folder):
    site, printed = installed
    assert (site / "our_calibration-1.0.dist-info").is_dir()
    assert "mean_shift" in printed["list"]
    assert "mistakes_above_80" in printed["evaluate"]
    predictions, _ = rightly.load(folder / "photos.npz")
    assert predictions.view_names == ("inverted",)
    assert predictions.shift_names == ("darkened:2",)
    # The page's line with --import ran last, beside the installed package: the same records.
    assert "mean_shift" in printed["compare"] and "cannot be used" not in printed["compare"]


@pytest.mark.long
def test_a_file_loads_with_the_package_and_names_it_without(installed, folder):
    site, _ = installed
    load = "import rightly; print(rightly.load_calibrator('mean_shift.safetensors'))"
    code, out, _ = run(["-c", load], folder, [site])
    assert code == 0 and out.startswith("<mean_shift, fitted on 5,000")
    code, _, err = run(["-c", load], folder)
    assert code == 1 and "needs the package our-calibration: install that" in err
    code, _, err = run(["-m", "rightly", "evaluate", "mean_shift.safetensors", "test.npz"], folder)
    assert code == 2 and "our-calibration" in err and "Traceback" not in err


def test_a_module_is_imported_by_name_and_only_then(source, folder):
    (source / "broken.py").write_text("1 / 0\n")
    data = [str(folder / "cal.npz"), str(folder / "test.npz"), "--no-intervals"]
    asked = [*data, "--methods", "mean_shift", "--metrics", "mistakes_above_80"]
    code, out, err = run(["-m", "rightly", "compare", *asked], source)
    assert code == 2 and "is not known" in err  # it lies in the working folder, unasked
    code, out, err = run(
        ["-m", "rightly", "compare", *asked, "--import", "our_calibration"], source
    )
    assert code == 0 and "mean_shift" in out, err
    for name, reason in (("nowhere", "ModuleNotFoundError"), ("broken", "ZeroDivisionError")):
        code, _, err = run(["-m", "rightly", "fit", "--import", name, "--list"], source)
        assert code == 2 and f"got '{name}': {reason}" in err and "Traceback" not in err


@pytest.mark.parametrize("method", ["sprung", "sprung:trap", "sprung.trap"])
@pytest.mark.parametrize("package", ["sprung", "https://elsewhere/sprung", 3])
def test_loading_never_imports_what_a_file_names(method, package, tmp_path, monkeypatch):
    (tmp_path / "sprung.py").write_text("open('imported', 'w')\ntrap = None\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "forged.safetensors"
    rightly.calibrator("temperature_scaling").fit(*make()).save(path)
    header, tensors = serialization.read(path)
    serialization.write(path, {**header, "method": method, "package": package}, tensors)
    with pytest.raises(ValueError, match="which is not known here") as refused:
        rightly.load_calibrator(path)
    # Only what can be the name of a package is passed on to the reader.
    assert ("needs the package" in str(refused.value)) == (package == "sprung")
    assert not (tmp_path / "imported").exists() and "sprung" not in sys.modules


def test_the_pages_python_runs_in_order(source, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(source)
    script, _, *others = read_blocks(PAGE, "python")
    names: dict[str, object] = {"rightly": rightly}
    try:
        for code in (script, *others):
            exec(compile(code, PAGE.name, "exec"), names)  # noqa: S102
    finally:
        METRICS.remove("mistakes_above_90")
    printed = capsys.readouterr().out
    assert r"mistakes\_above\_90" in printed
    assert "| ours |" in printed and "| ours on half of it |" in printed
    # A class-changing row says so, whoever wrote it.
    assert "logistic regression predicts other classes" in printed


def test_the_adapter_takes_calibrators_of_other_libraries(folder, monkeypatch):
    binning = pytest.importorskip("netcal.binning")
    theirs = pytest.importorskip("probmetrics.calibrators")
    monkeypatch.chdir(folder)
    names: dict[str, object] = {}
    exec(read_blocks(PAGE, "python")[-1], names)  # noqa: S102
    adapter = names["Adapter"]
    comparison = rightly.compare(
        "cal.npz",
        {"test": "test.npz"},
        methods={
            "bins": lambda: adapter(binning.HistogramBinning, "transform"),
            "svs": lambda: adapter(lambda: theirs.get_calibrator("svs")),
            "ours": "structured_vector_scaling",
        },
        metrics=["nll"],
    )
    nll = {row.calibrator: row.value for row in comparison}
    assert nll["svs"] == pytest.approx(nll["ours"], abs=2e-3) and nll["bins"] < 1
