"""The paper's tables with our values beside the published ones."""

import csv

import pytest
from benchmarks.long_table import Entry
from benchmarks.paper.setups import Classifier, Images, Setup
from benchmarks.paper.table_formats import FORMATS
from benchmarks.paper.tables import build_sheets

TOY = Setup(
    name="toy",
    about="",
    classifiers=(Classifier("one", "py:none:one"),),
    calibration=Images("cal", "cal", "folders"),
    tests=(Images("test", "test", "folders", published="Gaussian Blur"),),
    published="cifar10",
    same_as_published=False,
)


def build_entries(values):
    """Results of two classifiers on one test set: ECE of two methods, one with two seeds."""
    return [
        Entry("toy", classifier, "test", method, seed, "ece", value, 10, 0.1)
        for (classifier, method, seed), value in values.items()
    ]


def test_tables_average_seeds_then_classifiers_and_rank():
    rows = build_entries(
        {
            ("one", "ca_views", 0): 0.1,
            ("one", "ca_views", 1): 0.3,
            ("two", "ca_views", 0): 0.4,
            ("one", "spline", 0): 0.3,
            ("two", "spline", 0): 0.1,
        }
    )
    (sheet,) = build_sheets(rows, TOY, ["ece"])
    line = {line.method: line for line in sheet.lines}
    mean, spread, published = line["ca_views"].cells[0]
    assert (mean, spread) == (pytest.approx(30), pytest.approx(10))
    assert published == 11.45  # Gaussian Blur, CA+trans.
    assert line["ca_views"].cells[-1].mean == 1.5 and line["spline"].cells[-1].mean == 1.5
    assert line["temperature_scaling"].cells[0] == (None, None, 35.25)


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_shows_ours_beside_the_published_value(form):
    rows = build_entries({("one", "ca_views", 0): 0.1234, ("one", "spline", 0): 0.2})
    text = FORMATS[form](build_sheets(rows, TOY, ["ece"]))
    assert "11.45" in text and "12.34" in text
    if form == "csv":
        cells = list(csv.DictReader(text.splitlines()))
        assert {cell["setup"] for cell in cells} == {"toy"}
    else:
        assert "**12.34**" in text or r"\textbf{12.34}" in text


def test_an_unfinished_run_is_compared_on_the_classifiers_that_have_everything():
    rows = build_entries(
        {
            ("one", "ca_views", 0): 0.4,
            ("one", "spline", 0): 0.3,
            ("two", "ca_views", 0): 0.1,  # alone, it would make ca_views the better one
        }
    )
    (sheet,) = build_sheets(rows, TOY, ["ece"])
    line = {line.method: line for line in sheet.lines}
    assert line["ca_views"].cells[0].mean == pytest.approx(40)
    assert line["spline"].cells[0].mean == pytest.approx(30)
    assert line["spline"].cells[-1].mean == 1
    assert "Unfinished run, compared without two (lacks 1) of 2 values each." in sheet.notes
    assert "Unfinished run" in FORMATS["markdown"]([sheet])


def test_a_run_in_which_no_classifier_has_everything_is_refused():
    rows = build_entries({("one", "ca_views", 0): 0.4, ("two", "spline", 0): 0.1})
    with pytest.raises(ValueError, match=r"one \(lacks 1\), two \(lacks 1\): finish the run"):
        build_sheets(rows, TOY, ["ece"])
