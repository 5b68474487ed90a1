"""Prediction sets of calibrators: their coverage, what they refuse, and that files keep them."""

import copy

import pytest
import torch
from scipy.stats import beta, kstest

import rightly
from rightly.calibrators import ConformalSets
from rightly.calibrators.conformal.scores import score_labels
from tests.calibrators.samples import draw_labels, draw_logits
from tests.calibrators.test_serialization import forge, forge_tensors
from tests.conftest import make


@pytest.fixture(scope="module")
def calibrator():
    return rightly.fit(*make(n=400), "temperature_scaling")


@pytest.fixture(scope="module")
def held_out():
    return make(n=600, seed=1)


@pytest.fixture(scope="module")
def fitted(calibrator, held_out):
    return copy.deepcopy(calibrator).decide(*held_out, coverage=0.8, set_score="aps")


def covered(sets, labels):
    return sets.gather(1, labels[:, None]).squeeze(1)


@pytest.mark.parametrize("score", ["lac", "aps", "raps"])
def test_coverage_follows_its_beta_law(score):
    """Of the whole population, over calibration sets that are drawn anew each time."""
    logits = draw_logits(30_000, 5, scale=1.5, seed=3)
    labels = draw_labels(0.6 * logits, seed=3)  # of an overconfident classifier
    everyone = rightly.Predictions(logits)
    calibrator = rightly.calibrator("uncalibrated").fit(everyone[:50], labels[:50])
    p, of_population = calibrator.probabilities(everyone), {}
    n, used, k = (75, 60, 49) if score == "raps" else (75, 75, 61)
    draws = 120 if score == "raps" else 300  # which selects a penalty each time
    coverages, g = [], torch.Generator().manual_seed(0)
    for _ in range(draws):
        rows = torch.randint(len(labels), (n,), generator=g)
        sets = ConformalSets.fit(
            calibrator, everyone[rows], labels[rows], coverage=0.8, score=score
        )
        assert sets.samples == used
        if sets.penalty not in of_population:
            scores = score_labels(score, p, everyone.logits, labels, sets.penalty)
            of_population[sets.penalty] = scores.sort().values
        scores = of_population[sets.penalty]
        below = torch.searchsorted(scores, sets.threshold[0], right=True)
        coverages.append(float(below) / len(scores))
    assert kstest(coverages, beta(k, used + 1 - k).cdf).pvalue > 0.01
    low, high = sets.coverage_interval()
    assert 0.9 < sum(low <= x <= high for x in coverages) / draws < 0.99


@pytest.mark.parametrize("score", ["lac", "aps", "raps"])
def test_sets_are_the_classes_up_to_the_threshold(calibrator, held_out, score):
    fitted = copy.deepcopy(calibrator).decide(*held_out, set_score=score, coverage=0.8)
    sets = fitted.prediction_sets(held_out[0])
    assert sets.shape == (600, 10) and sets.dtype == torch.bool
    # The k-th smallest score of 600, or of the 480 that no penalty was taken from.
    assert covered(sets, held_out[1]).sum() >= (481 if score != "raps" else 385)
    assert fitted.sets.mean_size == pytest.approx(float(sets.sum(1).double().mean()), rel=0.05)


def test_other_coverages_and_scores_come_from_the_same_held_out_scores(
    calibrator, held_out, fitted
):
    test, labels = make(n=500, seed=2)
    for coverage, score in ((0.95, "aps"), (0.8, "lac")):
        again = copy.deepcopy(calibrator).decide(*held_out, coverage=coverage, set_score=score)
        expected = again.prediction_sets(test)
        assert torch.equal(fitted.prediction_sets(test, coverage, score), expected)
    wider = fitted.prediction_sets(test, coverage=0.95)
    narrow = fitted.prediction_sets(test)
    assert (wider | ~narrow).all() and covered(wider, labels).float().mean() > 0.9


