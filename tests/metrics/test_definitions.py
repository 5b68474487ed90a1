import math
from fractions import Fraction
from inspect import signature
from itertools import permutations

import jaxtyping
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import foldnorm

from rightly.metrics import (
    METRICS,
    Metric,
    ace,
    aurc,
    auroc,
    brier,
    classwise_ece,
    confidence_gap,
    ece,
    ece_debiased,
    ece_l2,
    ks,
    ks_released,
    mce,
    multiclass_brier,
    narrowly_wrong,
    nll,
    smooth_ece,
)

OF_CONFIDENCE = [name for name, metric in METRICS.items() if metric.inputs == "confidence"]
OF_PROBABILITIES = [name for name, metric in METRICS.items() if metric.inputs == "probabilities"]
BINNED = ["ece", "ece_l2", "ece_debiased", "ace", "mce", "classwise_ece"]

# The worked example of METHODS, section 5: .8, .6 and .4 lie on edges of 5 and of 25 bins.
CONFIDENCE = np.array([0.95, 0.9, 0.85, 0.8, 0.6, 0.55, 0.4, 0.3])
CORRECT = np.array([1, 1, 0, 1, 0, 1, 0, 0], dtype=bool)
# The worked example of METHODS, section 4 (DCA).
PROBABILITIES = np.array([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
LABELS = np.array([0, 1, 1, 2])


def inputs(name, n=60, seed=0):
    """A pair a metric takes, with ties, zeros and ones in it."""
    rng = np.random.default_rng(seed)
    if METRICS[name].inputs == "confidence":
        return rng.integers(0, 17, n) / 16, rng.random(n) < 0.6
    return rng.dirichlet(np.ones(4), n), rng.integers(0, 4, n)


def measure(name, *arguments, **options):
    return METRICS[name].measure(*arguments, **options)


def calibrated(n, seed=0, offset=0.0):
    """Confidence that is right on average, or too high by `offset` everywhere."""
    rng = np.random.default_rng(seed)
    confidence = rng.uniform(0.2, 1, n)
    return confidence, rng.random(n) < confidence - offset


# Hypothesis draws multiples of 1/64, exact in floating point, so that ties and edges happen.
scores = st.integers(0, 64).map(lambda k: k / 64)


def pairs(scores=scores, min_size=1, max_size=40):
    both = st.lists(st.tuples(scores, st.booleans()), min_size=min_size, max_size=max_size)
    return both.map(lambda p: (np.array([c for c, _ in p]), np.array([a for _, a in p])))


# The examples are the same in every run; the first call may load SciPy, hence no deadline.
prop = settings(max_examples=60, deadline=None, derandomize=True)


# The record.


def test_a_record_needs_only_a_name_and_a_measure():
    metric = Metric("bias", lambda confidence, correct: confidence.mean() - correct.mean())
    assert (metric.title, metric.inputs, metric.definition) == ("bias", "confidence", None)
    assert metric.range == (-math.inf, math.inf)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"range": (1.0, 0.0)}, r"range must be \(least, largest\), got \(1.0, 0.0\)"),
        ({"range": (0.0, math.nan)}, "range must be"),
        ({"inputs": "logits"}, "inputs must be 'confidence' or 'probabilities', got 'logits'"),
        ({"unit": "bits"}, "unit must be '%' or 'nats', got 'bits'"),
    ],
)
def test_a_record_that_makes_no_sense_is_refused(field, message, monkeypatch):
    # Users run without the type checker of these tests, which would refuse some of these first.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=message):
        Metric("odd", brier, **field)


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_has_a_name_in_the_literature_and_a_meaning(name):
    metric = METRICS[name]
    assert metric.title and metric.meaning and "\n" not in metric.meaning


# Every metric keeps the contract.


@pytest.mark.parametrize("name", METRICS)
def test_swapped_arguments_are_refused(name):
    first, second = inputs(name)
    with pytest.raises(TypeError, match="swapped"):
        measure(name, second, first)


