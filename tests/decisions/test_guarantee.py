"""Guaranteed thresholds: what passes, how often they hold, how many samples they need."""

import numpy as np
import pytest
from scipy.stats import beta, binom, binomtest

from rightly import Decision
from rightly.decisions import exact_interval
from rightly.decisions.guarantee import min_samples_without_error


def guarantee(confidence, correct, accuracy=0.98, **options):
    return Decision.guarantee(confidence, correct, accuracy=accuracy, **options)


def make_sample(wrong_at, n, ascending=False):
    """n samples from the most confident on, wrong at these ranks (from 0)."""
    correct = np.full(n, True)
    correct[list(wrong_at)] = False
    confidence = np.linspace(0.999, 0.2, n)
    return (confidence[::-1], correct[::-1]) if ascending else (confidence, correct)


@pytest.mark.parametrize(("max_error", "level", "count"), [(0.02, 0.95, 149), (0.05, 0.9, 45)])
def test_the_first_rank_is_the_fewest_that_could_pass(max_error, level, count):
    assert min_samples_without_error(max_error, 1 - level) == count
    asked = {"accuracy": 1 - max_error, "confidence_level": level}
    result = guarantee(*make_sample([], count), **asked)
    assert result.accepted == count and result.accuracy == 1 and result.reason == ""
    assert result.error_bound == pytest.approx(1 - (1 - level) ** (1 / count))
    less = guarantee(*make_sample([], count - 1), **asked)
    assert less.threshold is None and less.needed == count
    # Sure and right on 149, wrong on all others: those 149 are accepted, and no more.
    mixed = guarantee(*make_sample(range(count, 3 * count), 3 * count, True), **asked)
    assert mixed.accepted == count


def test_what_is_accepted_passes_an_independent_test():
    rng = np.random.default_rng(0)
    confidence = rng.random(4000)
    correct = rng.random(4000) < 0.9 + 0.1 * confidence
    result = guarantee(confidence, correct, accuracy=0.95)
    accepted = confidence >= result.threshold
    errors = int((~correct[accepted]).sum())
    assert result.accepted == accepted.sum() > 1000
    assert 1 - result.accuracy == pytest.approx(errors / result.accepted)
    assert binom.cdf(errors, result.accepted, 0.05) <= 0.05
    assert result.error_bound == pytest.approx(beta.ppf(0.95, errors + 1, result.accepted - errors))
    assert result.error_bound <= 0.05


def test_samples_of_one_confidence_are_accepted_together():
    confidence = np.repeat([0.99, 0.9, 0.5], 200)
    correct = np.arange(600) < 400
    assert guarantee(confidence, correct).accepted == 400
    # One wrong of 200 does not pass, and 149 of them cannot be told from the others.
    one_wrong = np.arange(600) % 200 != 7
    assert guarantee(confidence[:200], one_wrong[:200]).threshold is None


def test_one_error_among_the_surest_is_no_end_where_samples_are_many():
    assert guarantee(*make_sample([3], 5000)).accepted == 5000


@pytest.mark.parametrize("top", [0.021, 0.0])
def test_the_guarantee_holds_as_often_as_its_confidence_level(top):
    """Errors get more from the surest on: at 2.1 % from the first, or past 2 % at two thirds."""
    rng = np.random.default_rng(1)
    n, draws, slope, violations, accepted = 1000, 500, 0.0601, 0, []
    for _ in range(draws):
        u = rng.random(n)  # share of the population that is surer
        correct = rng.random(n) >= top + slope * u
        result = guarantee(1 - u, correct)
        share = 0.0 if result.threshold is None else 1 - result.threshold
        violations += share > 0 and top + slope * share / 2 > 0.02
        accepted.append(share)
    assert violations / draws <= 0.05 + 3 * (0.05 * 0.95 / draws) ** 0.5
    assert top < 0.02 or violations / draws > 0.005  # tight where the first rank is one too many
    assert top > 0.02 or np.mean(accepted) > 0.1


def test_needed_samples_pass_four_times_in_five():
    rng = np.random.default_rng(2)

    def draw(n):
        u = rng.random(n)
        return 1 - u, rng.random(n) >= 0.05 * u**2

    small = guarantee(*draw(120))
    assert small.threshold is None and 149 <= small.needed < 2000
    confidence, correct = make_sample([*range(52, 400, 5)], 400)
    result = guarantee(confidence, correct)
    assert result.threshold is None
    assert result.needed == pytest.approx((149 + 149**0.5) * 400 / 52, rel=0.02)
    assert result.reason == "not with these 400 samples; about 1,240 would do"
    # Samples with that very error curve: none among the surest 52 of 400, then one in five.
    passes = 0
    for _ in range(100):
        u = rng.random(result.needed)
        correct = (u < 0.13) | (rng.random(len(u)) < 0.8)
        passes += guarantee(1 - u, correct).threshold is not None
    assert passes >= 70


def test_errors_that_are_too_many_everywhere_are_named_so():
    result = guarantee(*make_sample(range(0, 3000, 10), 3000))
    assert result.threshold is None and result.needed is None
    assert (
        "nor with more like them: at every threshold that accepts 50 or more, at least 10.00% of"
        in result.reason
    )
    assert result.accuracy is None and result.coverage == 0 and not result.is_guaranteed
    # The surest are all right, but of 200 samples 0.1 % allows not one error.
    few = guarantee(*make_sample([199], 200), accuracy=0.999)
    assert few.needed is None and "too few to tell how many would do" in few.reason
    close = guarantee(*make_sample(range(0, 3000, 50), 3000))
    assert close.threshold is None and close.needed is None and "too close to 0.02" in close.reason


def test_a_limit_that_takes_millions_of_samples_is_answered_by_their_number():
    result = guarantee(*make_sample([], 50), accuracy=1 - 1e-7)
    assert result.needed == pytest.approx(-np.log(0.05) / 1e-7, rel=1e-6)


def test_every_group_has_its_threshold():
    confidence, correct = make_sample([], 400)
    groups = np.array(["day", "night"])[np.arange(400) % 2]
    each = guarantee(confidence, correct, groups=groups)
    assert list(each) == ["day", "night"]
    assert each["day"].accepted == 200  # 149 would do
    both = guarantee(confidence, correct, groups=groups, simultaneous=True)
    assert both["day"].accepted == 200 and both["day"].error_bound > each["day"].error_bound
    three = guarantee(confidence, correct, groups=np.arange(400) % 3, simultaneous=True)
    assert three[2].threshold is None and three[2].needed == 203  # 0.98 ** 203 < 0.05 / 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"accuracy": 1.0}, "accuracy must be a fraction in .0, 1., got 1.0"),
        (
            {"confidence_level": 95.0},
            "confidence_level must be a fraction in .0, 1., got 95.0: for 95 %",
        ),
        ({"simultaneous": True}, "simultaneous must come with groups"),
        ({"groups": [1, 2]}, r"groups must have shape \(3,\)"),
        ({"groups": [0.1, 0.2, np.nan]}, "groups must be whole numbers or text"),
    ],
)
def test_arguments_without_a_guarantee_are_refused(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        guarantee([0.5, 0.7, 0.9], [True, True, False], **arguments)


@pytest.mark.parametrize(("right", "n"), [(0, 5), (5, 5), (8, 10), (979, 1000)])
def test_the_interval_is_scipys_exact_one(right, n):
    expected = binomtest(right, n).proportion_ci(method="exact")
    assert exact_interval(right, n) == pytest.approx((expected.low, expected.high), abs=1e-12)
