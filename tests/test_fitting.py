"""Fitting for use: thresholds and the record that travel with a calibrator."""

import math

import pytest
import torch

import rightly
from rightly import Decision, Predictions, load_calibrator
from rightly.calibrators import ConformalSets
from rightly.evaluation.selection import MethodChoice, select_method
from rightly.predictions.predictions import Source
from rightly.predictions.rows import (
    first_row_per_image,
    holdout_mask,
    number_images,
)
from tests.conftest import make

SOURCE = {"name": "timm:x", "fingerprint": "ab" * 32, "preprocessing": {"size": [32, 32]}}


def replace_source(predictions):
    """The same predictions with a record of their classifier."""
    return predictions._replace(source=Source(classifier=SOURCE))


def test_the_record_says_what_was_fitted_on_what(sample):
    named = replace_source(sample[0])
    fitted = rightly.fit(named, sample[1], "temperature_scaling")
    assert fitted.record["classifier"] == SOURCE
    seen = fitted.record["calibration"]
    assert seen["samples"] == 300
    assert seen["accuracy"] == pytest.approx(float(sample[0].correct(sample[1]).double().mean()))
    confidence, correct = fitted.confidence(sample[0]), sample[0].correct(sample[1])
    assert seen["after"]["ece"] == pytest.approx(rightly.metrics.ece(confidence, correct))
    assert fitted.threshold is None and fitted.decision is None


@pytest.mark.parametrize("method", ["temperature_scaling", "ca_views"])
def test_passes_count_the_image_and_the_views_that_are_read(sample, method):
    fitted = rightly.fit(*sample, method)
    assert fitted.record["passes"] == 1 + len(fitted.view_names)


def test_a_guaranteed_threshold_is_found_on_images_held_out_of_the_fit(sample):
    predictions, labels = make(n=1000)
    fitted = rightly.fit(predictions, labels, "temperature_scaling", accuracy=0.5)
    held_out = holdout_mask(predictions, 0.5)
    # The calibrator that is deployed has not seen them, and the threshold nothing else.
    alone = rightly.calibrator("temperature_scaling").fit(predictions[~held_out], labels[~held_out])
    assert torch.equal(fitted.confidence(predictions), alone.confidence(predictions))
    confidence = fitted.confidence(predictions[held_out])
    correct = predictions[held_out].correct(labels[held_out])
    decision = fitted.decision
    held_out_of = {"measured_on": "calibration samples held out of the fit"}
    assert decision == Decision.guarantee(confidence, correct, accuracy=0.5, **held_out_of)
    assert fitted.threshold == decision.threshold is not None
    assert decision.is_guaranteed and decision.error_bound <= 0.5
    assert decision.n == 500 == fitted.record["calibration"]["samples"]
    accepted = round(1000 * decision.accepted / 500)
    line = f"of 1,000 samples about {accepted} accepted, at most 50 % of them wrong "
    assert decision.describe() == line + "(guaranteed, confidence level 95 %)"


def test_images_are_held_out_whole_and_once(tmp_path):
    """Shifted copies go with their image, and equal images together; shuffling changes nothing."""
    predictions, labels = make(n=300)
    logits = torch.cat([predictions.logits, predictions.logits[:300] + 0.1, predictions.logits[:2]])
    image = torch.cat([torch.arange(300), torch.arange(300), torch.tensor([300, 301])])
    shift = torch.cat([torch.zeros(300), torch.ones(300), torch.zeros(2)]).long()
    both = Predictions(logits, image=image, shift=shift, shift_names=["brighter"])
    number = number_images(both)
    assert torch.equal(number[:300], number[300:600]) and torch.equal(number[:2], number[600:])
    held_out = holdout_mask(both, 0.3)
    assert abs(int(held_out[:300].sum()) - 90) <= 2
    used = both[held_out]
    assert int(first_row_per_image(used).sum()) == int(held_out[:300].sum())
    order = torch.randperm(602, generator=torch.Generator().manual_seed(0))
    assert torch.equal(number_images(both[order]), number[order])


