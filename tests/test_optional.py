"""Optional libraries: loaded when needed, and when missing, what to install."""

import json

import pytest

import rightly.metrics
import rightly.registry
from rightly.optional import lazy_names, require
from tests.processes import run_python


def test_a_library_that_is_there_is_loaded():
    assert require("json") is json
    assert require("xml.dom").__name__ == "xml.dom"


def test_a_missing_library_is_answered_by_what_to_install():
    with pytest.raises(ImportError, match=r"needs the package no_such: pip install no_such$"):
        require("no_such.part")
    with pytest.raises(ImportError, match=r"pip install 'rightly\[plots\]'$"):
        require("no_such", "plots")


def test_a_library_that_lacks_one_of_its_own_is_not_called_missing(tmp_path, monkeypatch):
    (tmp_path / "needs_another.py").write_text("import another_that_is_missing\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="another_that_is_missing"):
        require("needs_another", "plots")


def test_a_library_that_refuses_to_load_says_why(tmp_path, monkeypatch):
    (tmp_path / "built_for_another.py").write_text("raise RuntimeError('built for another')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ImportError, match="installed but cannot be loaded: built for another"):
        require("built_for_another")


def test_lazy_names_load_their_module_when_used():
    names, load, listing = lazy_names("rightly", {"registry": ("register",), "": ("metrics",)})
    assert names == ["register", "metrics"] and listing() == ["metrics", "register"]
    assert load("register") is rightly.registry.register
    assert load("metrics") is rightly.metrics
    with pytest.raises(AttributeError, match="module 'rightly' has no attribute 'tea'"):
        load("tea")


EXTRAS = [
    ("collect", "transforms.shifts.SHIFTS.find('jpeg')(torch.rand(1, 3, 8, 8), 3, 0)"),
    ("collect", "classifiers.Preprocessing((2, 2)).pixels(np.zeros((4, 4, 3), 'u1'))"),
    ("collect", "load('.')"),
    ("plots", "optional.importlib.import_module('rightly.reporting.figures.style')"),
    ("report", "report('ts', {}, cal='x')"),
]


def test_a_missing_extra_is_named(tmp_path):
    program = f"""
import sys
for package in ("PIL", "pyarrow", "matplotlib", "jinja2"):
    sys.modules[package] = None
import numpy as np, torch, rightly
import rightly.classifiers, rightly.reporting, rightly.transforms.shifts
for extra, code in {EXTRAS}:
    try:
        eval(f"rightly.{{code}}")
        assert False, f"{{code}} runs without an extra"
    except ImportError as error:
        assert f"pip install 'rightly[{{extra}}]'" in str(error), (code, error)
"""
    (tmp_path / "part-000000.parquet").touch()
    run_python("-c", program, cwd=tmp_path, check=True)
