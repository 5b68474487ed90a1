"""Results go into files and frames, and come back."""

import csv
import io
import json
import math
import sys
import types

import pytest

from rightly.evaluation.compare import Comparison
from rightly.evaluation.results import Result, count, read_results
from tests.reporting.test_layout import make_results

ROW = {"calibrator": "ts", "dataset": "ind", "metric": "ece", "value": 0.1, "seed": 0}


@pytest.fixture
def comparison():
    return Comparison(make_results(), 200, "ts", 3, 64, {"ca_views": ("view_logits",)})


def test_rows_are_a_sequence(comparison):
    assert list(comparison) == comparison.results and len(comparison) == 4
    assert comparison[0] == comparison.results[0] and comparison[1:3] == comparison.results[1:3]


def test_csv_has_a_line_for_each_row(comparison, tmp_path):
    text = comparison.to_csv(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["calibrator"] for row in rows] == ["ts", "x", "ts", "x"]
    assert float(rows[0]["value"]) == 0.2 and rows[3]["value"] == ""
    assert list(rows[0]) == list(Result._fields)


def test_json_is_versioned_and_comes_back(comparison, tmp_path):
    content = json.loads(comparison.to_json(tmp_path / "a.json"))
    assert content["format"] == "rightly-results" and content["version"] == 2
    assert content["kind"] == "comparison" and content["rows"][3]["value"] is None
    again = Comparison.load(tmp_path / "a.json")
    assert [str(row) for row in again] == [str(row) for row in comparison]
    names = ("resamples", "reference", "seed", "adapt", "skipped")
    assert all(getattr(again, name) == getattr(comparison, name) for name in names)
    Comparison(make_results()).to_json(tmp_path / "b.json")
    assert Comparison.load(tmp_path / "b.json").resamples is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 1}, "format version 1, but this rightly reads 2"),
        ({"kind": "ranking"}, "must hold a comparison, got a ranking"),
        ({"format": "other"}, "must be JSON of results"),
        ({"rows": [{"what": 1}]}, "is damaged"),
        ({"rows": []}, "damaged .no rows"),
        ({"skipped": 3}, "is damaged"),
        ({"reference": "none of them"}, "is damaged .*reference must be one of"),
        ({"resamples": 0}, "is damaged"),
        ({"adapt": 0}, "is damaged"),
        ({"rows": [{**ROW, "dataset": 3}]}, "is damaged .*names and numbers"),
        ({"rows": [{**ROW, "value": "0.1"}]}, "is damaged .*names and numbers"),
    ],
)
def test_other_files_are_refused_with_a_remedy(comparison, tmp_path, change, words):
    path = tmp_path / "a.json"
    path.write_text(json.dumps({**json.loads(comparison.to_json()), **change}))
    with pytest.raises(ValueError, match=words):
        Comparison.load(path)


def test_text_that_is_no_json_is_refused(tmp_path):
    (tmp_path / "a.json").write_text("[1, 2")
    with pytest.raises(ValueError, match="must be JSON of results"):
        read_results(tmp_path / "a.json", "comparison")


def test_an_unknown_metric_is_refused(comparison, tmp_path):
    rows = [row._replace(metric="mine") for row in comparison]
    Comparison(rows).to_json(tmp_path / "a.json")
    with pytest.raises(ValueError, match="unknown metric 'mine'"):
        Comparison.load(tmp_path / "a.json")


def test_latex_markdown_and_html_show_the_values(comparison, tmp_path):
    for text in (
        comparison.to_latex(tmp_path / "a.tex"),
        comparison.to_markdown(tmp_path / "a.md"),
        comparison._repr_html_(),
    ):
        assert "20.00" in text and "10.00" in text and "n/a" in text
    assert (tmp_path / "a.tex").read_text() == comparison.to_latex()


def test_a_frame_is_made_by_pandas_or_its_absence_is_told(comparison, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        comparison.to_frame()
    # A stand-in with the one call that is used: pandas itself is no dependency of the tests.
    monkeypatch.setitem(sys.modules, "pandas", types.SimpleNamespace(DataFrame=list))
    frame = comparison.to_frame()
    assert frame[0]["metric"] == "ece" and math.isnan(frame[3]["value"])


def test_counts_have_their_plural():
    assert count(["a"], "test set") == "1 test set" and count(2, "method") == "2 methods"
