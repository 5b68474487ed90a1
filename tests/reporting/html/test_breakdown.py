"""A test set in parts: means with exact intervals, few samples folded, the worst first."""

import numpy as np
import pytest

from rightly.decisions import Decision, exact_interval
from rightly.reporting.html.breakdown import FEW, MOST, break_down
from rightly.reporting.html.page import render
from tests.reporting.html.test_study import make_set, make_study


def test_parts_are_means_by_predicted_class():
    one = make_set()
    broken = break_down(one, one.predicted, ["ant", "bee", "cow"], 0.7)
    of = one.predicted == 1
    assert [part.name for part in broken.parts] == ["ant", "bee", "cow"] and not broken.few
    part = broken.parts[1]
    assert (part.count, part.right) == (of.sum(), one.correct[of].sum())
    assert (part.low, part.high) == exact_interval(part.right, part.count)
    assert part.gap == pytest.approx(one.after[of].mean() - one.correct[of].mean())
    assert part.gap_low < part.gap < part.gap_high
    assert part.decision == Decision.at(0.7, one.after[of], one.correct[of])


def test_parts_with_few_samples_are_folded_and_the_surest_excess_comes_first():
    one = make_set(n=300)
    key = np.repeat([0, 1, 2], [150, 150 - FEW + 1, FEW - 1])
    one.correct[:150], one.correct[150:] = True, False
    broken = break_down(one, key, ["right", "wrong", "few"], 0.9, worst_first=True)
    assert [part.name for part in broken.parts] == ["wrong", "right"]
    assert [part.words for part in broken.parts] == ["too sure", "not sure enough"]
    assert [part.name for part in broken.few] == ["few"]
    page = render(make_study(sets=[one]))
    assert f"fewer than {FEW} samples" not in page  # three classes of a hundred


def test_of_very_many_parts_the_smallest_are_left_out():
    one = make_set(n=2 * MOST)
    key = np.arange(2 * MOST) % (MOST + 7)
    broken = break_down(one, key, [str(k) for k in range(MOST + 7)], 0.9)
    assert len(broken.parts) + len(broken.few) == MOST and broken.left_out == 7
