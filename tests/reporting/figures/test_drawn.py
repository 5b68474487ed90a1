"""Figures draw the numbers they are given; every kind is drawn as a user would."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.colors import to_hex
from rightly.cli.plotting import KINDS

import rightly
from rightly.cli import main
from rightly.metrics import curves
from rightly.reporting import figures as plots
from tests.conftest import make


@pytest.fixture
def pair():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.2, 1, 400)
    return confidence, rng.random(400) < confidence - 0.1


def line(ax, i):
    return ax.lines[i].get_xdata(), ax.lines[i].get_ydata()


def test_a_reliability_diagram_shows_bins_intervals_and_counts(pair):
    data = curves.reliability(*pair)
    ax = plots.reliability_diagram(data)
    held = data.count > 0
    np.testing.assert_array_equal(line(ax, 0), [[0, 1], [0, 1]])
    np.testing.assert_allclose(line(ax, 1), [data.confidence[held], data.accuracy[held]])
    (bars,) = ax.collections
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    np.testing.assert_allclose(ends, np.stack([data.low[held], data.high[held]], 1))
    (below,) = ax.child_axes
    assert [patch.get_height() for patch in below.patches] == data.count.tolist()


def test_a_smooth_diagram_shows_curve_and_band(pair):
    data = curves.smooth_reliability(*pair, 50)
    ax = plots.smooth_reliability_diagram(data)
    np.testing.assert_allclose(line(ax, 1), [data.confidence, data.accuracy])
    (band,) = ax.collections
    edge = band.get_paths()[0].vertices
    assert edge[:, 1].min() == pytest.approx(data.low.min())
    assert edge[:, 1].max() == pytest.approx(data.high.max())


def test_a_histogram_shows_right_above_and_wrong_below(pair):
    data = curves.histogram(*pair)
    ax = plots.confidence_histogram(data)
    heights = [[patch.get_height() for patch in group] for group in ax.containers]
    np.testing.assert_allclose(heights[0], 100 * data.right / data.right.sum())
    np.testing.assert_allclose(heights[1], -100 * data.wrong / data.wrong.sum())


def test_ks_roc_and_risk_coverage_draw_their_curves(pair):
    ks, roc, risk = curves.ks_curve(*pair), curves.roc(*pair), curves.risk_coverage(*pair)
    ax = plots.ks_curves(ks)
    np.testing.assert_allclose(line(ax, 0), [ks.share, ks.confidence])
    np.testing.assert_allclose(line(ax, 1), [ks.share, ks.accuracy])
    np.testing.assert_allclose(np.ptp(line(ax, 2)[1]), ks.ks)
    ax = plots.correctness_roc({"one": roc, "two": roc})
    np.testing.assert_allclose(line(ax, 1), [roc.wrong, roc.right])
    assert f"{100 * roc.auroc:.1f}" in ax.get_legend().get_texts()[0].get_text()
    ax = plots.risk_coverage_curves({"one": risk})
    kept = risk.coverage >= 0.02
    np.testing.assert_allclose(line(ax, 0), [100 * risk.coverage[kept], 100 * risk.risk[kept]])


def test_temperature_views_and_budget_draw_their_numbers():
    rng = np.random.default_rng(0)
    band = curves.temperature_band(rng.uniform(0.2, 1, 500), rng.uniform(1, 2, 500))
    ax = plots.temperature_curves({"one": band})
    np.testing.assert_allclose(line(ax, 1), [band.confidence, band.median])
    value, low, high = np.array([1.0, -2.0]), np.array([0.5, -3.0]), np.array([1.5, -1.0])
    ax = plots.view_bars(plots.Bars(["a", "b"], value, low, high))
    assert [patch.get_width() for patch in ax.patches] == [1.0, -2.0]
    ax = plots.budget_curve(np.array([1.0, 2.0]), value, low, high)
    np.testing.assert_allclose(line(ax, 0), [[1, 2], value])


def test_lines_differ_in_more_than_colour():
    band = curves.temperature_band(np.linspace(0.1, 1, 200), np.ones(200))
    ax = plots.temperature_curves({str(i): band for i in range(4)})
    drawn = ax.lines[1:]
    assert len({to_hex(x.get_color()) for x in drawn}) == 4
    assert len({x.get_marker() for x in drawn}) == 4
    assert len({x._dash_pattern[1] and tuple(x._dash_pattern[1]) for x in drawn}) == 4


def test_a_figure_draws_on_the_axes_given_and_leaves_the_style_alone(pair):
    import matplotlib

    before = dict(matplotlib.rcParams)
    grid = plots.grid_of(1, 2)
    data = curves.reliability(*pair)
    assert plots.reliability_diagram(data, grid[0, 1]) is grid[0, 1]
    assert not grid[0, 0].lines
    assert dict(matplotlib.rcParams) == before


def test_text_stays_text_and_files_repeat(pair, tmp_path):
    for name in ("a.svg", "b.svg", "a.pdf", "b.pdf"):
        ax = plots.reliability_diagram(curves.reliability(*pair), title="my title")
        plots.save(ax, tmp_path / name)
    svg = (tmp_path / "a.svg").read_text()
    assert "my title" in svg and "accuracy" in svg and "<text" in svg
    for kind in ("svg", "pdf"):
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()
    with pytest.raises(ValueError, match=r"must end in \.pdf"):
        plots.save(ax, tmp_path / "a.gif")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plots")
    for name, seed in (("cal", 0), ("ind", 1), ("blur", 2)):
        rightly.save(folder / f"{name}.npz", *make(n=200, seed=seed))
    rightly.calibrator("ca_views").fit(*make(n=200)).save(folder / "c.safetensors")
    return folder


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", ["png", "svg"])
def test_every_kind_is_drawn(files, kind, ending, capsys):
    out = files / f"{kind}.{ending}"
    data = ["--cal", str(files / "cal.npz"), "--on", f"one={files / 'ind.npz'}"]
    data += ["--on", str(files / "blur.npz"), "--resamples", "100"]
    if kind not in ("views", "budget"):
        data += ["--methods", "uncalibrated,temperature_scaling"]
    assert main(["plot", kind, *data, "--out", str(out)]) == 0, capsys.readouterr().err
    assert out.stat().st_size > 2000
    if ending == "svg" and not kind.startswith("loss"):
        assert "one" in out.read_text()


def test_saved_calibrators_are_drawn_beside_what_was_before(files, capsys):
    out = files / "saved.svg"
    arguments = ["plot", "roc", "--calibrator", str(files / "c.safetensors")]
    assert main([*arguments, "--on", str(files / "ind.npz"), "--out", str(out)]) == 0
    assert "uncalibrated" in out.read_text() and "ca_views" in out.read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["reliability", "--out", "a.gif"], "--out must end in"),
        (["reliability", "--out", "a.png"], "needs a test set"),
        (["roc", "--on", "{ind}", "--out", "a.png"], "give --calibrator FILE, or --methods"),
        (["roc", "--on", "{ind}", "--methods", "spline", "--out", "a.png"], "needs --cal"),
        (["views", "--on", "{ind}", "--out", "a.png"], "needs --cal"),
        (["budget", "--cal", "{bare}", "--on", "{ind}", "--out", "a.png"], "needs views"),
    ],
)
def test_bad_requests_end_in_one_line(files, capsys, arguments, words):
    predictions, labels = make(n=50)
    rightly.save(files / "bare.npz", rightly.Predictions(predictions.logits), labels)
    names = {name: str(files / f"{name}.npz") for name in ("ind", "bare")}
    assert main(["plot", *(argument.format(**names) for argument in arguments)]) == 2
    assert words in capsys.readouterr().err.replace("\n", " ")


def test_help_lists_every_kind(capsys):
    with pytest.raises(SystemExit):
        main(["plot", "--help"])
    printed = capsys.readouterr().out
    assert all(kind in printed for kind in KINDS)


def test_figures_load_matplotlib_only_when_they_are_drawn():
    code = "import sys, rightly.cli; print('matplotlib' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "False"
