"""`rightly plot`: what it takes. The figures are in tests/reporting/figures."""

import pytest

from rightly.cli import main
from rightly.cli.plot_command import KINDS
from rightly.reporting.figures import FIGURES


def test_help_lists_every_kind_that_can_be_drawn(capsys):
    assert set(KINDS) == {name for name in FIGURES if FIGURES[name].needs != "results"}
    assert main(["plot", "--help"]) == 0
    printed = capsys.readouterr().out
    assert all(f"    {kind} " in printed and text in printed for kind, text in KINDS.items())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["relability", "--out", "a.png"], "did you mean reliability?"),
        (["loss-surface", "--out", "a.png"], "KIND 'loss-surface' is not known: "),
        (["reliability", "--out", "a.gif"], "--out must end in"),
        (["roc", "--out", "a.png"], "plot roc needs a test set: add --on FILE"),
        (["roc", "--on", "{cal}", "--out", "a.png"], "--calibrator FILE, or --methods NAMES"),
        (["roc", "--on", "{cal}", "--methods", "ts", "--out", "a.png"], "--methods needs --cal"),
        (["views", "--on", "{cal}", "--out", "a.png"], "plot views needs --cal"),
        (
            [
                "budget",
                "--cal",
                "{cal}",
                "--on",
                "{cal}",
                "--methods",
                "ts,ca_views",
                "--out",
                "a.png",
            ],
            "plot budget draws one method, got --methods ts,ca_views",
        ),
        (
            ["roc", "--on", "{cal}", "--calibrator", "{saved}", "--calibrator", "{saved}"]
            + ["--calibrator", "{saved}", "--out", "a.png"],
            "--calibrator needs different names, got 'saved' twice",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(files, capsys, arguments, words):
    names = {"cal": files / "cal.npz", "saved": files / "saved.safetensors"}
    assert main(["plot", *(argument.format(**names) for argument in arguments)]) == 2
    assert words in capsys.readouterr().err


def test_saved_calibrators_are_drawn_beside_the_classifiers_own_confidence(files, tmp_path, capsys):
    out = tmp_path / "roc.svg"
    arguments = ["--calibrator", str(files / "saved.safetensors"), "--on", str(files / "ind.npz")]
    assert main(["plot", "roc", *arguments, "--out", str(out)]) == 0
    assert (
        f"right samples accepted against wrong ones accepted is in {out}" in capsys.readouterr().out
    )
    page = out.read_text()
    assert "uncalibrated" in page and "spline" in page


def test_the_figure_of_views_fits_one_method(files, tmp_path):
    out = tmp_path / "budget.svg"
    data = ["--cal", str(files / "cal.npz"), "--on", str(files / "ind.npz")]
    options = ["--methods", "ca_views", "--resamples", "100", "--out", str(out)]
    assert main(["plot", "budget", *data, *options]) == 0
    assert "forward passes" in out.read_text()


def test_the_two_seeds_are_apart(files, tmp_path):
    data = ["--cal", str(files / "cal.npz"), "--on", f"[red]a[/]={files / 'ind.npz'}"]
    pages = []
    for fit_seed, bootstrap_seed in ((0, 0), (0, 1), (1, 0)):
        out = tmp_path / "a.svg"
        seeds = ["--fit-seed", str(fit_seed), "--bootstrap-seed", str(bootstrap_seed)]
        arguments = ["plot", "smooth", *data, "--methods", "ca_views", "--resamples", "100"]
        assert main([*arguments, *seeds, "--out", str(out)]) == 0
        pages.append(out.read_text())
    assert len(set(pages)) == 3
    assert "[red]a[/]" in pages[0]
