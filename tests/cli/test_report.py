"""`rightly report`: what it takes. The page is in tests/reporting/html."""

import html

import pytest

import rightly
from rightly import Decision
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


def test_the_terminal_tells_what_is_guaranteed_and_what_voids_it(files, tmp_path, capsys):
    calibrator, test = tmp_path / "c.safetensors", files / "ind.npz"
    told = {"guaranteed": "confidence level 95 %: met", "void": "guarantee void: adapted data"}
    for name, words in told.items():
        fitted = rightly.load_calibrator(files / "saved.safetensors")
        decision = Decision(
            0.1, "guaranteed", 200, 1.0, max_error=0.9, confidence_level=0.95, error_bound=0.8
        )
        fitted.decision = decision.voided("adapted data") if name == "void" else decision
        fitted.save(calibrator)
        options = ["--resamples", "100", "--out", str(tmp_path / "report.html")]
        assert main(["report", str(calibrator), str(test), *options]) == 0
        printed = " ".join(capsys.readouterr().out.split())
        assert "On ind: accepted from confidence 0.1000: " in printed and words in printed


def test_methods_without_their_inputs_are_skipped_with_a_word(files, tmp_path, capsys):
    bare, out = str(files / "bare.npz"), str(tmp_path / "r.html")
    arguments = ["report", "spline", bare, "--cal", bare, "--allow-overlap"]
    arguments += ["--methods", "paper", "--resamples", "200"]
    assert main([*arguments, "--out", out]) == 0
    assert "skipped: needs view_logits (ca_views)" in capsys.readouterr().err
