"""Benchmarks: the values of compare, kept and taken up again, never averaged over other things."""

import json
import shutil

import numpy as np
import pytest

import rightly
from rightly import Comparison, Predictions
from rightly.calibrators import CALIBRATORS, Method
from tests.conftest import make

METHODS = ["uncalibrated", "ts", "ca_only"]  # the last draws at random
OPTIONS = {"methods": METHODS, "metrics": ["ece", "brier"], "repeats": 2}
NAMES = ["uncalibrated", "temperature_scaling", "ca_only"]


def write_classifier(folder, seed, sets=("cal", "blur", "ind"), n=200):
    folder.mkdir(parents=True)
    for i, name in enumerate(sets):
        rightly.save(folder / f"{name}.npz", *make(n=n, seed=10 * seed + i))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("predictions")
    for seed, name in enumerate(("one", "two", "three")):
        write_classifier(root / name, seed)
    (root / "README.md").write_text("about them")
    return root


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("results") / "out"


@pytest.fixture(scope="module")
def result(folder, out):
    return rightly.benchmark(folder, out=out, **OPTIONS)


def test_the_values_are_those_of_compare(folder, result):
    place = folder / "two"
    tests = {name: place / f"{name}.npz" for name in ("blur", "ind")}
    compared = rightly.compare(place / "cal.npz", tests, intervals=True, resamples=1000, **OPTIONS)
    own, expected = list(result.comparisons["two"]), list(compared)
    assert sorted(row[:5] for row in own) == sorted(row[:5] for row in expected)
    floors = [
        {(*row[:2], *row[9:]) for row in rows if (row.metric, row.seed) == ("ece", 0)}
        for rows in (own, expected)
    ]
    assert floors[0] == floors[1] and len(floors[0]) == 6


def test_a_directory_of_results_is_ranked(result, tmp_path):
    for name, one in result.comparisons.items():
        one.to_json(tmp_path / f"{name}.json")
    again = rightly.benchmark(tmp_path)
    np.testing.assert_equal(again.to_records(), result.to_records())
    assert again.describe() == {**result.describe(), "notes": again.notes}
    with pytest.raises(ValueError, match="read from results has no confidences"):
        again.plot("roc")
    names = {path.name for path in again.save(tmp_path / "out")}
    assert "table.md" in names and "critical-difference-ece.svg" in names
    assert not any(name.startswith(("roc", "reliability")) for name in names)


def test_results_that_share_nothing_or_are_none_are_refused(result, tmp_path):
    for i, one in enumerate(result.comparisons.values()):
        rows = [row for row in one if row.calibrator == NAMES[i]]
        Comparison(rows).to_json(tmp_path / f"{i}.json")
    with pytest.raises(ValueError, match="methods must hold one that every classifier has"):
        rightly.benchmark(tmp_path)
    (tmp_path / "0.json").write_text("{}")
    with pytest.raises(ValueError, match="must be JSON of results"):
        rightly.benchmark(tmp_path)


def test_a_stopped_benchmark_goes_on_where_it_was(folder, result, tmp_path):
    def stop(step, done, total):
        if step == "two: temperature_scaling":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rightly.benchmark(folder, out=tmp_path / "out", **OPTIONS, progress=stop)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.safetensors")}
    assert len(kept) == 9  # one and three have four each, two has its first
    again = rightly.benchmark(folder, out=tmp_path / "out", **OPTIONS)
    assert all(path.stat().st_mtime_ns == then for path, then in kept.items())
    np.testing.assert_equal(again.to_records(), result.to_records())
    assert not list((tmp_path / "out").rglob("*.part")) and not list(tmp_path.rglob("*.lock"))


