"""The sequential test: how often it is wrong, and what it calls what it finds."""

import numpy as np
import pytest

from rightly.calibrators.shift_adaptation import score
from rightly.demo_data import load_demo_set
from rightly.monitoring.false_alarms import YEARS, _draw_years, plan_test
from rightly.monitoring.sequential_test import (
    CLASS_MIX,
    SHIFT,
    Reference,
    SequentialTest,
)

RATE = 400.0


@pytest.fixture(scope="module")
def reference(calibrator):
    return Reference(**calibrator.shift.drift.arrays())


@pytest.fixture(scope="module")
def plan(reference):
    return plan_test(reference, RATE)


@pytest.fixture(scope="module")
def describe(calibrator, reference):
    def describe_set(name):
        predictions, labels = load_demo_set(name)
        s = score(calibrator.confidence(predictions)).numpy()
        return reference.describe(calibrator.classes(predictions).numpy(), s, None), labels.numpy()

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
def test_a_changed_class_mix_has_its_own_name(plan, describe, odds):
    values, labels = describe("ind")
    alarms = []
    for k in range(10):  # half of all images, or nine of ten, are of one class
        weight = np.where(labels == k, odds / (labels == k).mean(), 1 / (labels != k).mean())
        alarms.append(run(plan, values, 30, np.random.default_rng(k), weight / weight.sum()))
    assert all(CLASS_MIX in names for names in alarms)
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
