"""Metrics of selective prediction, against areas and searches written out."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given

from rightly.metrics import augrc, aurc, auroc, coverage_at_risk, curves, e_aurc, risk_at_coverage
from tests.metrics.test_definitions import pairs, prop


def average_over_ties(confidence, correct):
    """The error rate among the first k, averaged over every order of ties."""
    orders = [
        list(order)
        for order in permutations(range(len(correct)))
        if (np.diff(confidence[list(order)]) <= 0).all()
    ]
    steps = np.arange(1, len(correct) + 1)
    return np.mean([(~correct[order]).cumsum() / steps for order in orders], axis=0)


@given(pairs(max_size=6))
@prop
def test_risk_and_coverage_are_read_from_the_curve_averaged_over_ties(pair):
    risks, n = average_over_ties(*pair), len(pair[1])
    for share in (0.01, 0.2, 0.5, 0.8, 1.0):
        k = next(k for k in range(1, n + 1) if k / n >= share - 1e-12)
        assert risk_at_coverage(*pair, share) == pytest.approx(risks[k - 1], abs=1e-12)
        most = max([k for k in range(1, n + 1) if risks[k - 1] <= share + 1e-12], default=0)
        assert coverage_at_risk(*pair, share) == most / n


@given(pairs())
@prop
def test_augrc_is_the_area_under_the_generalised_risk(pair):
    curve = curves.risk_coverage(*pair)
    coverage = np.append(0, curve.coverage)
    generalised = np.append(0, curve.risk * curve.coverage)  # accepted and wrong
    area = (np.diff(coverage) * (generalised[1:] + generalised[:-1])).sum() / 2
    assert augrc(*pair) == pytest.approx(area, abs=1e-12)
    accuracy = pair[1].mean()
    if 0 < accuracy < 1:  # equation 8 of Traub et al.
        formula = (1 - auroc(*pair)) * accuracy * (1 - accuracy) + (1 - accuracy) ** 2 / 2
        assert augrc(*pair) == pytest.approx(formula, abs=1e-12)


@given(pairs())
@prop
def test_e_aurc_is_what_the_best_order_would_save(pair):
    confidence, correct = pair
    best = aurc(correct + confidence / 1000 - confidence / 1000, correct)
    assert e_aurc(confidence, correct) == pytest.approx(aurc(confidence, correct) - best, abs=1e-12)


def test_the_best_aurc_tends_to_that_of_the_paper():
    correct = np.random.default_rng(0).random(100_000) < 0.8
    r = 1 - correct.mean()
    saved = aurc(np.full(100_000, 0.5), correct) - e_aurc(np.full(100_000, 0.5), correct)
    assert saved == pytest.approx(r + (1 - r) * np.log(1 - r), abs=1e-5)


def test_nothing_is_covered_where_even_the_most_confident_are_too_often_wrong():
    assert coverage_at_risk([0.9, 0.9, 0.8], [False, True, False], 0.3) == 0
    assert coverage_at_risk([0.9, 0.8, 0.7], [False, True, True], 0.4) == 1  # outweighed later
