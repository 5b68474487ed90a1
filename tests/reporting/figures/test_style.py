"""Figures look alike, stay text, repeat, and leave the caller's style alone."""

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_hex

from rightly.metrics import curves
from rightly.reporting import figures
from tests.processes import run_python
from tests.reporting.figures.test_calibration import make_pair


def test_lines_differ_in_more_than_colour():
    band = curves.temperature_band(np.linspace(0.1, 1, 200), np.ones(200))
    ax = figures.draw_temperature({str(i): band for i in range(4)})
    drawn = ax.lines[1:]
    assert len({to_hex(x.get_color()) for x in drawn}) == 4
    assert len({x.get_marker() for x in drawn}) == 4
    assert len({x._dash_pattern[1] and tuple(x._dash_pattern[1]) for x in drawn}) == 4


def test_a_figure_draws_on_the_axes_it_gets_and_leaves_the_style_alone():
    before = dict(matplotlib.rcParams)
    grid = figures.make_grid(1, 2)
    data = curves.reliability(*make_pair())
    assert figures.draw_reliability(data, grid[0, 1]) is grid[0, 1]
    assert not grid[0, 0].lines
    assert dict(matplotlib.rcParams) == before


def test_text_stays_text_and_files_repeat(tmp_path):
    for name in ("a.svg", "b.svg", "a.pdf", "b.pdf"):
        ax = figures.draw_reliability(curves.reliability(*make_pair()), title="my title")
        figures.save(ax, tmp_path / name)
    svg = (tmp_path / "a.svg").read_text()
    assert "my title" in svg and "accuracy" in svg and "<text" in svg
    for kind in ("svg", "pdf"):
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()
    with pytest.raises(ValueError, match=r"path must end in \.pdf"):
        figures.save(ax, tmp_path / "a.gif")


def test_kinds_are_listed_without_matplotlib():
    code = (
        "import sys\nfrom rightly.reporting.figures import FIGURES\n"
        "print(len(FIGURES) > 0, 'matplotlib' in sys.modules)"
    )
    shown = run_python("-c", code, check=True)
    assert shown.stdout.split() == ["True", "False"]


def test_an_unknown_name_is_no_attribute():
    assert "draw_reliability" in dir(figures)
    with pytest.raises(AttributeError, match="nothing"):
        figures.nothing  # noqa: B018