def test_more_methods_classifiers_and_seeds_add_only_their_own_fits(folder, result, out, tmp_path):
    shutil.copytree(out, tmp_path / "out")
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.safetensors")}
    steps = []
    more = rightly.benchmark(
        folder,
        out=tmp_path / "out",
        **{**OPTIONS, "methods": [*METHODS, "spline"], "repeats": 3},
        progress=lambda *step: steps.append(step),
    )
    assert more.methods == [*NAMES, "spline"] and steps[-1] == ("two: spline", 17, 18)
    assert all(path.stat().st_mtime_ns == then for path, then in kept.items())
    assert len(list((tmp_path / "out").rglob("*.safetensors"))) == len(kept) + 6


def test_fits_of_other_data_or_settings_are_refused_or_replaced(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "data")
    options = {"out": tmp_path / "out", "methods": METHODS[:2], "metrics": ["ece", "brier"]}
    before = rightly.benchmark(tmp_path / "data", **options)
    with pytest.raises(ValueError, match=r"metrics \['ece', 'brier'\], now \['ks'\]"):
        rightly.benchmark(tmp_path / "data", **{**options, "metrics": ["ks"]})
    rightly.save(tmp_path / "data" / "two" / "ind.npz", *make(n=200, seed=77))
    message = (
        r"out must hold fits .* uncalibrated for two, seed 0, made with other tests \(ind\) "
        r"\(and 1 more\): choose another out, or measure them again with replace=True"
    )
    with pytest.raises(ValueError, match=message):
        rightly.benchmark(tmp_path / "data", **options)
    replaced = rightly.benchmark(tmp_path / "data", replace=True, **options)
    fresh = rightly.benchmark(tmp_path / "data", **{**options, "out": None})
    np.testing.assert_equal(replaced.list_values(), fresh.list_values())
    assert replaced.list_values() != before.list_values()
    next((tmp_path / "out").rglob("uncalibrated-0.safetensors")).write_bytes(b"{}")
    with pytest.raises(ValueError, match="cannot be read as a fit .* remove it"):
        rightly.benchmark(tmp_path / "data", **options)


def test_a_classifier_without_a_shift_keeps_it_out_of_the_means(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "data")
    (tmp_path / "data" / "two" / "blur.npz").unlink()
    shown = rightly.benchmark(tmp_path / "data", methods=["ts", "uncalibrated"], metrics=["brier"])
    assert shown.datasets == ["ind"] and {row.dataset for row in shown} == {"ind"}
    assert "blur is not averaged: two does not have it." in shown.to_markdown()
    assert {row["classifier"] for row in shown.list_values() if row["dataset"] == "blur"} == {
        "one",
        "three",
    }


def test_a_method_that_a_classifier_cannot_use_is_left_out_for_all(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "data")
    for name in ("cal", "blur", "ind"):
        path = tmp_path / "data" / "two" / f"{name}.npz"
        predictions, labels = rightly.load(path)
        rightly.save(path, Predictions(predictions.logits), labels)
    shown = rightly.benchmark(
        tmp_path / "data", methods=["paper"], metrics=["brier"], classifiers=["one", "two"]
    )
    assert shown.methods == ["ca_only"] and shown.tests is None
    assert "ca_views is left out: two does not have it." in shown.notes
    assert shown.skipped == {"ca_views": ("view_logits",)}


class Failing(rightly.Calibrator):
    """Cannot be fitted."""

    def learn(self, predictions, labels):
        raise ValueError("it never\nworks")

    def compute_confidence(self, predictions):
        return predictions.confidence


def test_a_group_goes_on_without_a_method_that_fails_and_a_name_does_not(folder):
    options = {"classifiers": ["one"], "metrics": ["brier"]}
    rightly.register(Method("failing", Failing, "own"))
    try:
        lines = []
        shown = rightly.benchmark(folder, methods=["own", "ts"], notify=lines.append, **options)
        assert shown.methods == ["correctness_logistic", NAMES[1]]
        assert lines == ["left out: failing for one, seed 0: it never works"]
        assert "failing failed for one: it never works." in shown.notes
        with pytest.raises(ValueError, match="^failing for one, seed 0: it never"):
            rightly.benchmark(folder, methods=["failing", "ts"], **options)
    finally:
        CALIBRATORS.remove("failing")