@pytest.mark.filterwarnings("ignore:accuracy .* cannot be guaranteed")
def test_where_nothing_can_be_guaranteed_the_calibrator_has_no_threshold(sample, tmp_path):
    fitted = rightly.fit(*sample, "temperature_scaling", accuracy=0.98)
    assert fitted.threshold is None
    fitted.save(tmp_path / "c.safetensors")
    loaded = load_calibrator(tmp_path / "c.safetensors")
    decision = loaded.decision
    assert decision == fitted.decision
    assert not decision.is_guaranteed and "not with these 150 samples" in decision.describe()


def test_a_cross_fitted_threshold_is_marked_approximate(sample):
    fitted = rightly.fit(*sample, "temperature_scaling", accuracy=0.5, crossfit=True)
    alone = rightly.calibrator("temperature_scaling").fit(*sample)
    assert torch.equal(fitted.confidence(sample[0]), alone.confidence(sample[0]))
    decision = fitted.decision
    assert decision.kind == "approximate" and not decision.is_guaranteed
    assert decision.n == 300 and 0 <= decision.violation_rate < 0.2
    assert decision.error_bound is None  # which would be of held-out samples
    assert "violation rate" in decision.describe()


def test_costs_set_the_threshold_of_least_cost(sample):
    costs = {"error": 5.0, "review": 1.0}
    fitted = rightly.fit(*sample, "temperature_scaling", costs=costs)
    # A calibrated confidence is worth accepting from 1 - review / error on.
    assert fitted.threshold == pytest.approx(0.8, abs=0.15)
    stored = fitted.decision.costs
    assert stored["low"] < stored["per_1000"] < stored["high"]
    assert stored["per_1000"] <= 1000


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:all 200 calibration samples are predicted right")
@pytest.mark.parametrize(
    ("rate", "decay", "n", "draws", "least", "most"),
    [
        (0.0201, 0.0005, 400, 2000, 0.005, 0.05),  # 2 % is violated as soon as anything passes
        (0.06, 0.5, 1000, 500, 0.0, 0.05),  # two thirds of the images could be answered
        (0.06, 0.0005, 400, 200, 0.0, 0.0),  # nothing may pass
    ],
)
@pytest.mark.filterwarnings("ignore:accuracy .* cannot be guaranteed")
def test_guarantees_are_met_end_to_end(rate, decay, n, draws, least, most):
    """Every draw is fitted anew, calibrator and threshold; errors in the population are known.

    Margins m are exponential with mean 2, and wrong with probability rate * exp(-decay m): of those
    from a margin on, rate * exp(-decay margin) / (1 + 2 decay) are wrong.
    """
    generator = torch.Generator().manual_seed(0)
    grid = torch.linspace(0, 40, 4001)
    margins = Predictions(torch.stack([grid, torch.zeros(4001)], 1))
    violated = found = 0
    for _ in range(draws):
        margin = 2 * torch.empty(n, dtype=torch.float64).exponential_(generator=generator)
        wrong = torch.rand(n, generator=generator) < rate * torch.exp(-decay * margin)
        sign = 2 * torch.randint(0, 2, (n,), generator=generator) - 1
        predictions = Predictions(torch.stack([margin * sign, torch.zeros(n)], 1))
        labels = torch.where(wrong, 1 - predictions.classes, predictions.classes)
        fitted = rightly.fit(
            predictions,
            labels,
            "temperature_scaling",
            accuracy=0.98,
            confidence_level=0.95,
            holdout=0.5,
            adaptable=False,
        )
        if fitted.threshold is None:
            continue
        found += 1
        accepted_from = float(grid[fitted.accept(margins)].min())
        violated += rate * math.exp(-decay * accepted_from) / (1 + 2 * decay) > 0.02
    assert least <= violated / draws <= most + 3 * (most * (1 - most) / draws) ** 0.5
    assert bool(found) == bool(most)


