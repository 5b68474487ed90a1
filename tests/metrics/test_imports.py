"""Metrics and decisions load NumPy alone: a server or a notebook without torch can use them."""

from pathlib import Path

import rightly
from tests.processes import run_python

HEAVY = {"torch", "scipy", "sklearn", "matplotlib", "pandas"}
MODULES = [
    "rightly.registry",
    "rightly.optional",
    "rightly.decisions",
    "rightly.metrics",
    "rightly.metrics.bootstrap",
    "rightly.metrics.curves",
]


def test_importing_them_loads_nothing_heavy():
    # A bare package in place of rightly/__init__.py, so that this says what the modules themselves
    # and all they import load, however much the package's surface does.
    folder = str(Path(rightly.__file__).parent)
    program = (
        "import importlib, sys, types\n"
        "package = sys.modules['rightly'] = types.ModuleType('rightly')\n"
        f"package.__path__ = [{folder!r}]\n"
        f"for module in {MODULES}:\n"
        "    importlib.import_module(module)\n"
        f"    heavy = {HEAVY} & set(sys.modules)\n"
        "    assert not heavy, f'{module} loads {heavy}'\n"
        "assert 'numpy' in sys.modules\n"
    )
    run_python("-c", program, check=True)