@pytest.mark.parametrize("name", METRICS)
def test_the_order_of_samples_is_irrelevant(name):
    first, second = inputs(name)
    expected = measure(name, first, second)
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(first))
        assert measure(name, first[order], second[order]) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", METRICS)
def test_numpy_torch_and_lists_give_the_same_float(name):
    first, second = inputs(name)
    first = first.astype(np.float16)  # so that every type below holds the same numbers
    expected = measure(name, first, second)
    assert type(expected) is float
    tensor = torch.from_numpy(first)
    for same in (first.tolist(), first.astype(np.float32), tensor, tensor.float()):
        assert measure(name, same, second.tolist()) == pytest.approx(expected, abs=1e-12)
    graph = tensor.double().requires_grad_()
    assert measure(name, graph, torch.from_numpy(second)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", METRICS)
def test_inputs_can_be_named_and_are_left_untouched(name):
    first, second = inputs(name)
    before = first.copy(), second.copy()
    names = ("confidence", "correct") if name in OF_CONFIDENCE else ("probabilities", "labels")
    assert measure(name, **dict(zip(names, (first, second), strict=True))) == measure(
        name, first, second
    )
    assert np.array_equal(first, before[0]) and np.array_equal(second, before[1])


@pytest.mark.parametrize("name", METRICS)
def test_perfect_confidence_scores_best(name):
    metric = METRICS[name]
    _, target = inputs(name)
    perfect = target.astype(float) if name in OF_CONFIDENCE else np.eye(4)[target]
    best = metric.measure(perfect, target)
    # Even the best order has errors once the right samples are used up.
    errors = np.maximum(np.arange(1, 61) - target.sum(), 0) / np.arange(1, 61)
    wrong = 1 - target.mean()
    expected = {"auroc": 1, "confidence_gap": -1, "aurc": errors.mean(), "augrc": wrong**2 / 2}
    expected |= {"risk_at_coverage": errors[47], "coverage_at_risk": (errors <= 0.05).mean()}
    assert best == pytest.approx(expected.get(name, 0), abs=1e-12)
    sign = -1 if metric.lower_is_better is False else 1
    for seed in range(1, 6):
        assert sign * best <= sign * metric.measure(inputs(name, seed=seed)[0], target)


@pytest.mark.parametrize("name", METRICS)
def test_an_option_that_a_metric_does_not_have_is_refused(name):
    known = set(signature(METRICS[name].measure).parameters)
    for option in {"bins", "coverage", "risk"} - known:
        with pytest.raises(TypeError, match=f"{option} is no option of {name}, which takes"):
            measure(name, *inputs(name), **{option: 1})
    for option in {"coverage", "risk"} & known:
        with pytest.raises(
            ValueError, match=f"{option} must be a fraction in .0, 1., got 80: for 80 %"
        ):
            measure(name, *inputs(name), 80)


@pytest.mark.parametrize("name", METRICS)
def test_one_sample_gives_a_float_or_nan(name):
    first, second = inputs(name, n=1)
    value = measure(name, first, second)
    assert math.isnan(value) == (name in {"auroc", "confidence_gap"})


@pytest.mark.parametrize("name", BINNED)
def test_fewer_samples_than_bins_works(name):
    first, second = inputs(name, n=3)
    assert 0 <= measure(name, first, second, bins=1000) <= 1


@pytest.mark.parametrize("name", BINNED)
def test_bins_must_be_a_positive_whole_number(name):
    first, second = inputs(name)
    for bad, error in ((0, ValueError), (-1, ValueError), (2.0, TypeError), (True, TypeError)):
        with pytest.raises(error, match="bins must be"):
            measure(name, first, second, bins=bad)
        with pytest.raises(error, match="bins must be"):
            measure(name, first, second, bad)
    assert measure(name, first, second, np.int32(7)) == measure(name, first, second, bins=7)


# Values worked out elsewhere.


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("ece", {}, 0.36875),
        ("ece", {"bins": 5}, 0.21875),
        ("mce", {}, 0.85),
        ("brier", {}, 0.1984375),
        ("ace", {"bins": 4}, 0.20625),
        ("ks", {}, 0.1875),
        ("ks_released", {}, 0.26875),
        ("auroc", {}, 0.8125),
        ("confidence_gap", {}, (0.85 + 0.6 + 0.4 + 0.3) / 4 - (0.95 + 0.9 + 0.8 + 0.55) / 4),
        (
            "ece_l2",
            {"bins": 5},
            math.sqrt((3 * (7 / 30) ** 2 + 0.04 + 0.01125 + 0.245) / 8),
        ),
        ("aurc", {}, (0 + 0 + 1 / 3 + 1 / 4 + 2 / 5 + 2 / 6 + 3 / 7 + 4 / 8) / 8),
        ("e_aurc", {}, (1 / 3 + 1 / 4 + 1 / 5 + 0 + 0 + 0) / 8),
        ("augrc", {}, (1 - 0.8125) / 4 + 1 / 8),
        ("risk_at_coverage", {}, 3 / 7),
        ("risk_at_coverage", {"coverage": 0.625}, 2 / 5),
        ("risk_at_coverage", {"coverage": 0.0}, 0),
        ("coverage_at_risk", {}, 2 / 8),
        ("coverage_at_risk", {"risk": 1 / 3}, 6 / 8),
    ],
)
def test_the_worked_example_of_confidence(name, options, expected):
    assert measure(name, CONFIDENCE, CORRECT, **options) == pytest.approx(expected, abs=1e-12)


