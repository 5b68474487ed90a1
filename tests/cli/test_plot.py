"""`--plot` and `--kind` of the commands that compute what is drawn."""

import pytest

from rightly.cli import compare, evaluate, main
from rightly.reporting.figures import FIGURES


def test_every_figure_belongs_to_a_command():
    assert set(compare.KINDS) | {"steps"} == set(FIGURES)
    of_calibrators = {name for name in FIGURES if FIGURES[name].needs.startswith("calibrators")}
    assert set(evaluate.KINDS) | {"steps"} == of_calibrators


@pytest.mark.parametrize("command", [compare, evaluate])
def test_help_lists_every_kind_that_can_be_drawn(command, capsys):
    assert main([command.__name__.rpartition(".")[2], "--help"]) == 0
    printed = "".join(capsys.readouterr().out.split())
    assert ",".join(command.KINDS) in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--plot", "a.png", "--kind", "relability"], "did you mean reliability?"),
        (["--plot", "a.png", "--kind", "loss-surface"], "kind must be one of reliability, smooth"),
        (["--plot", "a.gif"], "plot must end in"),
        (["--kind", "roc"], "kind needs a file to draw to: add --plot roc.svg"),
    ],
)
def test_what_cannot_be_drawn_is_refused_before_any_work(arguments, words, capsys):
    assert main(["evaluate", "no.safetensors", "no.npz", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_calibrator_is_drawn_beside_the_classifiers_own_confidence(files, tmp_path, capsys):
    out = tmp_path / "roc.svg"
    arguments = [str(files / "saved.safetensors"), f"[red]a[/]={files / 'ind.npz'}"]
    options = ["--no-intervals", "--metrics", "ece", "--plot", str(out), "--kind", "roc"]
    assert main(["evaluate", *arguments, *options]) == 0
    assert f"the figure is in {out}" in capsys.readouterr().out
    page = out.read_text()
    assert "uncalibrated" in page and "spline" in page and "[red]a[/]" in page


@pytest.mark.parametrize(("kind", "words"), [("budget", "forward passes"), ("values", "Brier")])
def test_what_was_compared_is_drawn(files, tmp_path, kind, words):
    out = tmp_path / "a.svg"
    arguments = [str(files / "cal.npz"), str(files / "ind.npz"), "--metrics", "brier"]
    options = ["--methods", "uncalibrated", "--resamples", "100", "--plot", str(out)]
    assert main(["compare", *arguments, *options, "--kind", kind]) == 0
    assert words in out.read_text()


def test_the_seed_is_the_figures_too(files, tmp_path):
    pages = []
    for seed in ("0", "0", "1"):
        out = tmp_path / "a.svg"
        arguments = [str(files / "views.safetensors"), str(files / "ind.npz"), "--seed", seed]
        options = ["--resamples", "100", "--metrics", "ece", "--plot", str(out)]
        assert main(["evaluate", *arguments, *options, "--kind", "smooth"]) == 0
        pages.append(out.read_text())
    assert pages[0] == pages[1] != pages[2]
