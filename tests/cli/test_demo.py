"""`rightly demo`, run as a user would."""

import re

import numpy as np
import pytest

from rightly.calibrators import CALIBRATORS
from rightly.cli import main


@pytest.mark.long
def test_it_prints_the_papers_table_and_writes_a_report(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    printed = capsys.readouterr().out
    groups = ("baseline", "paper", "own")
    assert_table(printed, [n for n, one in CALIBRATORS.items() if one.group in groups])
    rows = find_rows(printed)
    names = [re.split(r"\s{2,}", row)[0] for row in rows]
    assert len(rows) == 10 and len(set(rows)) == 10
    assert names[-2:] == [f"correctness_logistic, augmented{end}" for end in ("", ", adapted")]
    sentences = " ".join(printed.split())
    assert "A batch tells what one image cannot: adapted to each test set" in sentences
    assert "for four forward passes per image instead of one." in sentences
    assert "<svg" in (tmp_path / "rightly-demo-report-stream.svg").read_text()
    page = (tmp_path / "rightly-demo-report.html").read_text()
    assert str(tmp_path / "rightly-demo-report.html") in printed
    assert len(page) < 3_000_000
    for title in ("clean images", "haze", "pixelation"):
        assert title in printed and title in page


def find_rows(printed):
    return [line for line in printed.splitlines() if re.search(r"(\s+\d+\.\d+){12}$", line)]


def assert_table(printed, methods):
    lines = {row.split()[0]: row.split()[-12:] for row in find_rows(printed)}
    for name in methods:
        assert len(lines[name]) == 12
        assert all(np.isfinite(float(value)) for value in lines[name])
    assert not [name for name in CALIBRATORS if name in lines and name not in methods]


def test_methods_and_the_place_of_the_report_can_be_chosen(capsys, tmp_path):
    out = tmp_path / "[a].html"
    assert main(["demo", "--methods", "uncalibrated,spline", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert_table(printed, ["uncalibrated", "spline"])
    assert str(out) in printed and "rightly demo --methods uncalibrated,spline" in out.read_text()


@pytest.mark.long
def test_all_of_them_can_be_asked_for(capsys, tmp_path):
    assert main(["demo", "--methods", "all", "--out", str(tmp_path / "r.html")]) == 0
    listed = [name for name, one in CALIBRATORS.items() if one.fits_classes is None]
    assert_table(capsys.readouterr().out, listed)


def test_without_jinja2_the_table_is_printed_all_the_same(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("rightly.cli.demo.find_spec", lambda name: None)
    out = tmp_path / "r.html"
    assert main(["demo", "--methods", "uncalibrated", "--out", str(out)]) == 0
    captured = capsys.readouterr()
    assert_table(captured.out, ["uncalibrated"])
    assert "pip install 'rightly[report]'" in captured.err and not out.exists()
