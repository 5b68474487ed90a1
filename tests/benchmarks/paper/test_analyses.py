"""The paper's analyses: what they compute, against values known otherwise."""

import csv
import math

import numpy as np
import pytest
import torch
from benchmarks.paper import analyse
from benchmarks.paper.analyses import ANALYSES, Context, loss_surface, meta_sets
from benchmarks.paper.analyses.analysis import average_rows, mix_to_accuracy
from benchmarks.paper.analyses.landscape import compute_landscape, invert_probability
from benchmarks.paper.analyses.loss_figures import draw_loss_curves, draw_loss_surface
from benchmarks.paper.gathering import Places
from benchmarks.paper.setups import Classifier, Images, Setup

import rightly
from tests.conftest import make

TOY = Setup(
    name="toy",
    about="",
    classifiers=(Classifier("one", "py:none:one"),),
    calibration=Images("cal", "cal", "folders"),
    tests=(
        Images("own", "own", "folders", in_distribution=True),
        Images("other", "other", "folders"),
    ),
    views=("view0", "view1"),
)


@pytest.fixture
def context(tmp_path):
    folder = tmp_path / "data" / "one"
    folder.mkdir(parents=True)
    for seed, name in enumerate(("cal", "own", "other")):
        predictions, labels = make(n=150, c=5, seed=seed)
        rightly.save(folder / f"{name}.npz", predictions, labels)
    places = Places(tmp_path / "data", tmp_path / "predictions")
    messages: list[str] = []
    return Context(TOY, places, ["one"], 1, tmp_path / "r.csv", messages.append, messages.append)


@pytest.mark.parametrize("name", ANALYSES)
def test_every_analysis_ends_in_tables_and_a_figure(name, context, tmp_path):
    analysis = ANALYSES[name]
    tables = analysis.compute(context)
    text = analyse.write_tables(name, tables, tmp_path)
    analyse.write_figure(name, analysis, tables, tmp_path)
    assert (tmp_path / f"{name}.md").read_text() == text
    assert (tmp_path / f"{name}.svg").stat().st_size and (tmp_path / f"{name}.pdf").is_file()
    written = sorted(tmp_path.glob(f"{name}*.csv"))
    assert len(written) == len(tables)
    for table, path in zip(sorted(tables, key=lambda t: t.name), written, strict=True):
        with path.open(newline="") as file:
            assert len(list(csv.DictReader(file))) == len(table.rows)


def test_only_ca_lowers_the_confidence_of_every_wrong_sample():
    optima, slopes = loss_surface.compute()
    first = optima.rows[0]
    # The paper's first figure: 0.412 and 0.455 for a = 1.9.
    assert (first["p_true"], first["p_predicted"]) == (
        pytest.approx(0.412, abs=1e-3),
        pytest.approx(0.455, abs=1e-3),
    )
    assert first["best T, CE"] == pytest.approx(0.535, abs=1e-3)
    assert first["best T, MSE"] == pytest.approx(0.994, abs=1e-3)
    assert all(math.isinf(row["best T, CA"]) for row in optima.rows)
    assert all(row["dCA/dT"] < 0 for row in slopes.rows)
    assert any(row["dCE/dT"] > 0 for row in slopes.rows)


def test_losses_ask_what_the_paper_says_of_a_narrowly_wrong_sample():
    temperatures = np.linspace(0.1, 4, 3901)
    computed = {
        name: compute_landscape(name, np.array([1.9]), temperatures) for name in loss_surface.NAMES
    }
    assert computed["cross_entropy"].true_probability[0] == pytest.approx(0.412, abs=5e-4)
    least = {name: temperatures[one.loss[0].argmin()] for name, one in computed.items()}
    assert least["cross_entropy"] == pytest.approx(0.535, abs=2e-3)
    assert least["squared_error"] == pytest.approx(0.994, abs=2e-3)
    assert (np.diff(computed["correctness_aware"].loss[0]) < 0).all()
    for one in computed.values():
        slope = np.gradient(one.loss[0], temperatures)
        np.testing.assert_allclose(one.slope[0][5:-5], slope[5:-5], atol=2e-3)


def test_a_logit_gives_the_probability_asked_for():
    wanted = np.array([0.05, 0.3, 0.43])
    one = compute_landscape("cross_entropy", invert_probability(wanted), np.array([1.0]))
    np.testing.assert_allclose(one.true_probability, wanted)
    np.testing.assert_allclose(one.loss[:, 0], -np.log(wanted))


def test_loss_figures_draw_their_numbers():
    one = compute_landscape("cross_entropy", np.array([0.5, 1.5, 1.9]), np.geomspace(0.25, 5, 30))
    curve = draw_loss_curves(one).lines[2]
    np.testing.assert_allclose(curve.get_data(), [one.temperature, one.loss[1]])
    ax = draw_loss_surface(one)
    at = [tuple(point) for line in ax.lines[:2] for point in zip(*line.get_data(), strict=True)]
    assert len(at) == 35 and ax.get_title() == "cross-entropy"
    # Arrows to the right stand where the loss falls with temperature.
    columns = np.searchsorted(one.temperature, ax.lines[0].get_xdata() - 1e-12)
    rows = [int(np.isclose(one.true_probability, y).argmax()) for y in ax.lines[0].get_ydata()]
    assert (one.slope[rows, columns] < 0).all()


def test_meta_sets_go_from_narrowly_to_absolutely_wrong():
    predictions, labels = make(n=2000)
    levels = meta_sets.build_levels((predictions, labels), 100)
    ratios = [level["ratio"] for level in levels]
    assert ratios == sorted(ratios, reverse=True) and len(levels) == meta_sets.LEVELS
    for level in levels:
        subset, truth = level["data"]
        assert int(subset.correct(truth).sum()) == 100 and len(truth) == 200
    p = predictions.logits.double().softmax(-1)
    by_hand = p[torch.arange(2000), labels] / p.amax(-1)
    assert torch.allclose(meta_sets.compute_closeness(predictions, labels), by_hand, atol=1e-5)


@pytest.mark.parametrize("accuracy", [0.1, 0.5, 0.9])
def test_mixtures_have_the_accuracy_asked_for(accuracy):
    subset, truth = mix_to_accuracy(make(n=2000), accuracy)
    assert float(subset.correct(truth).double().mean()) == pytest.approx(accuracy, abs=0.01)


def test_means_are_over_rows_that_agree():
    rows = [{"m": "a", "x": 1.0}, {"m": "b", "x": 5.0}, {"m": "a", "x": 3.0}]
    assert average_rows(rows, ("m",), ("x",)) == [{"m": "a", "x": 2.0}, {"m": "b", "x": 5.0}]
