"""Temperature networks: what they learn from views that tell."""

import pytest
import torch

import rightly
from rightly import Predictions, metrics
from rightly.demo_data import load_demo_set
from tests.calibrators.samples import draw_labels, draw_logits
from tests.conftest import make


def informative(n=4000, seed=0):
    """Views that agree with the prediction exactly when it is right."""
    g = torch.Generator().manual_seed(seed)
    logits = draw_logits(n, 5, seed=seed)
    labels = draw_labels(logits / 2, seed=seed)
    right = logits.argmax(-1) == labels
    views = torch.where(right[:, None, None], logits[:, None], -logits[:, None])
    views = views + 0.3 * torch.randn(n, 3, 5, generator=g).double()
    return Predictions(logits, views), labels


@pytest.mark.parametrize(
    "name",
    ["ca_views", "ce_views", "ca_ce_views", "ca_balanced_views", "correctness_network"],
)
def test_views_that_tell_right_from_wrong_are_used(name):
    fitted = rightly.calibrator(name).fit(*informative())
    test, labels = informative(seed=1)
    correct = test.correct(labels)
    assert metrics.auroc(fitted.confidence(test), correct) > 0.97
    assert metrics.auroc(test.confidence, correct) < 0.85


@pytest.mark.parametrize("name", ["ca_only", "ca_views"])
def test_the_loss_on_calibration_data_does_not_rise(name):
    predictions, labels = make(n=2000)
    fitted = rightly.calibrator(name).fit(predictions, labels)
    correct = predictions.correct(labels)
    now = metrics.brier(fitted.confidence(predictions), correct)
    assert now <= metrics.brier(predictions.confidence, correct)


def test_useless_views_leave_one_temperature_for_all():
    predictions, labels = make(n=2000, noise=0.0)
    g = torch.Generator().manual_seed(0)
    noise = torch.randn(2000, 3, 10, generator=g)
    fitted = rightly.calibrator("ce_views").fit(Predictions(predictions.logits, noise), labels)
    t = fitted.temperature(Predictions(predictions.logits, noise)).log()
    assert float(t.std()) < 0.15


def make_useless(n=600):
    """Views that say nothing about the image."""
    predictions, labels = make(n=n, noise=0.0)
    noise = torch.randn(n, 3, 10, generator=torch.Generator().manual_seed(3))
    return Predictions(predictions.logits, noise), labels


@pytest.mark.parametrize("name", ["ca_views", "ca_views_released"])
def test_a_fit_that_ends_in_one_temperature_says_so(name, tmp_path):
    predictions, labels = make_useless()
    notes = []
    for seed in range(6):
        fitted = rightly.calibrator(name, seed=seed).fit(predictions, labels)
        temperature = fitted.temperature(predictions)
        is_one = float(temperature.std() / temperature.mean()) < 1e-6
        assert is_one == (fitted.fit_note == "one temperature for all samples")
        assert is_one == repr(fitted).endswith("with 3 views, one temperature for all samples>")
        if is_one not in notes:
            fitted.save(tmp_path / "c.safetensors")
            assert rightly.load_calibrator(tmp_path / "c.safetensors").fit_note == fitted.fit_note
        notes.append(is_one)
    count = sum(notes)
    assert count > 0
    compared = rightly.compare(
        (predictions, labels),
        {"a": (predictions, labels)},
        methods=["ts", name],
        repeats=6,
        allow_overlap=True,
    )
    assert list(compared.notes) == [f"One temperature for all samples: {name} ({count} of 6 fits)."]


def test_a_cascade_says_which_of_its_parts_has_one_temperature():
    predictions, labels = make_useless()
    for seed in range(6):
        alone = rightly.calibrator("ca_views", seed=seed).fit(predictions, labels)
        if alone.fit_note:
            break
    fitted = rightly.calibrator("ca_views", seed=seed, budget=1.5).fit(predictions, labels)
    assert alone.fit_note and fitted.fit_note == f"ca_views has {alone.fit_note}"


def test_every_seed_trains():
    predictions, labels = informative(1000)
    correct = predictions.correct(labels)
    for seed in range(6):
        fitted = rightly.calibrator("ca_views", seed=seed).fit(predictions, labels)
        assert metrics.auroc(fitted.confidence(predictions), correct) > 0.95


def test_many_classes_use_the_table_and_train_as_well():
    predictions, labels = make(n=1500, c=60)
    fitted = rightly.calibrator("ca_views").fit(predictions, labels)
    correct = predictions.correct(labels)
    now = metrics.brier(fitted.confidence(predictions), correct)
    assert now <= metrics.brier(predictions.confidence, correct)


def test_the_released_recipe_often_starts_dead():
    predictions, labels = make(n=300)
    pinned = 0
    for seed in range(20):
        fitted = rightly.calibrator("ca_views_released", seed=seed).fit(predictions, labels)
        temperature = fitted.temperature(predictions)
        pinned += bool((temperature == temperature.min()).all())
    assert 4 <= pinned <= 16


def test_pts_gives_real_predictions_temperatures_that_differ():
    predictions, labels = load_demo_set("cal")
    for seed in range(3):
        fitted = rightly.calibrator("pts", seed=seed).fit(predictions, labels)
        temperature = fitted.temperature(predictions)
        assert float(temperature.std() / temperature.mean()) > 0.01
        assert not fitted.fit_note and "one temperature" not in repr(fitted)