def test_sets_and_threshold_come_from_the_same_images_held_out_of_the_fit():
    predictions, labels = make(n=1000)
    fitted = rightly.fit(
        predictions, labels, "temperature_scaling", accuracy=0.5, coverage=0.8, set_score="aps"
    )
    rows = holdout_mask(predictions, 0.5)
    part = rightly.calibrator("temperature_scaling").fit(predictions[~rows], labels[~rows])
    sets = ConformalSets.fit(part, predictions[rows], labels[rows], coverage=0.8, score="aps")
    assert fitted.sets.describe() == sets.describe() and sets.samples == 500
    assert torch.equal(fitted.sets.threshold, sets.threshold)
    assert fitted.decision.n == 500
    test, truth = make(n=2000, seed=7)
    members = fitted.prediction_sets(test)
    assert 0.75 < members.gather(1, truth[:, None]).double().mean() < 0.85


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"coverage": 0.9, "crossfit": True, "accuracy": 0.6},
            "crossfit and coverage exclude each other",
        ),
        ({"set_score": "aps"}, "pass coverage= too"),
        ({"class_conditional": True}, "pass coverage= too"),
        ({"coverage": 0.9, "set_score": "top"}, "set_score must be one of lac, aps, raps"),
        ({"coverage": 1.0}, r"coverage must be a fraction in \(0, 1\), got 1.0"),
        ({"coverage": 0.999}, "0.999 needs at least 999 held-out images, got 150: hold out more"),
    ],
)
def test_sets_without_a_guarantee_are_refused(sample, arguments, message):
    with pytest.raises(ValueError, match=message):
        rightly.fit(*sample, "temperature_scaling", **arguments)


def test_decision_and_record_are_saved_and_loaded(sample, tmp_path):
    fitted = rightly.fit(replace_source(sample[0]), sample[1], "ca_views", threshold=0.8)
    fitted.save(tmp_path / "c.safetensors")
    loaded = load_calibrator(tmp_path / "c.safetensors")
    assert loaded.threshold == 0.8 and loaded.decision == fitted.decision
    assert loaded.record == fitted.record
    assert torch.equal(loaded.accept(sample[0]), fitted.accept(sample[0]))


def test_without_a_threshold_nothing_is_accepted_or_refused(sample):
    fitted = rightly.fit(*sample, "temperature_scaling")
    with pytest.raises(ValueError, match="no threshold to accept by"):
        fitted.accept(sample[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threshold": 1.2}, "threshold must be a fraction in .0, 1., got 1.2"),
        ({"threshold": 0.5, "accuracy": 0.9}, "exclude each other"),
        ({"accuracy": 1.0}, "accuracy must be a fraction in .0, 1., got 1.0"),
        ({"accuracy": 0.9, "confidence_level": 0.0}, "confidence_level must be a fraction in"),
        ({"accuracy": 0.9, "holdout": 0.001}, "predictions must have images for two parts"),
        ({"crossfit": True}, "crossfit must come with an accuracy"),
        ({"costs": {"error": 1.0}}, "costs must name error and review"),
        ({"costs": {"error": 1.0, "review": 2.0}}, "error must cost more than a review"),
    ],
)
def test_impossible_thresholds_are_refused(sample, arguments, message):
    predictions, labels = sample
    with pytest.raises(ValueError, match=message):
        rightly.fit(predictions, labels, "temperature_scaling", **arguments)


