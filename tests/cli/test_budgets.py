"""`rightly views --budgets`, run as a user would."""

import json

import pytest

from rightly.cli import main


def test_it_prints_draws_and_writes_the_curve(files, tmp_path, capsys):
    out, figure = tmp_path / "curve.json", tmp_path / "curve.svg"
    arguments = ["--method", "ca_views", "--json", str(out), "--plot", str(figure)]
    assert main(["views", str(files / "cal.npz"), "--budgets", "all", *arguments]) == 0
    document = json.loads(out.read_text())
    assert (document["format"], document["version"]) == ("rightly-view-cost", 1)
    assert document["method"] == "ca_views"
    assert document["views"] == ["view0", "view1", "view2"]
    points = document["points"]
    assert points[0]["passes"] == 1 and points[-1]["passes"] == 4
    printed = capsys.readouterr().out
    assert "everywhere" in printed and "never" in printed
    assert f"{100 * points[-1]['brier']:.2f}" in printed
    assert " ".join(printed.split()).endswith(document["recommendation"])
    gained = points[0]["brier"] - points[-1]["brier"]
    assert points[0]["gain"] == 0 and points[-1]["gain"] == pytest.approx(gained)
    assert "AUROC" in figure.read_text()


def test_budgets_are_numbers(files, tmp_path, capsys):
    out = tmp_path / "curve.json"
    arguments = ["views", str(files / "cal.npz"), "--method", "temperature_scaling"]
    assert main([*arguments, "--budgets", "1,few"]) == 2
    assert "budgets must be numbers joined by commas, got '1,few'" in capsys.readouterr().err
    arguments[-1] = "ca_views"
    assert main([*arguments, "--budgets", "1,2", "--json", str(out)]) == 0
    points = json.loads(out.read_text())["points"]
    assert [point["budget"] for point in points] == [1, 2, 4]  # all views come last
