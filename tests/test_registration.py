"""One of each kind of record, registered at run time, is seen everywhere.

A metric, a calibrator, a view, a shift and an evidence are each one function or class and one
entry. Nothing else is told about them here.
"""

from functools import partial

import numpy as np
import pytest
import torch
from PIL import Image

import rightly
from rightly.calibrators import CALIBRATORS, Method
from rightly.calibrators.evidence import EVIDENCE, Evidence
from rightly.calibrators.temperature_network import TemperatureNetwork
from rightly.cli import main
from rightly.metrics import METRICS, Metric
from rightly.transforms.shifts import SHIFTS
from rightly.transforms.views import VIEWS


class HalfWay(rightly.Calibrator):
    """Confidence moved half of the way to the accuracy."""

    def learn(self, predictions, labels):
        self.store(accuracy=(predictions.classes == labels).double().mean())

    def compute_confidence(self, predictions):
        return (predictions.confidence + self.accuracy) / 2


def large_gap(confidence, correct):
    """A metric far above 1, which an interval clipped to [0, 1] would not hold."""
    return 10 + abs(float(np.mean(confidence)) - float(np.mean(correct)))


def invert(images):
    return 1 - images


def darken(images, severity, seed=0):
    return images * (1 - severity / 8)


def leading_gap(predictions):
    top = predictions.logits.topk(2).values
    return (top[:, :1] - top[:, 1:]).double()


RECORDS = [
    Metric("large_gap", large_gap, title="Large gap", meaning="ten, and the mean gap"),
    HalfWay,
    rightly.View("inverted", invert),
    rightly.Shift("darkened", darken),
    Evidence("leading_gap", leading_gap),
    Method("gap_network", partial(TemperatureNetwork, "leading_gap"), "own", is_random=True),
]
REGISTRIES = {
    "large_gap": METRICS,
    "half_way": CALIBRATORS,
    "inverted": VIEWS,
    "darkened": SHIFTS,
    "leading_gap": EVIDENCE,
    "gap_network": CALIBRATORS,
}
METHODS = ["uncalibrated", "temperature_scaling", "half_way", "gap_network"]


@pytest.fixture(scope="module", autouse=True)
def registered():
    for record in RECORDS:
        rightly.register(record)
    yield
    for name, registry in REGISTRIES.items():
        registry.remove(name)


def classify(images):
    """A classifier by colour: right about most images, less so in the dark."""
    return 6 * images.mean((2, 3)) + 2 * images.amax((2, 3))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three classes of coloured images, and a model that the command line can open."""
    place = tmp_path_factory.mktemp("registered")
    rng = np.random.default_rng(0)
    for part in ("cal", "test"):
        for i in range(120):
            pixels = rng.integers(0, 160, (8, 8, 3))
            pixels[:, :, i % 3] += rng.integers(0, 40)
            (place / part / f"c{i % 3}").mkdir(parents=True, exist_ok=True)
            image = Image.fromarray(pixels.astype(np.uint8))
            image.save(place / part / f"c{i % 3}" / f"{i:03}.png")
    return place


@pytest.fixture(scope="module")
def data(folder):
    options = {"views": ("hflip", "inverted"), "shifts": ("darkened:2",)}
    return {part: rightly.collect(classify, folder / part, **options) for part in ("cal", "test")}


def test_a_view_and_a_shift_are_collected(data):
    predictions, labels = data["cal"]
    assert predictions.view_names == ("hflip", "inverted")
    assert predictions.shift_names == ("darkened:2",)
    assert len(predictions) == 2 * 120 and labels is not None
    clean, dark = (predictions[predictions.shift == value] for value in (0, 1))
    torch.testing.assert_close(dark.logits, 0.75 * clean.logits, atol=2e-3, rtol=0)


def test_a_metric_and_calibrators_are_compared_with_intervals_and_tests(data):
    comparison = rightly.compare(
        data["cal"],
        {"test": data["test"]},
        methods=METHODS,
        metrics=["brier", "large_gap"],
        intervals=True,
        resamples=200,
    )
    rows = {(row.calibrator, row.dataset, row.metric): row for row in comparison}
    row = rows["half_way", "darkened:2", "large_gap"]
    assert row.value >= 10 and row.low > 9 and row.low <= row.value <= row.high
    assert not np.isnan(row.p_holm)
    assert ("gap_network", "test", "brier") in rows
    for text in (comparison.to_markdown(), comparison.to_latex(), comparison._repr_html_()):
        assert "half" in text and "gap" in text


def test_without_names_the_own_group_is_compared(data):
    comparison = rightly.compare(data["cal"], {"test": data["test"]}, metrics=["brier"])
    assert {"half_way", "gap_network", "correctness_logistic"} <= set(comparison.methods)


def test_a_report_shows_them(data):
    page = rightly.report(
        "half_way",
        {"test": data["test"]},
        cal=data["cal"],
        metrics=["ece", "large_gap"],
        resamples=200,
    ).html
    assert "half_way" in page and "Large gap" in page and "ten, and the mean gap" in page


def test_a_calibrator_is_saved_and_loaded_by_its_name(data, tmp_path):
    predictions, labels = data["cal"]
    fitted = rightly.fit(predictions, labels, "half_way")
    fitted.save(tmp_path / "half.safetensors")
    loaded = rightly.load_calibrator(tmp_path / "half.safetensors")
    assert torch.equal(loaded.confidence(predictions), fitted.confidence(predictions))


def test_the_command_line_sees_all_of_them(folder, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "by_colour.py").write_text(
        "from tests.test_registration import classify\n\n\ndef make():\n    return classify\n"
    )
    for part in ("cal", "test"):
        collected = ["py:by_colour:make", str(folder / part), "--out", part, "--quiet"]
        changed = ["--views", "hflip,inverted", "--shifts", "darkened:2"]
        assert main(["collect", *collected, *changed]) == 0
    assert main(["fit", "--list"]) == 0
    assert "half_way" in capfd.readouterr().out
    names = ",".join(METHODS)
    compared = ["--methods", names, "--metrics", "large_gap", "--resamples", "200"]
    assert main(["compare", "cal", "test", *compared]) == 0
    shown = capfd.readouterr().out
    assert "half_way" in shown and "large_gap" in shown and "darkened:2" in shown
    assert main(["fit", "cal", "--method", "half_way", "--out", "half.safetensors"]) == 0
    assert main(["evaluate", "half.safetensors", "test", "--resamples", "200"]) == 0
    assert "large_gap" in capfd.readouterr().out
    reported = ["--cal", "cal", "--metrics", "ece,large_gap", "--out", "page.html"]
    assert main(["report", "half_way", "test", *reported]) == 0
    assert "Large gap" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_taken_name_is_refused():
    with pytest.raises(ValueError, match="'half_way' exists already"):
        rightly.register(Method("half_way", HalfWay, "own"))
    with pytest.raises(ValueError, match="'ts' exists already"):
        rightly.register(Method("another", HalfWay, "own", aliases=("ts",)))
    with pytest.raises(TypeError, match="record must be one of"):
        rightly.register("half_way")


def test_a_class_is_registered_as_its_record_says():
    record = CALIBRATORS["half_way"]
    assert record.build is HalfWay and record.group == "own" and not record.is_random
    assert record.note == "Confidence moved half of the way to the accuracy."
    with pytest.raises(TypeError, match="subclass of Calibrator, got int"):
        rightly.register(int)
