"""Numbers, headings, marks and words are written in one way."""

import math

import pytest

from rightly.evaluation.results import Result
from rightly.metrics import METRICS
from rightly.reporting import formatting
from rightly.reporting.formatting import BETTER, SAME, WORSE
from tests.processes import run_python

NAN = math.nan


def make_result(metric="ece", value=0.1234, **fields):
    return Result("x", "a", metric, value, 0, **fields)


def test_headings_point_to_what_is_better():
    assert formatting.format_heading("ece") == "ece ↓"
    assert formatting.format_heading("auroc") == "auroc ↑"
    assert formatting.format_heading("narrowly_wrong") == "narrowly_wrong"
    assert formatting.format_title("brier") == "Brier score ↓"


def test_shares_are_in_percent_and_others_as_they_are():
    assert formatting.format_value(make_result("ece", 0.12346)) == "12.35"
    assert formatting.format_value(make_result("nll", 0.12346)) == "0.123"
    assert formatting.format_value(make_result("ece", NAN)) == "n/a"
    assert formatting.format_number("ece", -0.00001) == "0.00"


def test_means_over_seeds_have_a_spread():
    assert formatting.format_mean("ece", [0.1]) == "10.00"
    assert formatting.format_mean("ece", [0.1, 0.2]) == "15.00 ±5.00"
    assert formatting.format_mean("ece", []) == "n/a"
    assert formatting.format_mean("auroc", [0.1, NAN]) == "n/a"


def test_intervals_are_a_digit_shorter_and_changes_signed():
    row = make_result(low=0.1, high=0.2345)
    assert formatting.format_interval(row) == "10.0–23.4"
    assert formatting.format_interval(row._replace(low=-0.1)) == "-10.0 to 23.4"
    assert formatting.format_interval(make_result("nll", 0.1, low=0.05, high=0.2)) == "0.05–0.20"
    assert formatting.format_interval(make_result()) == ""
    assert formatting.format_change(make_result(value=0.01)) == "+1.00"
    assert formatting.format_change_interval(row._replace(low=-0.1)) == "-10.00 to +23.45"
    assert formatting.format_change_interval(make_result()) == ""
    assert formatting.format_percent(0.1234) == "12.3" and formatting.format_percent(NAN) == "–"


def test_units_are_named_where_they_differ():
    assert formatting.format_units(["ece", "brier"]) == "in %"
    assert formatting.format_units(METRICS) == "in %, except NLL"


@pytest.mark.parametrize(
    ("metric", "value", "p", "mark"),
    [
        ("ece", 0.1, 0.01, BETTER),
        ("ece", 0.3, 0.01, WORSE),
        ("auroc", 0.3, 0.01, BETTER),
        ("auroc", 0.1, 0.01, WORSE),
        ("ece", 0.1, 0.06, SAME),
        ("ece", 0.2, 0.01, SAME),
        ("ece", 0.1, NAN, ""),
        ("narrowly_wrong", 0.1, 0.01, ""),
    ],
)
def test_a_mark_follows_the_corrected_p_value_and_the_direction(metric, value, p, mark):
    assert formatting.mark_result(make_result(metric, value, p_holm=p), 0.2) == mark
    change = make_result(metric, value - 0.2, p_holm=p)
    assert formatting.mark_change(change) == mark


def test_marks_have_words():
    assert formatting.describe_mark(BETTER) == "▲ better"
    assert formatting.describe_mark("") == ""
    assert formatting.describe_tests("ece", [BETTER, WORSE, SAME, SAME, ""], "ts") == (
        "ece, beside ts: 1 better, 1 worse, 2 with no detectable difference"
    )
    assert formatting.describe_tests("ece", [WORSE], "ts") == "ece, beside ts: 1 worse"
    assert formatting.describe_tests("ece", [SAME], "ts") == (
        "ece: no detectable difference between ts and any other"
    )
    assert formatting.describe_tests("ece", ["", "◆"], "ts") == ""


def test_the_best_value_is_in_the_metrics_direction():
    assert formatting.find_best("ece", [0.2, NAN, 0.1]) == 0.1
    assert formatting.find_best("auroc", [0.2, 0.1]) == 0.2
    assert math.isnan(formatting.find_best("narrowly_wrong", [0.2, 0.1]))
    assert math.isnan(formatting.find_best("ece", [NAN]))


def test_the_noise_floor_is_that_of_the_reference():
    rows = [
        make_result(floor=0.01, floor_high=0.02),
        make_result(floor=0.03, floor_high=0.04)._replace(calibrator="ts"),
    ]
    (line,) = formatting.describe_floor(rows, "ts")
    assert "ts would score 3.00" in line and "below 4.00" in line
    assert formatting.describe_floor(rows, "other") == []
    assert formatting.is_within_noise(make_result(value=0.02, floor_high=0.02))
    assert not formatting.is_within_noise(make_result())


def test_the_legend_says_how_tests_were_made():
    lines = formatting.describe_bootstrap("ts", 200, 7, ["ece", "nll"])
    text = " ".join(lines)
    assert (
        "200 resamples, seed 7" in text and "in %, except NLL" in text and "worse than ts" in text
    )


def test_an_interval_is_said_to_be_for_the_population_and_not_for_another_test_set():
    # How often it holds another test set's value: tests/metrics/test_bootstrap.py.
    texts = [formatting.describe_interval()]
    texts += formatting.describe_bootstrap("ts", 200, 7, ["ece"])
    assert "confidence interval" in texts[0] and texts[0] in texts[-1]
    assert not any("another test set" in text for text in texts)


def test_modules_of_text_import_no_torch():
    # The package rightly is imported as an empty one, so that only what they ask for loads.
    code = (
        "import sys, types, pathlib, importlib.util as u\n"
        "root = pathlib.Path(u.find_spec('rightly').submodule_search_locations[0])\n"
        "empty = types.ModuleType('rightly'); empty.__path__ = [str(root)]\n"
        "sys.modules['rightly'] = empty\n"
        "from rightly.reporting import formatting, layout, markup, terminal\n"
        "print(sorted({'torch', 'scipy', 'matplotlib'} & set(sys.modules)))"
    )
    shown = run_python("-c", code, check=True)
    assert shown.stdout.strip() == "[]"
