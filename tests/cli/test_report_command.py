"""`rightly report`: what it takes. The page is in tests/reporting/test_html.py."""

import html

from rightly.cli import main


def test_the_page_holds_the_command_that_makes_it(files, tmp_path, capsys):
    out = tmp_path / "r.html"
    arguments = ["report", str(files / "cal.npz"), "--on", f"[b]a c[/b]={files / 'ind.npz'}"]
    arguments += ["--method", "ca_only", "--methods", "uncalibrated", "--title", "it"]
    arguments += ["--resamples", "200", "--fit-seed", "2", "--bootstrap-seed", "3"]
    assert main([*arguments, "--out", str(out)]) == 0
    assert f"the report is in {out}" in capsys.readouterr().out
    page = html.unescape(out.read_text())
    assert "--fit-seed 2 --bootstrap-seed 3" in page
    assert f"--on '[b]a c[/b]={files / 'ind.npz'}'" in page
    assert "--method ca_only --methods uncalibrated" in page and "--images" not in page
