"""The paper's experiments as data, the run that fills their tables, and the tables themselves."""

import csv
from collections import Counter

import numpy as np
import pytest
import torch
from PIL import Image

import rightly
from benchmarks.long_table import Entry, write_entries
from benchmarks.paper import gathering, run, tables
from benchmarks.paper.setups import SETUPS, Classifier, Images, Setup
from benchmarks.paper.table_formats import FORMATS
from benchmarks.paper.published import METHODS, METRICS, TABLES, read_published
from rightly.datasets import LAYOUTS, ImageDataset
from rightly.metrics import METRICS
from rightly.transforms.views import VIEWS
from tests.conftest import make

TOY = Setup(
    name="toy",
    about="",
    classifiers=(Classifier("one", "py:toy_model:small"), Classifier("two", "py:none:two")),
    calibration=Images("cal", "cal", "folders"),
    tests=(Images("test", "test", "folders", published="Gaussian Blur"),),
    published="cifar10",
    same_as_published=False,
    views=("view0", "view1", "view2"),
)
METHODS = ["uncalibrated", "temperature_scaling", "ca_only"]


@pytest.fixture
def places(tmp_path):
    """Stored predictions of one classifier, as run.py finds them."""
    folder = tmp_path / "data" / "one"
    folder.mkdir(parents=True)
    for seed, name in enumerate(("cal", "test")):
        predictions, labels = make(seed=seed)
        rightly.save(folder / f"{name}.npz", predictions, labels)
    return gathering.Places(tmp_path / "data", tmp_path / "predictions")


def test_every_cell_of_the_papers_tables_is_there():
    cells = paper.published()
    assert Counter(cell.table for cell in cells) == {"1": 260, "2": 192, "3": 48, "pre-hoc": 96}
    assert len({cell[:5] for cell in cells}) == len(cells)
    value = {cell[:5]: cell.value for cell in cells}
    for key, printed in {
        ("1", "imagenet", "ImageNet-Val", "Uncal", "ECE"): 8.71,
        ("1", "imagenet", "ImageNet-R", "CA+trans. (ours)", "KS"): 10.12,
        ("1", "imagenet", "ObjectNet", "CA + CE + trans", "AUC"): 78.14,
        ("1", "imagenet", "ImageNet-S", "TCP", "BS"): 21.69,
        ("2", "cifar10", "Gaussian Blur", "Uncal", "AUC"): 66.7,
        ("2", "cifar10", "CINIC", "CA+trans. (ours)", "KS"): 15.90,
        ("2", "cifar10", "Defocus Blur", "ETS", "KS"): 39.73,
        ("3", "iwildcam", "iWildCam", "TCP", "AUC"): 90.51,
        ("pre-hoc", "imagenet", "ObjectNet", "MDCA+CA", "AUC"): 78.22,
    }.items():
        assert value[key] == printed


def test_the_papers_names_lead_to_ours():
    for cell in paper.published():
        assert paper.METHODS[cell.method] in rightly.CALIBRATORS
        assert paper.METRICS[cell.metric] in METRICS
        assert cell.table in paper.TABLES and cell.setup in SETUPS


def test_setups_name_what_there_is():
    named = {(cell.setup, cell.test_set) for cell in paper.published()}
    for name, setup in SETUPS.items():
        assert setup.name == name
        assert set(setup.views) <= set(VIEWS)
        assert len({classifier.name for classifier in setup.classifiers}) == len(setup.classifiers)
        for images in (setup.calibration, *setup.tests):
            assert images.layout in LAYOUTS
            assert images.published is None or (setup.published, images.published) in named
    for name in ("imagenet", "cifar10", "iwildcam"):
        assert len(SETUPS[name].classifiers) == 10
        theirs = {cell.test_set for cell in paper.published() if cell.setup == name}
        assert theirs == {images.published for images in SETUPS[name].tests}


def test_a_run_adds_only_what_the_table_lacks(places, tmp_path, monkeypatch, capsys):
    out = tmp_path / "results.csv"
    first = run.run(TOY, places, out, METHODS, ["one", "two"], seeds=2)
    assert "two on cal: no predictions at" in capsys.readouterr().err.replace("\n", " ")
    # ca_only draws at random and is fitted for both seeds, the others once.
    assert Counter(row.method for row in first if row.metric == "ece") == {
        "uncalibrated": 1,
        "temperature_scaling": 1,
        "ca_only": 2,
    }
    assert {row.metric for row in first} == {*METRICS, "accuracy", "mean_confidence"}
    results.write(out, [row for row in first if row.method != "ca_only"])
    fitted = []
    build = rightly.calibrator

    def counted(name, **arguments):
        fitted.append(name)
        return build(name, **arguments)

    monkeypatch.setattr(rightly, "calibrator", counted)
    again = run.run(TOY, places, out, METHODS, ["one"], seeds=2)
    assert fitted == ["ca_only", "ca_only"]
    values = {row.key: row.value for row in again}
    for row in first:
        assert values[row.key] == pytest.approx(row.value, rel=1e-6, nan_ok=True)
    run.run(TOY, places, out, METHODS, ["one"], seeds=2)
    assert len(fitted) == 2


