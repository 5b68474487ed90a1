"""The sequential test: how often it is wrong, and what it calls what it finds."""

from dataclasses import replace

import numpy as np
import pytest

from rightly.calibrators.shift_adaptation import score_shift
from rightly.demo_data import load_demo_set
from rightly.monitoring.drift import (
    PRIOR_SHIFT,
    SHIFT,
    DriftWatch,
    ElapsedClock,
    Reference,
    SequentialTest,
    plan_blocks,
)
from rightly.monitoring.limits import YEARS, _draw_years, find_limits

RATE = 400.0


def plan_test(reference, rate=None, false_alarms=1.0):
    return find_limits(reference, plan_blocks(reference, rate), false_alarms)


@pytest.fixture(scope="module")
def reference(calibrator):
    return Reference.of(calibrator.shift.describe_drift())


@pytest.fixture(scope="module")
def plan(reference):
    return plan_test(reference, RATE)


@pytest.fixture(scope="module")
def describe(calibrator, reference):
    def describe_set(name):
        predictions, labels = load_demo_set(name)
        scores, _ = score_shift(calibrator, predictions)
        classes = calibrator.classes(predictions).numpy()
        return reference.describe(classes, scores.numpy(), None), labels.numpy()

    return describe_set


def run(plan, values, steps, rng, weight=None):
    """Names of the alarms in a stream of blocks drawn from rows."""
    test = SequentialTest(plan)
    drawn = (rng.choice(len(values), plan.block, p=weight) for _ in range(steps))
    return [alarm.name for rows in drawn for alarm in test.update(values[rows])]


def test_held_out_years_alarm_about_as_often_as_asked(plan, describe):
    values, _ = describe("ind")
    steps, years = round(365 * RATE / plan.block), 6
    alarms = [
        name
        for seed in range(years)
        for name in run(plan, values, steps, np.random.default_rng(seed))
    ]
    assert len(alarms) <= 3 * years  # one a year, with an error of this reference and of ind


@pytest.mark.parametrize("name", ["haze", "pixelate"])
def test_a_shift_is_noticed_within_ten_blocks(plan, describe, name):
    values, _ = describe(name)
    for seed in range(5):
        assert SHIFT in run(plan, values, 10, np.random.default_rng(seed))


@pytest.mark.parametrize("odds", [1.0, 9.0])
def test_a_changed_class_prior_has_its_own_name(plan, describe, odds):
    values, labels = describe("ind")
    alarms = []
    for k in range(10):  # half of all images, or nine of ten, are of one class
        weight = np.where(labels == k, odds / (labels == k).mean(), 1 / (labels != k).mean())
        alarms.append(run(plan, values, 30, np.random.default_rng(k), weight / weight.sum()))
    assert all(PRIOR_SHIFT in names for names in alarms)
    assert not [k for k, names in enumerate(alarms) if SHIFT in names]


def test_fewer_false_alarms_need_higher_limits(reference, plan):
    fewer = plan_test(reference, RATE, 0.1)
    assert all(fewer.limits[name] > plan.limits[name] for name in plan.limits)
    again = plan_test(reference, RATE)
    assert again == plan  # the simulation owns its seed


def test_simulated_years_redraw_how_much_shares_vary():
    """With few calibration samples a share may be larger than it seems, and then varies more."""
    rng = np.random.default_rng(0)
    is_member = (np.arange(1000) < 60)[:, None].astype(float)
    years = _draw_years(is_member - 0.06, np.arange(1000), 64, 1000, rng)
    mean, spread = years.mean(1)[:, 0], years.std(1)[:, 0]
    own = slice(YEARS)
    assert mean[own].std() == pytest.approx((0.06 * 0.94 / 1000) ** 0.5, rel=0.3)
    assert np.corrcoef(mean[own], spread[own])[0, 1] > 0.7


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_rates_that_mean_nothing_are_refused(reference, value):
    with pytest.raises(ValueError, match="samples_per_day must be a positive number"):
        plan_test(reference, value)
    with pytest.raises(ValueError, match="false_alarms_per_year must be a positive number"):
        plan_test(reference, RATE, value)


@pytest.fixture(scope="module")
def rows(calibrator):
    predictions, _ = load_demo_set("ind")
    scores, _ = score_shift(calibrator, predictions)
    return calibrator.classes(predictions).numpy(), scores.numpy()


def open_watch(reference, plan, **options):
    """One whose limits need not be found again."""
    watch = DriftWatch(reference, **options)
    watch.plan = replace(watch.plan, limits=plan.limits)
    watch._test = SequentialTest(watch.plan)
    return watch


@pytest.mark.parametrize(
    ("every_s", "blocks"),
    [
        (0.1, 0),  # 250 s
        (1.0, 0),  # 2,500 s
        (10.0, 6),  # an hour is 361 samples from first to last
        (58.0, 39),  # 64 samples take longer than an hour
        (3600.0, 39),
    ],
)
def test_a_block_is_at_least_64_samples_and_an_hour(reference, plan, rows, every_s, blocks):
    times = 1.7e9 + every_s * np.arange(2500)
    watch = open_watch(reference, plan)
    watch.observe(*rows, None, times)
    assert watch.tested == blocks
    assert watch.status == ("no alarm" if blocks else "starting")


def test_blocks_do_not_depend_on_how_samples_are_passed(reference, plan, rows):
    rng = np.random.default_rng(0)
    times = 1.7e9 + rng.uniform(0, 200, 2500).cumsum()
    times[1000:] -= 5000.0  # the clock is set back
    times[1500:1510] -= 100.0
    whole = open_watch(reference, plan)
    whole.observe(*rows, None, times)
    parts = open_watch(reference, plan)
    cuts = np.sort(rng.choice(2500, 200, replace=False))
    for k in np.split(np.arange(2500), cuts):
        if len(k):
            parts.observe(rows[0][k], rows[1][k], None, times[k])
    assert parts.tested == whole.tested > 30
    np.testing.assert_allclose(
        [list(level.values()) for level in parts.describe()["levels"]],
        [list(level.values()) for level in whole.describe()["levels"]],
        rtol=1e-9,
    )


def test_time_passes_in_the_order_of_arrival():
    clock = ElapsedClock()
    assert clock.advance(np.array([5.0, 7.0, 6.0, 7.0, 8.0])).tolist() == [0, 2, 2, 2, 3]
    # Far back: the times before were ahead of the clock, and it goes on from there.
    assert clock.advance(np.array([-9000.0, -8999.0])).tolist() == [3, 4]


def test_a_clock_that_steps_back_does_not_stop_the_watch(reference, plan, rows):
    times = 1.9e9 + 60.0 * np.arange(2500)
    times[300:] -= 3e8  # years
    watch = open_watch(reference, plan)
    watch.observe(*rows, None, times)
    assert watch.tested >= 37


def test_nothing_is_tested_before_there_are_limits(reference, plan, rows):
    watch = DriftWatch(reference)
    watch.observe(*rows, None, 1.7e9 + 60.0 * np.arange(2500))
    assert watch.tested == 0 and watch.status == "starting"
    watch._test = SequentialTest(replace(watch.plan, limits=plan.limits))
    watch.observe(rows[0][:1], rows[1][:1], None, np.array([1.8e9]))
    assert watch.tested >= 39 and watch.status == "no alarm"  # what came before counts
