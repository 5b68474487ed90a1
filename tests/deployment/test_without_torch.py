"""What serves an ONNX file loads neither torch nor SciPy, whatever it imports."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import rightly
from tests.deployment.tiny_onnx import write_onnx

ROOT = Path(rightly.__file__).parent
HEAVY = {"torch", "scipy", "sklearn"}
LIGHT = (
    "rightly.deployment.runtime",
    "rightly.deployment.outputs",
    "rightly.deployment.metadata",
    *(f"rightly.serving.{file.stem}" for file in sorted((ROOT / "serving").glob("*.py"))),
)


def find_file(module: str) -> Path | None:
    """The file of one of our modules."""
    path = ROOT.joinpath(*module.split(".")[1:])
    return next((f for f in (path.with_suffix(".py"), path / "__init__.py") if f.is_file()), None)


def list_imports(file: Path) -> set[str]:
    """Modules that importing a file loads: not those inside functions or for type checkers."""
    names: set[str] = set()

    def visit(nodes):
        for node in nodes:
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                names.add(node.module)
                names.update(f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                visit(node.orelse)
            elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                visit(ast.iter_child_nodes(node))

    visit(ast.parse(file.read_text()).body)
    return names


def follow_imports(module: str) -> dict[str, list[str]]:
    """Every module that is loaded with this one, and the way to it."""
    ways = {module: [module]}
    waiting = [module]
    while waiting:
        current = waiting.pop()
        file = find_file(current) if current.startswith("rightly") else None
        if file is None:
            continue
        parts = current.split(".")
        packages = {".".join(parts[:k]) for k in range(1, len(parts))}
        for name in list_imports(file) | packages:
            ours = not name.startswith("rightly") or find_file(name) is not None
            if name not in ways and ours:
                ways[name] = [*ways[current], name]
                waiting.append(name)
    return ways


@pytest.mark.parametrize("module", LIGHT)
def test_no_import_leads_to_torch_or_scipy(module):
    ways = follow_imports(module)
    heavy = [way for name, way in ways.items() if name.split(".")[0] in HEAVY]
    assert not heavy, " -> ".join(heavy[0])


@pytest.mark.parametrize("module", LIGHT)
def test_no_module_of_these_packages_leads_to_torch_or_scipy(module):
    ways = follow_imports(module)
    here = ("rightly.deployment", "rightly.serving")
    for name, way in ways.items():
        if all(step.startswith(here) for step in way[:-1]):
            assert name.split(".")[0] not in HEAVY, " -> ".join(way)


def test_a_file_is_served_where_torch_and_scipy_are_missing(tmp_path):
    code = (
        "import sys\n"
        "sys.modules.update(torch=None, scipy=None, sklearn=None)\n"
        "import numpy as np\n"
        "import rightly.serving, rightly.deployment.runtime\n"
        "from rightly.deployment import open_exported\n"
        "model = open_exported(sys.argv[1])\n"
        "rightly.serving.make_app(model)\n"
        "print(*model.predict(np.full((1, 8, 8, 3), (10, 200, 30), np.uint8)).classes)\n"
    )
    path = write_onnx(tmp_path / "m.onnx")
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert done.stdout.strip() == "1", done.stderr