def test_the_worked_example_of_probabilities():
    assert classwise_ece(PROBABILITIES, LABELS) == pytest.approx(0.28333, abs=5e-6)
    assert nll(PROBABILITIES, LABELS) == pytest.approx(0.61923, abs=5e-6)
    squares = (0.14, 0.36 + 0.49 + 0.01, 0.38, 0.06)
    assert multiclass_brier(PROBABILITIES, LABELS) == pytest.approx(sum(squares) / 4)
    assert narrowly_wrong(PROBABILITIES, LABELS) == 0  # 0.3 / 0.6 is not above one half
    assert narrowly_wrong([[0.5, 0.3, 0.2], [0.1, 0.9, 0]], [1, 1]) == 0.5


def test_a_balanced_brier_of_the_second_example_is_that_of_the_methods():
    correct = np.array([1, 1, 0, 1, 1, 1, 0, 1], dtype=bool)
    right, wrong = (brier(CONFIDENCE[rows], correct[rows]) for rows in (correct, ~correct))
    assert brier(CONFIDENCE, correct) == pytest.approx(0.2234375)
    assert (right + wrong) / 2 == pytest.approx(0.2960417)


def test_ks_is_read_only_after_the_last_of_a_tie():
    correct = np.array([0, 0, 1, 1], dtype=bool)
    assert ks([0.5] * 4, correct) == 0
    assert ks([0.5] * 4, ~correct) == 0


def test_aurc_averages_over_the_orders_of_a_tie():
    # Right first gives (0 + 1/2) / 2, wrong first (1 + 1/2) / 2.
    assert aurc([0.5, 0.5], [True, False]) == pytest.approx(0.5)


def test_confidence_exactly_zero_and_exactly_one_are_counted():
    assert ece([0.0, 1.0], [True, False]) == 1
    assert mce([0.0, 0.5], [True, True]) == 1
    assert ace([0.0, 1.0], [True, False]) == 1
    assert smooth_ece([0.0] * 9, [True] * 9) == pytest.approx(1, abs=1e-3)


def test_a_metric_of_pairs_is_nan_when_all_are_right_or_all_wrong():
    for correct in ([True, True], [False, False]):
        assert math.isnan(auroc([0.2, 0.9], correct))
        assert math.isnan(confidence_gap([0.2, 0.9], correct))


