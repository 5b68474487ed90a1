"""Every kind of figure is drawn from calibrators and test sets."""

import numpy as np
import pytest

import rightly
from rightly import Predictions
from rightly.calibrators.cascade import FULL_BAND
from rightly.evaluation.results import Result
from rightly.evaluation.view_cost import ViewCost
from rightly.metrics import METRICS
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
    calibrators = {name: rightly.calibrator(name).fit(*cal) for name in names}
    results = [
        Result(name, test, "brier", 0.1, 0, 0.05, 0.2) for test in TESTS for name in calibrators
    ]
    return FigureData(TESTS, calibrators, cal, results, resamples=100, method="temperature_scaling")


@pytest.mark.parametrize("kind", FIGURES)
def test_every_kind_is_drawn(data, kind, tmp_path):
    if kind in ("views", "budget"):
        data = FigureData(TESTS, cal=data.cal, resamples=100, method="ca_views")
    ax = draw_figure(kind, data)
    titles = " ".join(one.get_title() for one in ax.figure.axes)
    assert all(name in titles for name in TESTS)
    save(ax, tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 2000


@pytest.mark.parametrize("kind", ["reliability", "roc"])
def test_one_test_set_fills_its_row(data, kind):
    one = FigureData({"one": TESTS["one"]}, data.calibrators)
    ax = draw_figure(kind, one)
    panels = [x for x in ax.figure.axes if x.get_title()]
    assert len(panels) == (2 if kind == "reliability" else 1)


def test_a_diagram_shows_the_error_of_its_calibrator(data):
    ax = draw_figure("reliability", data)
    test, truth = TESTS["one"]
    ece = METRICS["ece"].measure(test.confidence, test.correct(truth))
    assert ax.texts[0].get_text() == f"ECE {100 * ece:.1f} %"


def test_the_classifiers_own_confidence_comes_first(data):
    fitted = {"x": data.calibrators["temperature_scaling"]}
    assert list(include_uncalibrated(fitted, TESTS)) == ["uncalibrated", "x"]
    assert include_uncalibrated(data.calibrators, TESTS) == data.calibrators


@pytest.mark.parametrize(
    ("kind", "fields", "words"),
    [
        ("nothing", {}, "kind must be one of"),
        ("reliabilty", {}, "did you mean 'reliability'"),
        ("roc", {}, "needs tests"),
        ("roc", {"tests": TESTS}, "needs calibrators"),
        ("views", {"tests": TESTS}, "needs cal, .* got none"),
        ("values", {}, "needs results"),
        ("roc", {"metric": "ecee"}, "metric must be one of"),
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
        measured.append(METRICS["brier"].measure(fitted.confidence(test), correct))
    base = data.calibrators["temperature_scaling"].confidence(TESTS["one"][0])
    own = METRICS["brier"].measure(base, TESTS["one"][0].correct(TESTS["one"][1]))
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
