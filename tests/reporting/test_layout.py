"""Results are laid out once, for every renderer."""

import math

import pytest

from rightly.calibrators import calibrator
from rightly.calibrators.cascade import EMPTY_BAND, FULL_BAND, Band
from rightly.evaluation.compare import Comparison
from rightly.evaluation.evaluate import Evaluation, open_calibrator
from rightly.evaluation.measurement import BeforeAfter
from rightly.evaluation.results import Result
from rightly.evaluation.selection import Candidate, MethodChoice
from rightly.evaluation.views import ViewCost, ViewGain
from rightly.reporting import layout as layouts

NAN = math.nan


def make_results():
    """Two calibrators on two test sets; the second is better on the first set."""
    return [
        Result("ts", "a", "ece", 0.2, 0, 0.1, 0.3, floor=0.1, floor_high=0.15),
        Result("x", "a", "ece", 0.1, 0, 0.05, 0.15, 0.01, 0.01, 0.1, 0.12),
        Result("ts", "b", "ece", 0.2, 0, 0.1, 0.3),
        Result("x", "b", "ece", NAN, 0),
    ]


def column(layout, heading, group=""):
    (one,) = [c for c in layout.columns if (c.heading, c.group) == (heading, group)]
    return one.cells


def test_a_comparison_has_a_group_of_columns_for_each_test_set():
    layout = layouts.lay_out_comparison(Comparison(make_results()))
    assert layout.names == ["ts", "x"] and layout.groups == ["a", "b"]
    first, second = column(layout, "ece ↓", "a")
    assert (first.text, second.text) == ("20.00", "10.00")
    assert second.is_best and not first.is_best
    assert not first.mark and not first.interval
    assert column(layout, "ece ↓", "b")[1].is_missing
    assert layout.select(["b"]).groups == ["b"]


def test_tests_are_laid_out_against_the_reference():
    layout = layouts.lay_out_comparison(Comparison(make_results(), 200, "ts"))
    first, second = column(layout, "ece ↓", "a")
    assert (first.mark, first.flag, first.interval) == ("◆", "", "10.0–30.0")
    assert (second.mark, second.flag, second.interval) == ("▲", "°", "5.0–15.0")
    floor, words = layout.group_notes["a"]
    assert "noise floor" in floor and words == "ece, beside ts: 1 better"
    assert layout.group_notes["b"] == []
    assert "200 resamples" in layout.notes[0]


def test_a_value_that_was_not_measured_is_missing():
    layout = layouts.lay_out_comparison(Comparison(make_results()[:3]))
    assert column(layout, "ece ↓", "b")[1].is_missing


def test_seeds_are_averaged():
    rows = [Result("x", "a", "ece", v, i) for i, v in enumerate((0.1, 0.3))]
    layout = layouts.lay_out_comparison(Comparison([*rows, Result("y", "a", "ece", 0.25, 0)]))
    first, second = column(layout, "ece ↓", "a")
    assert first.text == "20.00 ±10.00" and first.is_best and not second.is_best


def test_an_evaluation_has_before_after_and_change(sample):
    def rows(name, value, **fields):
        return {"ece": Result(name, "a", "ece", value, 0, **fields)}

    one = BeforeAfter(
        rows("uncalibrated", 0.2, low=0.1, high=0.3),
        rows("x", 0.1, low=0.05, high=0.2),
        rows("change", -0.1, low=-0.2, high=-0.05, p=0.01, p_holm=0.01),
    )
    fitted = open_calibrator(calibrator("ts").fit(*sample))
    layout = layouts.lay_out_evaluation(Evaluation({"a": one}, fitted, {"a": sample}, {"a": 0.5}))
    (group,) = layout.groups
    assert group == "temperature_scaling on a: 300 samples, accuracy 50.0 %"
    assert layout.names == ["ece ↓"] and "binned errors have 25 bins" in layout.notes[0]
    assert not column(layout, "before", group)[0].is_best
    assert column(layout, "after", group)[0].is_best
    (change,) = column(layout, "change", group)
    assert (change.text, change.interval) == ("-10.00", "-20.00 to -5.00")
    assert change.mark == "▲ better"


def test_views_are_named_alone_or_as_added():
    gains = [
        ViewGain(("a",), 0.1, 0.2, 0.03, 0.01, 0.05),
        ViewGain(("a", "b"), 0.1, 0.1, 0.0, 0.0, 0.0),
    ]
    assert layouts.lay_out_gains("view", gains).names == ["a", "b"]
    layout = layouts.lay_out_gains("view", gains, is_grown=True)
    assert layout.names == ["a", "+ b"]
    assert column(layout, "gain ↑")[0].interval == "1.000 to 5.000"
    assert column(layout, "a pass ↑")[0].text == "3.000"


def test_costs_say_where_views_are_looked_at():
    bands = (EMPTY_BAND, Band(0.25, 0.75), FULL_BAND)
    layout = layouts.lay_out_view_costs(
        [ViewCost(2.0, 1.5, band, 0.1, 0.9, 0.02, 0.01, 0.0, 0.02) for band in bands]
    )
    shown = [cell.text for cell in column(layout, "views looked at where")]
    assert shown == ["never", "0.250 to 0.750", "everywhere"]
    assert column(layout, "auroc ↑")[0].text == "90.00"


@pytest.mark.parametrize("shifted", [None, 0.3])
def test_candidates_show_shifted_losses_where_there_are_any(shifted):
    one = Candidate("ts", 0.1, shifted, 0.2, 0.0, 0.0)
    layout = layouts.lay_out_candidates(MethodChoice("ts", "why", (one,)))
    headings = [c.heading for c in layout.columns]
    assert ("under shift ↓" in headings) == (shifted is not None)
    assert layout.notes == ("why.",) and layout.columns[0].cells[0].is_best
