"""Code on the pages runs as written: Python, and the options of every command."""

import ast
import re
import shlex
from pathlib import Path

import pytest
from PIL import Image

import rightly
import rightly.deployment
from rightly import cli
from rightly.calibrators import CALIBRATORS, Method
from rightly.classifiers import open_model
from rightly.demo_data import load_demo_set
from rightly.metrics import METRICS
from tests.deployment import tiny_models

DOCS = Path(__file__).parents[1] / "docs"
METRIC_PAGES = sorted((DOCS / "metrics").glob("*.md"))
# These have tests of their own: in test_docs.py, test_own_package.py, test_training.py and below.
ELSEWHERE = {
    "adapting.md",
    "doctor.md",
    "tutorial.md",
    "from-your-own-package.md",
    "deploy.md",
    "libraries.md",
    "recalibrating.md",
}


def read_blocks(page: Path, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", page.read_text(encoding="utf8"), re.M | re.S)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that pages take for granted."""
    folder = tmp_path_factory.mktemp("docs")
    data = {name: load_demo_set(name) for name in ("cal", "ind", "haze")}
    rightly.save(folder / "cal.npz", *data["cal"])
    rightly.save(folder / "test.npz", *data["ind"])
    rightly.save(folder / "haze.npz", *data["haze"])
    rightly.save(folder / "batch.npz", data["haze"][0])
    calibrator = rightly.calibrator("rightly").fit(*data["cal"]).learn_shift(*data["cal"])
    calibrator.save(folder / "calibrator.safetensors")
    return folder


@pytest.mark.parametrize("page", METRIC_PAGES, ids=lambda page: page.stem)
def test_the_value_on_the_page_of_a_metric_is_what_the_code_gives(page):
    (code,) = read_blocks(page, "python")
    *statements, last = ast.parse(code).body
    assert isinstance(last, ast.Expr)
    names: dict[str, object] = {}
    exec(compile(ast.Module(statements, []), page.name, "exec"), names)  # noqa: S102
    value = eval(compile(ast.Expression(last.value), page.name, "eval"), names)  # noqa: S307
    shown = code.rpartition("# ")[2].strip()
    if isinstance(value, dict):
        assert {name: round(one, 4) for name, one in value.items()} == ast.literal_eval(shown)
    else:
        assert f"{value:.4f}" == shown


def list_pages_with_python():
    pages = [page for page in sorted(DOCS.rglob("*.md")) if page not in METRIC_PAGES]
    return [page for page in pages if read_blocks(page, "python") and page.name not in ELSEWHERE]


@pytest.mark.parametrize("page", list_pages_with_python(), ids=lambda page: page.stem)
def test_the_python_of_a_page_runs_as_written(page, folder, monkeypatch):
    monkeypatch.chdir(folder)
    # What a page says is there already: the module that an entry is added to, a stream.
    names = {"rightly": rightly, "Method": Method, "batches": [load_demo_set("ind")[0]]}
    try:
        for code in read_blocks(page, "python"):
            exec(compile(code, page.name, "exec"), names)  # noqa: S102
    finally:
        for registry in (CALIBRATORS, METRICS):
            for name in set(registry) - registry._builtin:
                registry.remove(name)


def test_the_python_about_deploying_runs_as_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    calibrator = tiny_models.fitted("rightly", threshold=0.5)
    calibrator.save("cal.safetensors")
    classifier = open_model(tiny_models.Small(), preprocessing=tiny_models.PREPROCESSING)
    model = rightly.CalibratedClassifier(classifier, calibrator)
    pictures = tiny_models.pictures(4)
    rightly.deployment.export_classifier(model, tmp_path / "model.onnx", list(pictures))
    names = {
        "rightly": rightly,
        "classifier": classifier,
        "photo": Image.fromarray(pictures[0]),
        "images": tiny_models.to_tensor(pictures) / 255,
        "window": [0.1, -0.3],
    }
    blocks = read_blocks(DOCS / "deploy.md", "python")
    assert len(blocks) == 4
    for code in blocks:
        if "onnxruntime" in code:
            names["images"] = names["images"].numpy()
        code = code.replace('"timm:resnet50"', "classifier")  # there is no network here
        exec(compile(code, "deploy.md", "exec"), names)  # noqa: S102
    assert names["confidence"].shape == (4,)


def list_commands():
    """Every `rightly ...` on a page, in fenced and indented blocks, with its page."""
    for page in [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]:
        text = page.read_text(encoding="utf8").replace("\\\n", " ")
        for line in re.findall(r"^(?:\$ |    |)(rightly .*)$", text, re.M):
            yield page.name, line


def test_every_command_on_a_page_exists_with_its_options():
    commands = cli.build_group().commands
    lines = list(list_commands())
    assert len(lines) > 40
    for page, line in lines:
        words = shlex.split(line, comments=True)[1:]
        if words[0].startswith("-"):
            continue
        assert words[0] in commands, f"{page}: {line}"
        known = {
            name
            for option in commands[words[0]].params
            for name in (*option.opts, *option.secondary_opts)
        }
        options = {word.partition("=")[0] for word in words[1:] if word.startswith("--")}
        assert options <= known | {"--help"}, f"{page}: {line}: {options - known}"