def test_a_true_class_of_probability_zero_leaves_nll_finite():
    assert nll([[1.0, 0.0]], [1]) == pytest.approx(-math.log(np.finfo(float).eps))


def test_classwise_ece_leaves_out_probabilities_of_zero():
    # Class 1 is true but has probability 0: only the gap of class 0 counts, over two classes.
    assert classwise_ece([[1.0, 0.0]], [1]) == 0.5


# Independent references.


@given(pairs(), st.integers(1, 70))
@prop
def test_ece_and_mce_match_a_loop_over_bins(pair, bins):
    confidence, correct = pair
    gaps = {}
    for m in range(bins):
        inside = (confidence > m / bins) & (confidence <= (m + 1) / bins)
        inside |= (confidence == 0) & (m == 0)
        if inside.any():
            gaps[m] = inside.sum(), abs(confidence[inside].mean() - correct[inside].mean())
    expected = sum(count * gap for count, gap in gaps.values()) / len(correct)
    assert ece(confidence, correct, bins) == pytest.approx(expected, abs=1e-12)
    assert mce(confidence, correct, bins) == pytest.approx(max(g for _, g in gaps.values()))


@given(pairs())
@prop
def test_ks_matches_a_loop_over_thresholds(pair):
    confidence, correct = pair
    gaps = [abs((confidence - correct)[confidence <= t].sum()) for t in confidence]
    assert ks(confidence, correct) == pytest.approx(max(gaps) / len(correct), abs=1e-12)


@given(pairs())
@prop
def test_ks_released_is_ks_sorted_by_correctness(pair):
    confidence, correct = pair
    order = correct.argsort(kind="stable")
    expected = abs((confidence - correct)[order].cumsum()).max() / len(correct)
    assert ks_released(confidence, correct) == pytest.approx(expected, abs=1e-12)


@given(pairs(min_size=2).filter(lambda pair: len(set(pair[1].tolist())) == 2))
@prop
def test_auroc_is_the_share_of_pairs_won_to_the_last_digit(pair):
    right, wrong = (pair[0][side].tolist() for side in (pair[1], ~pair[1]))
    won = sum(2 * (r > w) + (r == w) for r in right for w in wrong)
    assert auroc(*pair) == float(Fraction(won, 2 * len(right) * len(wrong)))


@given(pairs())
@prop
def test_brier_matches_exact_arithmetic(pair):
    squares = [
        (Fraction(c) - int(a)) ** 2 for c, a in zip(*(x.tolist() for x in pair), strict=True)
    ]
    assert brier(*pair) == pytest.approx(float(sum(squares) / len(squares)), abs=1e-15)


@given(pairs(max_size=5))
@prop
def test_aurc_matches_the_average_over_all_orders_of_ties(pair):
    confidence, correct = pair
    runs = []
    for order in map(list, permutations(range(len(correct)))):
        if (np.diff(confidence[order]) <= 0).all():
            runs.append(np.mean([(~correct[order])[:k].mean() for k in range(1, len(order) + 1)]))
    assert aurc(confidence, correct) == pytest.approx(np.mean(runs), abs=1e-12)


@given(pairs())
@prop
def test_l2_ece_is_a_loop_over_bins_and_never_below_ece(pair):
    confidence, correct = pair
    bin_of = np.maximum(np.ceil(confidence * 25 - 1e-9), 1)
    rows = [bin_of == k for k in np.unique(bin_of)]
    gaps = [confidence[inside].mean() - correct[inside].mean() for inside in rows]
    mean = sum(inside.mean() * gap**2 for inside, gap in zip(rows, gaps, strict=True))
    assert ece_l2(confidence, correct) == pytest.approx(math.sqrt(mean), abs=1e-12)
    assert ece_l2(confidence, correct) >= ece(confidence, correct) - 1e-12