def test_values_in_the_table_are_those_of_the_metrics(places, tmp_path):
    rows = run.run(TOY, places, tmp_path / "r.csv", ["temperature_scaling"], ["one"])
    value = {row.metric: row.value for row in rows}
    fitted = rightly.calibrator("temperature_scaling").fit(*make())
    test, truth = make(seed=1)
    confidence, correct = fitted.confidence(test).numpy(), test.correct(truth).numpy()
    assert value["brier"] == pytest.approx(((confidence - correct) ** 2).mean(), rel=1e-6)
    assert value["mean_confidence"] == pytest.approx(confidence.mean(), rel=1e-6)
    assert value["accuracy"] == pytest.approx(correct.mean(), rel=1e-6)
    assert {row.n for row in rows} == {300}


def test_methods_without_their_inputs_are_skipped_with_a_word(places, tmp_path, capsys):
    for name in ("cal", "test"):
        predictions, labels = make()
        rightly.save(
            places.data / "one" / f"{name}.npz", rightly.Predictions(predictions.logits), labels
        )
    rows = run.run(TOY, places, tmp_path / "r.csv", ["spline", "ca_views"], ["one"])
    assert {row.method for row in rows} == {"spline"}
    assert "ca_views for one, for want of view_logits" in capsys.readouterr().err


def test_a_table_of_something_else_is_refused(tmp_path):
    (tmp_path / "r.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="must have the columns"):
        results.read(tmp_path / "r.csv")


def test_predictions_are_collected_where_only_images_are_there(tmp_path, monkeypatch):
    (tmp_path / "toy_model.py").write_text(
        "import torch\n"
        "def small():\n"
        "    torch.manual_seed(0)\n"
        "    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 2))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    rng = np.random.default_rng(0)
    for part in ("cal", "test"):
        for kind in ("cat", "dog"):
            folder = tmp_path / "data" / part / kind
            folder.mkdir(parents=True)
            for i in range(6):
                pixels = rng.integers(0, 256, (8, 8, 3), np.uint8)
                Image.fromarray(pixels).save(folder / f"{i}.png")
    toy = Setup("toy", "", TOY.classifiers[:1], TOY.calibration, TOY.tests)
    places = gathering.Places(tmp_path / "data", tmp_path / "predictions")
    told = []
    (trial,) = gathering.trials(toy, toy.classifiers[0], places, told.append)
    assert len(trial.calibration[1]) == 12 and trial.tests["test"][0].view_names == toy.views
    assert told == ["collecting one on cal: 12 images", "collecting one on test: 12 images"]
    gathering.trials(toy, toy.classifiers[0], places, told.append)
    assert len(told) == 2  # the second time they are read


def test_halves_are_disjoint_and_share_each_class():
    predictions, labels = make(n=400, c=4)
    one, other = gathering.halves(predictions, labels)
    assert len(one[1]) + len(other[1]) == 400
    for k in range(4):
        assert abs(int((one[1] == k).sum()) - int((other[1] == k).sum())) <= 1
    rows = {tuple(row) for row in one[0].logits.tolist()}
    assert not rows & {tuple(row) for row in other[0].logits.tolist()}


def test_calibration_sets_are_restricted_to_the_classes_of_the_test_set():
    predictions, labels = make(c=6)
    groups = ((4,), (0, 2))
    source = ImageDataset(["image"], lambda i: None, kept_classes=groups)
    test = rightly.Predictions(torch.randn(5, 2), class_names=["e", "a or c"])
    fewer, kept = gathering.restricted((predictions, labels), test, source)
    rows = torch.isin(labels, torch.tensor([4, 0, 2]))
    assert torch.equal(fewer.logits, source.restrict(predictions.logits[rows]))
    assert torch.equal(kept, torch.where(labels[rows] == 4, 0, 1))
    named = rightly.Predictions(predictions.logits, class_names=list("abcdef"))
    test = rightly.Predictions(torch.randn(5, 2), class_names=["b", "f"])
    fewer, kept = gathering.restricted((named, labels), test, None)
    assert torch.equal(fewer.logits, predictions.logits[(labels == 1) | (labels == 5)][:, [1, 5]])


def rows_of(values):
    """Results of two classifiers on one test set: ECE of two methods, one with two seeds."""
    return [
        Result("toy", classifier, "test", method, seed, "ece", value, 10, 0.1)
        for (classifier, method, seed), value in values.items()
    ]


def test_tables_average_seeds_then_classifiers_and_rank():
    rows = rows_of(
        {
            ("one", "ca_views", 0): 0.1,
            ("one", "ca_views", 1): 0.3,
            ("two", "ca_views", 0): 0.4,
            ("one", "spline", 0): 0.3,
            ("two", "spline", 0): 0.1,
        }
    )
    (sheet,) = tables.sheets(rows, TOY, ["ece"])
    line = {line.method: line for line in sheet.lines}
    mean, spread, published = line["ca_views"].cells[0]
    assert (mean, spread) == (pytest.approx(30), pytest.approx(10))
    assert published == 11.45  # Gaussian Blur, CA+trans.
    assert line["ca_views"].cells[-1].mean == 1.5 and line["spline"].cells[-1].mean == 1.5
    assert line["temperature_scaling"].cells[0] == (None, None, 35.25)


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_shows_ours_beside_the_published_value(form):
    rows = rows_of({("one", "ca_views", 0): 0.1234, ("one", "spline", 0): 0.2})
    text = FORMATS[form](tables.sheets(rows, TOY, ["ece"]))
    assert "11.45" in text and "12.34" in text
    if form == "csv":
        cells = list(csv.DictReader(text.splitlines()))
        assert {cell["setup"] for cell in cells} == {"toy"}
    else:
        assert "**12.34**" in text or r"\textbf{12.34}" in text
