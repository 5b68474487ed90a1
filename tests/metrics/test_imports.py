"""Metrics and decisions load NumPy alone: a server or a notebook without torch can use them."""

from pathlib import Path

import pytest

import rightly
from tests.processes import run_python

HEAVY = {"torch", "scipy", "sklearn", "matplotlib", "pandas"}


@pytest.mark.parametrize(
    "module",
    [
        "rightly.metrics",
        "rightly.metrics.bootstrap",
        "rightly.metrics.curves",
        "rightly.decisions",
        "rightly.registry",
        "rightly.optional",
    ],
)
def test_importing_it_loads_nothing_heavy(module):
    # A bare package in place of rightly/__init__.py, so that this says what the module itself and
    # all it imports load, however much the package's surface does.
    folder = str(Path(rightly.__file__).parent)
    code = (
        "import sys, types\n"
        "package = sys.modules['rightly'] = types.ModuleType('rightly')\n"
        f"package.__path__ = [{folder!r}]\n"
        f"import {module}\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    result = run_python("-c", code, check=True)
    assert "numpy" in result.stdout.split() or not module.startswith("rightly.metrics")
    assert not HEAVY & set(result.stdout.split())
