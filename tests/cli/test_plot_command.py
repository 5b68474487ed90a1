"""`rightly plot`: what it takes. The figures are in tests/reporting/test_figures.py."""

import pytest
from rightly.cli._legacy_plotting import DRAW

from rightly.cli import main
from rightly.cli.plot_command import KINDS


def test_help_lists_every_kind_that_can_be_drawn(capsys):
    assert list(KINDS) == list(DRAW)
    assert main(["plot", "--help"]) == 0
    printed = capsys.readouterr().out
    assert all(f"    {kind} " in printed and text in printed for kind, text in KINDS.items())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["relability", "--out", "a.png"], "did you mean 'reliability'?"),
        (["loss-surface", "--out", "a.png"], "KIND must be one of reliability, smooth"),
        (["reliability", "--out", "a.gif"], "--out must end in"),
    ],
)
def test_what_cannot_be_drawn_is_refused(capsys, arguments, words):
    assert main(["plot", *arguments]) == 2
    assert words in capsys.readouterr().err


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