def make_views(n, gain, seed=0):
    """Predictions of four classes with two views, of noise only or with a signal of their own."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 4, (n,), generator=generator)
    signal = torch.nn.functional.one_hot(labels, 4)
    logits = 1.5 * signal + 1.5 * torch.randn(n, 4, generator=generator)
    noise = torch.randn(n, 2, 4, generator=generator)
    views = logits[:, None] + noise if not gain else 3 * signal[:, None] + noise
    return Predictions(logits, views, view_names=("a", "b")), labels


def test_views_that_gain_nothing_are_left_out_unless_they_were_named():
    predictions, labels = make_views(1500, gain=False)
    fitted = rightly.fit(predictions, labels)
    assert fitted.view_names == () and fitted.record["passes"] == 1
    (note,) = fitted.record["notes"]
    assert "gain nothing detectable on held-out rows" in note == fitted.record["views"]
    alone = rightly.calibrator("rightly").fit(predictions.without_views(), labels)
    assert torch.equal(fitted.confidence(predictions), alone.confidence(predictions))
    adapted = fitted.adapt(predictions[:400])  # views still stand for shifted samples
    assert adapted.is_adapted
    named = rightly.fit(predictions, labels, select_views=False)
    assert named.view_names == ("a", "b") and not named.record["notes"]
    with_them = rightly.calibrator("rightly").fit(predictions, labels)
    assert torch.equal(named.confidence(predictions), with_them.confidence(predictions))


def test_views_that_gain_stay():
    fitted = rightly.fit(*make_views(1500, gain=True))
    assert fitted.view_names == ("a", "b") and not fitted.record["notes"]
    assert "gain on held-out rows" in fitted.record["views"]


def test_auto_selects_a_method_by_the_fitted_part_alone():
    predictions, labels = make_views(800, gain=False)
    part = predictions[~holdout_mask(predictions, 0.5)], labels[~holdout_mask(predictions, 0.5)]
    steps = []
    fitted = rightly.fit(
        predictions,
        labels,
        "auto",
        accuracy=0.5,
        expected_shift=0.2,
        progress=lambda *step: steps.append(step),
    )
    choice = select_method(*part, expected_shift=0.2)
    assert fitted.method == choice.method == fitted.record["selection"]["method"]
    assert MethodChoice.from_dict(fitted.record["selection"]) == choice
    assert any("comparing" in name for name, _, _ in steps)


def test_an_unfitted_calibrator_is_taken_and_left_as_it_is(sample):
    built = rightly.calibrator("ca_views", seed=2)
    fitted = rightly.fit(*sample, built)
    assert not built.is_fitted and fitted.method == "ca_views"
    expected = rightly.calibrator("ca_views", seed=2).fit(*sample).confidence(sample[0])
    assert torch.equal(fitted.confidence(sample[0]), expected)
    for method, options in ((fitted, {}), (built, {"seeds": 1}), (built, {"budget": 1.5})):
        with pytest.raises(ValueError, match="method must be an unfitted calibrator without"):
            rightly.fit(*sample, method, **options)


def make_nearly_right(n):
    """Predictions of which the least confident tenth is wrong."""
    logits = 4 * torch.randn(n, 3, generator=torch.Generator().manual_seed(0))
    labels = logits.argmax(-1)
    labels[logits.softmax(-1).amax(-1).argsort()[: n // 10]] += 1
    return Predictions(logits), labels % 3


def test_what_cannot_be_guaranteed_warns_and_says_what_is_needed():
    with pytest.warns(UserWarning, match="accuracy 0.98 cannot be guaranteed, not with these"):
        fitted = rightly.fit(*make_nearly_right(120), "temperature_scaling", accuracy=0.98)
    decision = fitted.decision
    assert decision.threshold is None and decision.needed > 60
    assert str(decision.needed) in decision.reason


def test_a_threshold_far_above_its_target_names_a_remedy():
    fitted = rightly.fit(*make_nearly_right(120), "temperature_scaling", accuracy=0.9)
    assert fitted.decision.accuracy > 0.95 and fitted.decision.coverage < 1
    assert "far above its target" in fitted.record["notes"][0]
    assert "more images or crossfit" in fitted.record["notes"][0]


def test_a_fit_that_need_not_adapt_learns_no_shift(sample):
    assert rightly.fit(*sample, "temperature_scaling", adaptable=False).shift is None
    assert rightly.fit(*sample, "temperature_scaling").shift is not None
