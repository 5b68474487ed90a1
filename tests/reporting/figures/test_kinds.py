"""Every kind of figure is drawn from calibrators and test sets."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

import rightly
from rightly import Predictions, metrics
from rightly.calibrators.cascade import FULL_BAND
from rightly.evaluation.results import Result
from rightly.evaluation.views import ViewCost
from rightly.reporting.figures import (
    FIGURES,
    FigureData,
    draw_figure,
    draw_view_costs,
    include_uncalibrated,
    save,
)
from tests.conftest import make

TESTS = {"one": make(n=200, seed=1), "two": make(n=200, seed=2), "three": make(n=200, seed=3)}


@pytest.fixture(scope="module")
def data():
    cal = make(n=200)
    names = ("uncalibrated", "temperature_scaling")
    calibrators = {name: rightly.calibrator(name).fit(*cal).learn_shift(*cal) for name in names}
    results = [
        Result(name, test, "brier", 0.1, 0, 0.05, 0.2) for test in TESTS for name in calibrators
    ]
    return FigureData(TESTS, calibrators, cal, results, resamples=100, method="temperature_scaling")


@pytest.mark.parametrize("kind", FIGURES)
def test_every_kind_is_drawn_with_titles_and_a_legend(data, kind, tmp_path):
    if kind in ("views", "budget"):
        data = FigureData(TESTS, cal=data.cal, resamples=20, method="ca_views")
    ax = draw_figure(kind, data)
    titles = " ".join(one.get_title() for one in ax.figure.axes)
    assert all(name in titles for name in TESTS)
    assert ax.figure.legends or ax.get_legend() is not None
    save(ax, tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 2000


@pytest.mark.parametrize("kind", ["reliability", "roc"])
def test_one_test_set_fills_its_row(data, kind):
    one = FigureData({"one": TESTS["one"]}, data.calibrators)
    ax = draw_figure(kind, one)
    panels = [x for x in ax.figure.axes if x.get_title()]
    assert len(panels) == (2 if kind == "reliability" else 1)


@pytest.mark.parametrize("bins", [5, 15])
def test_a_diagram_shows_the_error_of_the_bins_that_it_draws(data, bins):
    ax = draw_figure("reliability", replace(data, bins=bins))
    test, truth = TESTS["one"]
    error = metrics.ece(test.confidence.numpy(), test.correct(truth).numpy(), bins=bins)
    assert ax.texts[0].get_text() == f"ECE {100 * error:.1f} %"


LONG = "gaussian_noise at severity {} on the night shift camera"


def find_boxes(figure):
    """The texts that are drawn, with their boxes in pixels."""
    FigureCanvasAgg(figure).draw()
    hidden = set()
    for ax in figure.axes:
        hidden |= set() if ax.axison else set(ax.findobj(Text))
        for axis, ends in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
            for tick in axis.get_major_ticks():
                if not min(ends) <= tick.get_loc() <= max(ends):
                    hidden |= {tick.label1, tick.label2}
    shown = [one for one in figure.findobj(Text) if one not in hidden and one.get_text().strip()]
    return {one: one.get_window_extent() for one in shown if one.get_visible()}


@pytest.mark.parametrize("count", [1, 8])
@pytest.mark.parametrize("kind", FIGURES)
def test_no_label_is_printed_over_another_or_off_the_page(data, kind, count):
    tests = {LONG.format(i): make(n=80, seed=i) for i in range(count)}
    results = [
        Result(name, test, "brier", 0.1, 0, 0.05, 0.2)
        for test in tests
        for name in data.calibrators
    ]
    options = {"method": "ca_views", "resamples": 20, "results": results}
    figure = draw_figure(kind, replace(data, tests=tests, **options)).figure
    boxes = find_boxes(figure)
    page = figure.bbox.padded(1)
    for one, box in boxes.items():
        assert page.contains(box.x0, box.y0) and page.contains(box.x1, box.y1), one.get_text()
    for (one, box), (other, near) in combinations(boxes.items(), 2):
        wide = min(box.x1, near.x1) - max(box.x0, near.x0)
        high = min(box.y1, near.y1) - max(box.y0, near.y0)
        assert wide <= 1 or high <= 1, (one.get_text(), other.get_text())


def test_steps_show_a_stream_before_and_after_adapting(data):
    both = {"one": TESTS["one"], "two": TESTS["two"]}
    ax = draw_figure("steps", replace(data, tests=both))
    titles = [one.get_title() for one in ax.figure.axes]
    assert titles[:4] == ["1. one", "2. one", "3. two", "4. two"] and not any(titles[4:])
    test, truth = TESTS["one"][0][:100], TESTS["one"][1][:100]
    adapted = data.calibrators["temperature_scaling"].adapt(test)
    error = metrics.ece(adapted.confidence(test).numpy(), test.correct(truth).numpy(), bins=15)
    assert ax.figure.axes[4].texts[0].get_text() == f"ECE {100 * error:.1f} %"
    with pytest.raises(ValueError, match="one calibrator before and after adapting, got none"):
        draw_figure("steps", replace(data, calibrators={"uncalibrated": None}))


def test_the_classifiers_own_confidence_comes_first(data):
    fitted = {"x": data.calibrators["temperature_scaling"]}
    assert list(include_uncalibrated(fitted)) == ["uncalibrated", "x"]
    assert include_uncalibrated(data.calibrators) == data.calibrators


@pytest.mark.parametrize(
    ("kind", "fields", "words"),
    [
        ("nothing", {}, "kind 'nothing' is not known"),
        ("reliabilty", {}, "did you mean reliability"),
        ("roc", {}, "needs tests"),
        ("roc", {"tests": TESTS}, "needs calibrators"),
        ("views", {"tests": TESTS}, "needs cal, .* got none"),
        ("values", {}, "needs results"),
        ("roc", {"metric": "ecee"}, "metric 'ecee' is not known: did you mean ece"),
    ],
)
def test_what_is_missing_is_told(kind, fields, words):
    with pytest.raises(ValueError, match=words):
        draw_figure(kind, FigureData(**fields))


def test_views_must_be_in_the_calibration_data():
    predictions, labels = make(n=50)
    bare = (Predictions(predictions.logits), labels)
    with pytest.raises(ValueError, match="got predictions without views"):
        draw_figure("budget", FigureData(TESTS, cal=bare))


def test_view_bars_show_changes_in_percent(data):
    given = FigureData({"one": TESTS["one"]}, cal=data.cal, method="ca_views", resamples=100)
    ax = draw_figure("views", given)
    widths = [patch.get_width() for patch in ax.patches]
    assert len(widths) == 4  # three views, and all of them
    measured = []
    for views in (*((name,) for name in data.cal[0].view_names), data.cal[0].view_names):
        fitted = rightly.calibrator("ca_views", seed=0).fit(
            data.cal[0].with_views(views), data.cal[1]
        )
        test = TESTS["one"][0].with_views(views)
        correct = test.correct(TESTS["one"][1])
        measured.append(metrics.METRICS["brier"].measure(fitted.confidence(test), correct))
    base = data.calibrators["temperature_scaling"].confidence(TESTS["one"][0])
    own = metrics.METRICS["brier"].measure(base, TESTS["one"][0].correct(TESTS["one"][1]))
    np.testing.assert_allclose(widths, 100 * (np.array(measured) - own))
    assert ax.get_xlabel().startswith("change of Brier score, %")


def test_costs_are_drawn_against_the_passes_they_take():
    costs = [
        ViewCost(b, b - 0.5, FULL_BAND, 0.1 * b, 0.9, 0.02, 0.01, 0.0, 0.02) for b in (2.0, 3.0)
    ]
    ax = draw_view_costs(costs)
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [1.5, 2.5])
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [20, 30])
    assert len(ax.figure.axes) == 3


def test_one_view_alone_has_no_bar_for_all(data):
    cal = (data.cal[0].with_views(["view0"]), data.cal[1])
    given = FigureData({"one": TESTS["one"]}, cal=cal, method="ca_views", resamples=100)
    assert len(draw_figure("views", given).patches) == 1