def test_classes_with_too_few_images_take_the_threshold_of_all(calibrator, held_out):
    predictions, labels = held_out
    kept = (labels != 3) | (torch.cumsum(labels == 3, 0) <= 4)  # four of class 3: five needed
    rare = copy.deepcopy(calibrator).decide(
        predictions[kept], labels[kept], coverage=0.85, class_conditional=True
    )
    plain = copy.deepcopy(calibrator).decide(predictions[kept], labels[kept], coverage=0.85)
    assert rare.sets.marginal == 1 and rare.sets.describe()["marginal_classes"] == 1
    assert rare.sets.threshold[3] == plain.sets.threshold[3]
    assert rare.sets.coverage_interval() is None
    scores = 1 - calibrator.probabilities(predictions[kept]).gather(1, labels[kept, None])
    for k in (0, 7):
        own = scores[labels[kept] == k].flatten().sort().values.float()
        rank = -(-(len(own) + 1) * 17 // 20)
        assert rare.sets.threshold[k] == own[rank - 1]


def test_masked_classes_are_in_no_set(calibrator, held_out):
    logits = make(n=50, seed=4)[0].logits.clone()
    logits[:, 2] = -torch.inf
    fitted = copy.deepcopy(calibrator).decide(*held_out, coverage=0.99, set_score="aps")
    fitted.sets.threshold.fill_(2)  # every class, but for the mask
    sets = fitted.sets.contains(
        fitted.probabilities(masked := rightly.Predictions(logits)), masked.logits
    )
    assert not sets[:, 2].any() and sets.sum() == 9 * 50


def test_rows_of_one_image_and_shifted_rows_count_once(calibrator, held_out):
    predictions, labels = held_out
    n = len(labels)
    doubled = rightly.Predictions(
        torch.cat([predictions.logits, predictions.logits, predictions.logits + 1]),
        shift=torch.arange(3 * n) // (2 * n),
        shift_names=["blur"],
        image=torch.arange(3 * n) % n,
    )
    sets = ConformalSets.fit(calibrator, doubled, labels.repeat(3))
    once = ConformalSets.fit(calibrator, predictions, labels)
    assert sets.samples == n and torch.equal(sets.threshold, once.threshold)


def test_sets_of_a_calibrator_without_held_out_scores_are_refused(calibrator):
    with pytest.raises(ValueError, match="no held-out scores.*coverage=.*decide"):
        calibrator.prediction_sets(make()[0])


def test_scores_that_were_not_held_out_are_refused(fitted, held_out):
    with pytest.raises(ValueError, match="got 'raps': fit again with set_score='raps'"):
        fitted.prediction_sets(held_out[0], score="raps")
    with pytest.raises(ValueError, match="score must be one of lac, aps, raps, got 'raw'"):
        fitted.prediction_sets(held_out[0], score="raw")
    with pytest.raises(ValueError, match="0.999 needs at least 999 held-out images, got 600"):
        fitted.prediction_sets(held_out[0], coverage=0.999)


def test_images_that_the_calibrator_was_fitted_on_are_refused(calibrator):
    with pytest.raises(ValueError, match="held out, but .* of them are among .* fitted on"):
        copy.deepcopy(calibrator).decide(*make(n=400), coverage=0.9)


def test_adapted_calibrators_make_sets_but_learn_none(fitted, held_out):
    adapted = fitted.adapt(held_out[0])
    sets = adapted.prediction_sets(held_out[0])
    expected = adapted.sets.contains(adapted.probabilities(held_out[0]), held_out[0].logits)
    assert torch.equal(sets, expected)
    with pytest.raises(ValueError, match="adapted to a batch, so nothing is guaranteed"):
        adapted.decide(*make(n=600, seed=5), coverage=0.9)


@pytest.mark.parametrize("score", ["aps", "raps"])
def test_files_keep_the_sets(calibrator, held_out, tmp_path, score):
    fitted = copy.deepcopy(calibrator).decide(
        *held_out, coverage=0.9, set_score=score, class_conditional=True
    )
    fitted.save(tmp_path / "a.safetensors")
    loaded = rightly.load_calibrator(tmp_path / "a.safetensors")
    assert loaded.sets.describe() == fitted.sets.describe()
    test = make(n=100, seed=2)[0]
    for options in ({}, {"score": "lac", "coverage": 0.7}):
        first, second = (one.prediction_sets(test, **options) for one in (fitted, loaded))
        assert torch.equal(first, second)


GOOD = {
    "coverage": 0.8,
    "score": "aps",
    "class_conditional": False,
    "mean_size": 2.0,
    "penalty": None,
}


@pytest.mark.parametrize(
    ("header", "tensors", "words"),
    [
        (None, {}, "sets must be a table"),
        (GOOD | {"coverage": 1}, {}, "coverage must be a fraction in .0, 1."),
        (GOOD | {"coverage": 0.9999}, {}, "needs at least 9999"),
        (GOOD | {"score": "top"}, {}, "score must be one of"),
        (GOOD | {"score": "raps"}, {}, "score must be one of those that were held out"),
        (GOOD | {"class_conditional": 1}, {}, "class_conditional must be"),
        (GOOD | {"mean_size": "large"}, {}, "mean_size must be"),
        (GOOD | {"penalty": {"size": 0.1, "free_ranks": 2}}, {}, "penalty must go with"),
        (GOOD, {"sets.raps": torch.ones(600)}, "penalty must go with"),
        (GOOD, {"sets.lac": torch.full((600,), 1.5)}, "sets.lac must lie in 0..1"),
        (GOOD, {"sets.aps": torch.full((600,), float("nan"))}, "sets.aps must be finite"),
        (GOOD, {"sets.aps": torch.ones(599)}, "sets.aps must have shape|sets.labels must have"),
        (GOOD, {"sets.labels": torch.full((600,), 10)}, "sets.labels must hold classes from 0 to"),
        (GOOD, {"sets.more": torch.ones(600)}, "sets.more is left over"),
    ],
)
def test_forged_sets_are_refused(fitted, tmp_path, header, tensors, words):
    fitted.save(path := tmp_path / "a.safetensors")
    forge(path, sets=header)
    forge_tensors(path, **tensors)
    with pytest.raises(ValueError, match=words):
        rightly.load_calibrator(path)
