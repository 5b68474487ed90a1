"""The paper's analyses: what they compute, against values known otherwise."""

import csv
import math
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import analyse
import rightly
from analyses import ANALYSES, Context, loss_surface, meta_sets
from analyses.described import means, mixture
from gathering import Places
from setups import Classifier, Images, Setup
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
    told: list[str] = []
    return Context(TOY, places, ["one"], 1, tmp_path / "r.csv", told.append, told.append)


@pytest.mark.slow
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


def test_slopes_are_those_of_the_loss():
    for loss in loss_surface.NAMES:
        _, slope = loss_surface.value_and_slope(1.7, 1.3, loss)
        high, _ = loss_surface.value_and_slope(1.7, 1.3 + 1e-5, loss)
        low, _ = loss_surface.value_and_slope(1.7, 1.3 - 1e-5, loss)
        assert slope == pytest.approx((high - low) / 2e-5, rel=1e-4)


def test_meta_sets_go_from_narrowly_to_absolutely_wrong():
    predictions, labels = make(n=2000)
    found = meta_sets.levels((predictions, labels), 100)
    ratios = [level["ratio"] for level in found]
    assert ratios == sorted(ratios, reverse=True) and len(found) == meta_sets.LEVELS
    for level in found:
        some, truth = level["data"]
        assert int(some.correct(truth).sum()) == 100 and len(truth) == 200
    p = predictions.logits.double().softmax(-1)
    by_hand = p[torch.arange(2000), labels] / p.amax(-1)
    assert torch.allclose(meta_sets.closeness(predictions, labels), by_hand, atol=1e-5)


@pytest.mark.parametrize("accuracy", [0.1, 0.5, 0.9])
def test_mixtures_have_the_accuracy_asked_for(accuracy):
    some, truth = mixture(make(n=2000), accuracy)
    assert float(some.correct(truth).double().mean()) == pytest.approx(accuracy, abs=0.01)


def test_means_are_over_rows_that_agree():
    rows = [{"m": "a", "x": 1.0}, {"m": "b", "x": 5.0}, {"m": "a", "x": 3.0}]
    assert means(rows, ("m",), ("x",)) == [{"m": "a", "x": 2.0}, {"m": "b", "x": 5.0}]
