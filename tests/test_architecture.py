"""What may import what, followed transitively."""

import ast
import importlib
import inspect
import pkgutil
from functools import cache
from pathlib import Path

import pytest

import rightly
from tests.processes import run_python

ROOT = Path(rightly.__file__).parent
LAYERS = [
    {"shapes", "tensor_shapes", "files", "registry", "optional"},
    {"checks", "resampling", "progress"},
    {"transforms", "predictions", "metrics", "losses"},
    {"decisions"},
    {"calibrators", "datasets", "classifiers", "demo_data"},
    {"collection", "evaluation", "monitoring"},
    {"reporting", "fitting"},
    {"deployment", "sklearn"},
    {"serving"},
    {"cli"},
]
# A result is laid out and drawn by what it imports when it is asked to.
RENDERED = {("evaluation", "reporting")}
FUNCTIONS = ("benchmark", "collect", "compare", "evaluate", "fit", "report")
RESERVED = {"benchmark", "evaluate", "report", "compare", "fit", "adapt"}
KERNELS = "triton_kernels"  # for GPUs; Triton is where torch is built for them
HEAVY = {"torch", "scipy", "sklearn"}
# What must load without torch and SciPy: NumPy's half, and what runs where a model is served.
LIGHT = [
    "rightly",
    "rightly.metrics",
    "rightly.decisions",
    "rightly.monitoring.limits",
    "rightly.monitoring.logs",
    "rightly.monitoring.monitor",
    "rightly.monitoring.stream",
    "rightly.reporting.formatting",
    "rightly.reporting.terminal",
    "rightly.deployment.outputs",
    "rightly.deployment.runtime",
    "rightly.serving",
    "rightly.cli",
]


def module_name(file: Path) -> str:
    parts = ("rightly", *file.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(file): file for file in sorted(ROOT.rglob("*.py"))}


@cache
def imports(module: str, *, only_at_import: bool) -> frozenset[str]:
    """Modules that a module imports; if asked so, only those that importing it loads."""
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    names: set[str] = set()

    def visit(node: ast.AST) -> None:
        if only_at_import and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            if not only_at_import:
                for child in node.body:
                    visit(child)
            for child in node.orelse:
                visit(child)
            return
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(
                f"{node.module}.{alias.name}"
                for alias in node.names
                if f"{node.module}.{alias.name}" in MODULES
            )
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(tree)
    return frozenset(names)


def loaded_by(module: str) -> set[str]:
    """All that importing a module loads: what it imports, and its packages, transitively."""
    todo, done = [module], set()
    while todo:
        name = todo.pop()
        if name in done:
            continue
        done.add(name)
        if name in MODULES:
            todo += [name.rpartition(".")[0]] if "." in name else []
            todo += imports(name, only_at_import=True)
    return done


def room(module: str) -> str:
    return module.split(".")[1]


def layer(module: str) -> int:
    return next(i for i, rooms in enumerate(LAYERS) if room(module) in rooms)


def test_every_room_has_a_layer():
    rooms = {room(name) for name in MODULES if name not in ("rightly", "rightly.__main__")}
    assert rooms == set().union(*LAYERS)


def test_imports_point_one_way():
    for name in MODULES:
        if name in ("rightly", "rightly.__main__"):
            continue
        for used in imports(name, only_at_import=False):
            if used.startswith("rightly.") and used in MODULES and room(used) != room(name):
                is_lazy = used not in imports(name, only_at_import=True)
                may = is_lazy and (room(name), room(used)) in RENDERED
                assert may or layer(used) < layer(name), f"{name} must not import {used}"


def test_calibrators_never_see_what_judges_them():
    for name in MODULES:
        if name.startswith("rightly.calibrators"):
            used = {m for m in loaded_by(name) if m.startswith("rightly.metrics")}
            assert not used, f"{name} loads {used}"


def test_decisions_import_no_metrics():
    for name in MODULES:
        if name.startswith("rightly.decisions"):
            assert not {m for m in loaded_by(name) if m.startswith("rightly.metrics")}, name


@pytest.mark.parametrize("module", LIGHT)
def test_light_modules_reach_nothing_heavy(module):
    heavy = {name for name in loaded_by(module) if name.split(".")[0] in HEAVY}
    assert not heavy


def test_light_modules_load_nothing_heavy():
    program = (
        "import importlib, sys\n"
        f"for module in {LIGHT}:\n"
        "    importlib.import_module(module)\n"
        f"    heavy = {HEAVY} & set(sys.modules)\n"
        "    assert not heavy, f'{module} loads {heavy}'\n"
    )
    run_python("-c", program, check=True)


def test_names_of_functions_are_not_taken_by_modules():
    # `evaluation` and `cli` give no names of their own: a module may be called like its function.
    free = ("rightly.evaluation.", "rightly.cli.")
    taken = {name.rpartition(".")[2] for name in MODULES if not name.startswith(free)}
    assert not taken & RESERVED
    for found in pkgutil.walk_packages(rightly.__path__, "rightly."):
        if not found.name.endswith("__main__") and KERNELS not in found.name:
            importlib.import_module(found.name)
    for name in FUNCTIONS:
        assert inspect.isfunction(getattr(rightly, name)), name


def test_only_one_module_imports_kernels_which_need_triton():
    users = {name for name, file in MODULES.items() if KERNELS in file.read_text(encoding="utf-8")}
    assert {name for name in users if KERNELS not in name} == {"rightly.calibrators.solvers.fused"}


def test_every_name_of_the_package_is_there():
    for name in rightly.__all__:
        assert getattr(rightly, name) is not None
    assert set(rightly.__all__) <= set(dir(rightly))
    with pytest.raises(AttributeError, match="no attribute 'tea'"):
        _ = rightly.tea
