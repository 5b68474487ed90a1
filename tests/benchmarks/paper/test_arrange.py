"""A setup of the paper goes through `rightly benchmark`, with the values of the paper's own run."""

import pytest
from benchmarks.long_table import average_seeds
from benchmarks.paper import arrange
from benchmarks.paper.gathering import Places
from benchmarks.paper.run import run_setup
from benchmarks.paper.setups import SETUPS, Images, Setup
from benchmarks.paper.setups.cifar10_kit import TESTS
from benchmarks.paper.setups.setup import VIEWS

import rightly
from tests.conftest import make

METHODS = ["uncalibrated", "temperature_scaling"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Predictions like the kit's, of two classifiers."""
    root = tmp_path_factory.mktemp("kit")
    for i, classifier in enumerate(("resnet20", "vgg13")):
        (root / classifier).mkdir()
        for k, name in enumerate(("cal", *TESTS)):
            predictions, labels = make(n=150, seed=10 * i + k)
            named = predictions._replace(view_names=VIEWS)
            rightly.save(root / classifier / f"{name}.npz", named, labels)
    return root


def test_the_kit_goes_through_the_benchmark_with_the_values_of_its_run(data, tmp_path, capsys):
    out = tmp_path / "folders"
    arguments = ["cifar10-kit", "--data", str(data), "--out", str(out)]
    assert arrange.main([*arguments, "--classifiers", "resnet20,vgg13"]) == 0
    assert f"rightly benchmark {out / 'cifar10-kit'} --out" in capsys.readouterr().out
    result = rightly.benchmark(
        out / "cifar10-kit", out=tmp_path / "results", methods=METHODS, tests=TESTS
    )
    assert (result.classifiers, result.datasets) == (["resnet20", "vgg13"], list(TESTS))
    places = Places(data, tmp_path / "predictions")
    kit = SETUPS["cifar10-kit"]
    entries = run_setup(kit, places, tmp_path / "r.csv", METHODS, result.classifiers)
    expected = average_seeds(entries)
    for row in result.list_values():
        key = row["calibrator"], row["classifier"], row["dataset"], row["metric"]
        assert row["value"] == pytest.approx(expected[key], rel=1e-6)


def test_a_test_set_with_a_calibration_set_of_its_own_is_a_task_of_its_own(data, tmp_path):
    kit = SETUPS["cifar10-kit"]
    halves = Setup(
        "halves",
        "",
        kit.classifiers[:1],
        calibration=kit.calibration,
        tests=(Images("half", "cal", "folders", half=True), Images("ind", "ind", "folders")),
    )
    places = Places(data, tmp_path / "predictions")
    tasks = arrange.arrange_setup(halves, places, tmp_path / "out", ["resnet20"])
    assert [task.name for task in tasks] == ["halves", "halves-half"]
    sizes = {
        str(path.relative_to(tmp_path / "out")): len(rightly.load(path)[0])
        for path in sorted((tmp_path / "out").rglob("*.npz"))
    }
    assert sizes["halves/resnet20/cal.npz"] == sizes["halves/resnet20/ind.npz"] == 150
    assert sizes["halves-half/resnet20/cal.npz"] + sizes["halves-half/resnet20/half.npz"] == 150
    assert len(sizes) == 4
