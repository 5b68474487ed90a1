"""`rightly report`: what it takes. The page is in tests/reporting/html."""

import html

import pytest

from rightly.cli import main


def test_the_page_holds_the_command_that_makes_it(files, tmp_path, capsys):
    out = tmp_path / "r.html"
    arguments = ["report", "ca_only", f"[b]a c[/b]={files / 'ind.npz'}"]
    arguments += ["--cal", str(files / "cal.npz"), "--methods", "uncalibrated", "--title", "it"]
    arguments += ["--resamples", "200", "--seed", "3"]
    assert main([*arguments, "--out", str(out)]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("Accuracy: [b]a c[/b] ") and captured.err == ""
    assert captured.out.endswith(f"the report is in {out}\n")
    page = html.unescape(out.read_text())
    assert "--resamples 200 --seed 3" in page
    assert f"rightly report ca_only '[b]a c[/b]={files / 'ind.npz'}' --cal" in page
    assert "--methods uncalibrated" in page and "--images" not in page


@pytest.mark.parametrize("has_cal", [True, False])
def test_a_saved_calibrator_is_reported_on_alone_or_beside_methods(files, tmp_path, has_cal):
    saved, out = str(files / "saved.safetensors"), tmp_path / "page.html"
    cal = ["--cal", str(files / "cal.npz")] if has_cal else []
    options = [*cal, "--resamples", "200", "--out", str(out)]
    assert main(["report", saved, str(files / "ind.npz"), *options]) == 0
    page = html.unescape(out.read_text())
    assert f"rightly report {saved}" in page and "--methods " not in page
    assert "spline" in page and ("multi_isotonic" in page) is False
    assert ("ensemble_temperature_scaling</" in page) == has_cal


def test_methods_without_their_inputs_are_skipped_with_a_word(files, tmp_path, capsys):
    bare, out = str(files / "bare.npz"), str(tmp_path / "r.html")
    arguments = ["report", "spline", bare, "--cal", bare, "--allow-overlap"]
    arguments += ["--methods", "paper", "--resamples", "200"]
    assert main([*arguments, "--out", out]) == 0
    assert "skipped: needs view_logits (ca_views)" in capsys.readouterr().err