def test_methods_are_adapted_as_by_compare(folder):
    options = {"methods": ["ts", "transcal"], "metrics": ["brier"], "adapt": 50}
    shown = rightly.benchmark(folder, classifiers=["one"], tests=["ind"], **options)
    place = folder / "one"
    compared = rightly.compare(place / "cal.npz", {"ind": place / "ind.npz"}, **options)
    assert [row.value for row in shown.comparisons["one"]] == [row.value for row in compared]
    assert "Adapted to each 50 rows of a test set in their order" in shown.to_markdown()


def test_one_classifier_has_no_tests_and_says_so(folder):
    shown = rightly.benchmark(folder, methods=["ts", "spline"], classifiers=["one"])
    assert shown.tests is None and all(np.isnan(row.low) for row in shown)
    assert "no tests over classifiers" in shown.to_markdown()
    with pytest.raises(ValueError, match="critical-difference needs two classifiers"):
        shown.plot()


def test_all_files_are_written(folder, tmp_path):
    small = rightly.benchmark(folder, methods=METHODS[:2], metrics=["ece", "brier"], tests=["ind"])
    written = small.save(tmp_path / "out", ["uncalibrated"])
    assert all(path.stat().st_size for path in written)
    names = {str(path.relative_to(tmp_path / "out")) for path in written}
    assert {f"{t}.{e}" for t in ("table", "tests") for e in ("md", "tex", "csv", "html")} <= names
    assert {"figures/critical-difference-ece.pdf", "figures/roc.svg", "index.html"} <= names
    table = (tmp_path / "out" / "table.tex").read_text()
    assert r"\multicolumn{3}{c}{ind}" in table and r"{\tiny " in table and "mean rank" in table
    rows = json.loads((tmp_path / "out" / "benchmark.json").read_text())
    assert rows["kind"] == "benchmark" and rows["classifiers"] == ["one", "three", "two"]
    assert rows["tests"]["reference"] == "temperature_scaling"
    page = (tmp_path / "out" / "index.html").read_text()
    assert page.count("<table>") == 2 and '<img src="figures/roc.svg"' in page
    assert "README.md" in page and "floor" in page  # what was not read, the floor beside ECE


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cal": "train"}, "cal must name the predictions to fit on, but there is no 'train' of"),
        ({"classifiers": ["on"]}, "classifiers 'on' is not known: did you mean one"),
        ({"tests": ["fog"]}, "tests must be one of blur, ind, got 'fog'"),
        ({"repeats": 0}, "repeats must be at least 1"),
        ({"labels": {"none.npz": "labels.txt"}}, "labels 'none.npz' is not known"),
        ({"rope": -1.0}, "rope must be"),
        ({"methods": "tss"}, "methods 'tss' is not known: did you mean ts"),
    ],
)
def test_what_is_not_there_is_refused(folder, change, message):
    with pytest.raises(ValueError, match=message):
        rightly.benchmark(folder, **{"methods": ["ts"], **change})


def test_folders_that_hold_something_else_are_refused(folder, tmp_path):
    with pytest.raises(ValueError, match="out must lie outside"):
        rightly.benchmark(folder, out=folder / "results")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        rightly.benchmark(tmp_path / "none")
    with pytest.raises(ValueError, match=r"has none$"):
        rightly.benchmark(tmp_path)
    write_classifier(tmp_path / "one", 0, ("cal", "ind"))
    shutil.copy(tmp_path / "one" / "ind.npz", tmp_path / "one" / "cal.npz")
    with pytest.raises(ValueError, match=r"one: tests\['ind'\] must hold other samples"):
        rightly.benchmark(tmp_path, methods=["ts"])
    (tmp_path / "one" / "ind.csv").write_text("a,b\n")
    with pytest.raises(ValueError, match=r"ind.csv and ind.npz: rename or remove one"):
        rightly.benchmark(tmp_path)
