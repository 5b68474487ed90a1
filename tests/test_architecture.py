"""Imports point one way: a module may import only from layers above its own."""

import ast
import subprocess
import sys
from pathlib import Path

import rightly

LAYERS = [
    {"shapes", "files"},
    {"checks", "metric_inputs"},
    {"predictions", "bins", "smoothing", "scaling", "draws"},
    {"views", "shifts", "losses", "evidence"},
    {"calibrators"},
    {"metrics", "selective", "storage", "images", "models"},
    {"weighted"},
    {"intervals"},
    {"rows", "curves"},
    {"evaluate", "demo", "choosing", "collecting", "scoring", "landscape"},
    {"budget", "deploy", "tables", "scale"},
    {"verdicts", "plots", "report", "serving", "fitting"},
    {"cli"},
    {"__main__"},
]
WITHOUT_TORCH = {
    "bins",
    "smoothing",
    "metrics",
    "metric_inputs",
    "selective",
    "weighted",
    "intervals",
    "rows",
    "curves",
    "plots",
    "report",
}
OPTIONAL = {
    "sklearn",
    "matplotlib",
    "onnx",
    "onnxruntime",
    "pyarrow",
    "ray",
    "PIL",
    "torchvision",
    "fastapi",
    "uvicorn",
    "jinja2",
    "huggingface_hub",
    "prometheus_client",
    "python_multipart",
}


def layer(module: str) -> int:
    return next(i for i, names in enumerate(LAYERS) if module in names)


def imports(file: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom) and node.module == "rightly":
            found += [f"rightly.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(node.module or "")
    return found


def test_imports_point_one_way():
    root = Path(rightly.__file__).parent
    for file in root.rglob("*.py"):
        own = file.relative_to(root).with_suffix("").parts[0]
        if own == "__init__":
            continue
        for name in imports(file):
            if not name.startswith("rightly.") or name == "rightly.__version__":
                continue
            used = name.split(".")[1]
            assert used == own or layer(used) < layer(own), f"{own} must not import {used}"
        if own in WITHOUT_TORCH:
            assert not any(name.split(".")[0] == "torch" for name in imports(file))


def test_importing_the_package_loads_nothing_optional():
    code = "import sys, rightly; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert not OPTIONAL & set(loaded.stdout.split())
