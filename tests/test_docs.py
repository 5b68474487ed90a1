"""What the documentation promises: a page a method, a tutorial that runs, a site that is alone."""

import os
import re
import sys
from pathlib import Path

import pytest

import rightly
from rightly.calibrators import CALIBRATORS
from rightly.cli import main
from rightly.demo_data import load_demo_set
from tests.processes import run, run_python
from tests.test_doc_code import read_blocks

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


@pytest.mark.parametrize("method", CALIBRATORS)
def test_every_method_has_a_page(method):
    named = [
        page
        for page in (DOCS / "methods").glob("*.md")
        if page.stem == method
        or any(
            line.startswith("Name") and f"`{method}`" in line
            for line in page.read_text(encoding="utf8").splitlines()
        )
    ]
    assert named, f"docs/methods/ has no page with a line 'Name: `{method}`'"


def test_every_page_of_a_method_is_in_the_list_and_on_the_site():
    listed = (DOCS / "methods" / "index.md").read_text(encoding="utf8")
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf8")
    for page in (DOCS / "methods").glob("*.md"):
        if page.stem != "index":
            assert f"({page.name})" in listed and f"methods/{page.name}" in site, page


@pytest.mark.long
def test_the_tutorial_runs_as_written(tmp_path):
    text = (DOCS / "tutorial.md").read_text(encoding="utf8")
    blocks = re.findall(r"^```(python|bash)\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) == 6
    # `rightly` is found beside the Python that runs the tests, as in an activated environment.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    said = []
    for kind, code in blocks:
        command = [sys.executable, "-c", code] if kind == "python" else ["bash", "-ec", code]
        done = run(command, cwd=tmp_path, env={**os.environ, "PATH": path})
        assert done.returncode == 0, f"{code}\n{done.stderr}"
        said.append(done.stdout)
    assert "haze" in said[0] and "ca_views" in said[1]
    # In distribution the guarantee is met.
    kept = re.search(r"ind: .* accepted, ([\d.]+)% of them wrong", said[3])
    assert kept is not None and float(kept[1]) < 5
    assert "shear:2" in said[-1]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_page(name):
    """Runs the Python of a page, and returns what it calls by name."""
    names = {}
    for code in read_blocks(DOCS / name, "python"):
        exec(compile(code, name, "exec"), names)  # noqa: S102
    return names


def run_command(name):
    """Runs the command on a page."""
    (command,) = read_blocks(DOCS / name, "bash")
    return main(command.removeprefix("rightly ").split())


def test_the_code_about_adapting_runs_as_written(folder):
    rightly.save("cal.npz", *load_demo_set("cal_augmented"))
    batch, labels = load_demo_set("haze")
    rightly.save("batch.npz", batch)  # without labels
    names = run_page("adapting.md")
    mean, accuracy = names["confidence"].mean(), (batch.classes == labels).double().mean()
    assert names["low"] < accuracy < names["high"] and names["value"] == pytest.approx(float(mean))
    assert abs(mean - accuracy) < 0.03


def test_the_code_about_the_doctor_runs_as_written(folder, capsys):
    for name, file in (("cal", "cal"), ("ind", "test"), ("haze", "haze")):
        rightly.save(f"{file}.npz", *load_demo_set(name))
    run_page("doctor.md")
    capsys.readouterr()
    assert run_command("doctor.md") == 0
    assert capsys.readouterr().out == "nothing found in cal, test, haze\n"


def test_the_code_about_recalibrating_runs_as_written(folder, capsys):
    rightly.fit(*load_demo_set("cal"), "temperature_scaling").save("cal.safetensors")
    new, labels = load_demo_set("haze")
    rightly.save("new.npz", new[:100], labels[:100])
    rightly.save("test.npz", new[100:], labels[100:])
    assert run_command("recalibrating.md") == 0
    run_page("recalibrating.md")
    assert "'samples': 100" in capsys.readouterr().out


def test_the_site_builds_and_loads_nothing_from_elsewhere(tmp_path):
    pytest.importorskip("material")
    command = ["-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    run_python(*command, cwd=ROOT, env=environment, check=True)
    for page in tmp_path.rglob("*.html"):
        text = page.read_text(encoding="utf8")
        assert not re.search(r'<(script|link|img|iframe)[^>]*(src|href)="(https?:)?//', text), page
        assert "fonts.g" not in text