def test_nll_matches_torchs_cross_entropy():
    probabilities, labels = inputs("nll", n=500)
    logits, target = torch.from_numpy(np.log(probabilities)), torch.from_numpy(labels)
    expected = torch.nn.functional.cross_entropy(logits, target).item()
    assert nll(probabilities, labels) == pytest.approx(expected)


def test_classwise_ece_is_the_mean_of_each_classs_own_ece():
    probabilities, labels = inputs("classwise_ece", n=500)
    own = [ece(probabilities[:, k], labels == k, bins=15) for k in range(4)]
    assert classwise_ece(probabilities, labels, bins=15) == pytest.approx(np.mean(own))


@pytest.mark.parametrize("power", [0.5, 2, 6])
def test_smooth_ece_is_the_fixed_point_of_the_kernel_summed_without_a_grid(power):
    rng = np.random.default_rng(0)
    score = rng.random(400)
    correct = rng.random(400) < score**power
    width = smooth_ece(score, correct)
    at = (np.arange(4000) + 0.5) / 4000
    images = np.concatenate([sign * score + 2 * k for k in (-2, -1, 0, 1, 2) for sign in (1, -1)])
    kernel = np.exp(-(((at[:, None] - images) / width) ** 2) / 2) / (width * math.sqrt(2 * math.pi))
    excess = kernel @ np.tile((score - correct) / 400, 10)
    assert abs(excess).mean() == pytest.approx(width, abs=5e-4)


# Laws.


@given(pairs())
@prop
def test_the_mean_gap_bounds_ks_and_ece_from_below(pair):
    confidence, correct = pair
    overall = abs(confidence.mean() - correct.mean())
    assert overall <= ks(confidence, correct) + 1e-12
    for error in (ece, ace):
        assert overall <= error(confidence, correct) + 1e-12 <= 1 + 2e-12
    assert ece(confidence, correct, bins=1) == pytest.approx(overall, abs=1e-12)
    assert ece(confidence, correct) <= mce(confidence, correct) + 1e-12


@given(pairs(st.integers(1, 64).map(lambda k: k / 64)))
@prop
def test_ks_is_at_most_the_ece_with_a_bin_for_each_value(pair):
    assert ks(*pair) <= ece(*pair, bins=64) + 1e-12


@given(pairs())
@prop
def test_the_two_sides_of_ks_released_differ_by_the_overall_gap(pair):
    confidence, correct = pair
    a, b = (confidence * ~correct).mean(), ((1 - confidence) * correct).mean()
    assert a - b == pytest.approx(confidence.mean() - correct.mean(), abs=1e-12)
    assert ks_released(confidence, correct) == pytest.approx(max(a, b - a), abs=1e-12)


@given(pairs())
@prop
def test_ranking_metrics_ignore_monotone_maps(pair):
    confidence, correct = pair
    for mapped in (np.sqrt(confidence), confidence**3, 0.5 + confidence / 4):
        assert auroc(mapped, correct) == pytest.approx(auroc(confidence, correct), nan_ok=True)
        assert aurc(mapped, correct) == pytest.approx(aurc(confidence, correct))


@given(pairs(), st.randoms(use_true_random=False))
@prop
def test_every_metric_of_confidence_stays_in_its_range_and_ignores_order(pair, random):
    confidence, correct = pair
    order = random.sample(range(len(correct)), len(correct))
    for name in OF_CONFIDENCE:
        value = measure(name, confidence, correct)
        low, high = METRICS[name].range
        assert math.isnan(value) or low <= value <= high + 1e-12
        shuffled = measure(name, confidence[order], correct[order])
        assert shuffled == pytest.approx(value, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("name", OF_PROBABILITIES)
def test_every_metric_of_probabilities_stays_in_its_range(name):
    low, high = METRICS[name].range
    for seed in range(20):
        assert low <= measure(name, *inputs(name, n=1 + seed, seed=seed)) <= high
    wrong = measure(name, np.eye(4)[[0] * 5], [1, 2, 3, 1, 2])
    assert low <= wrong <= high


# Large samples.


def test_a_calibrated_predictor_has_almost_no_error_but_its_brier_score_as_released_ks():
    confidence, correct = calibrated(100_000)
    assert ece(confidence, correct) < 0.01
    assert ace(confidence, correct) < 0.01
    assert ks(confidence, correct) < 0.005
    assert smooth_ece(confidence, correct) < 0.01
    doubt = (confidence * (1 - confidence)).mean()
    assert brier(confidence, correct) == pytest.approx(doubt, abs=0.005)
    assert ks_released(confidence, correct) == pytest.approx(doubt, abs=0.005)


@pytest.mark.parametrize("offset", [0.05, 0.1, 0.2])
def test_a_constant_offset_is_what_the_calibration_errors_report(offset):
    confidence, correct = calibrated(100_000, offset=offset)
    for error in (ece, ace, ks, smooth_ece):
        assert error(confidence, correct) == pytest.approx(offset, abs=0.01)


# The debiased error.


def draw(n, seed, law):
    rng = np.random.default_rng(seed)
    confidence = 1 - 0.75 * rng.beta(1, 3, n)
    return confidence, rng.random(n) < law(confidence)


def test_the_debiased_error_is_ece_less_the_bias_of_a_folded_normal():
    confidence, correct = draw(700, 0, lambda c: 0.95 * c)
    index = np.minimum(np.ceil(confidence * 25).astype(int) - 1, 24)
    filled = [index == k for k in range(25) if (index == k).any()]
    share = np.array([rows.mean() for rows in filled])
    gap = np.array([abs((confidence - correct)[rows].mean()) for rows in filled])
    deviation = [np.sqrt((confidence * (1 - confidence))[rows].sum()) for rows in filled]
    deviation = np.array(deviation) / (700 * share)
    typical = np.sqrt((share * (gap**2 - deviation**2)).sum())
    bias = foldnorm.mean(typical / deviation, scale=deviation) - typical
    expected = (share * (gap - bias)).sum()
    assert 0.01 < expected < ece(confidence, correct) - 0.005
    assert ece_debiased(confidence, correct) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("n", [300, 2000])
def test_the_debiased_error_of_calibrated_samples_is_near_zero(n):
    pairs = [draw(n, seed, lambda c: c) for seed in range(200)]
    plain, debiased = (np.array([error(*p) for p in pairs]) for error in (ece, ece_debiased))
    assert debiased.mean() < plain.mean() / 3
    assert (debiased == 0).mean() > 1 / 3
    assert (debiased <= plain).all()


@pytest.mark.parametrize("n", [300, 2000, 10_000])
@pytest.mark.parametrize(
    "law",
    [
        lambda c: 0.98 * c,
        lambda c: 0.95 * c,
        lambda c: 0.9 * c,
        lambda c: np.minimum(c + 0.05 * np.sin(8 * c), 1),
    ],
    ids=["x0.98", "x0.95", "x0.9", "waves"],
)
def test_the_debiased_error_is_on_average_nearer_to_a_known_miscalibration_than_ece(law, n):
    confidence, _ = draw(200_000, 1, law)
    index = np.ceil(confidence * 25)
    excess = [(confidence - law(confidence))[index == k].sum() for k in np.unique(index)]
    truth = np.abs(excess).sum() / len(confidence)
    pairs = [draw(n, seed, law) for seed in range(150)]
    plain, debiased = (np.array([error(*p) for p in pairs]) for error in (ece, ece_debiased))
    assert abs(debiased.mean() - truth) < abs(plain.mean() - truth)
    # Less bias is bought with spread: a single value is at worst about as far off.
    assert np.mean((debiased - truth) ** 2) < 1.2 * np.mean((plain - truth) ** 2)
