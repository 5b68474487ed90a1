"""Every state, against counting by hand, samples that are copied and batches that are joined."""

import numpy as np
import pytest

from rightly.metrics import METRICS, Outcomes, Ranks, states
from rightly.metrics.bootstrap import replicate_metrics
from rightly.metrics.states import Bins, ClassBins, Sums, add
from rightly.resampling import draw_resamples
from tests.metrics.synthetic import make_outcomes, measure

ADDITIVE = [
    Bins.of_equal_width,
    Bins.of_equal_width_with_variance,
    Bins.of_cells,
    ClassBins.of,
    Sums.of_outcomes,
]


def name_of(build):
    return build.__qualname__


def choose(outcomes, rows):
    """The outcomes of some rows."""
    fields = (outcomes.confidence, outcomes.correct, outcomes.probabilities, outcomes.labels)
    return Ranks(Outcomes(*(field[rows] for field in fields)))


def saturated(n=60):
    rng = np.random.default_rng(0)
    confidence = rng.choice([0.0, 0.5, 1.0], n)
    labels = rng.integers(0, 2, n)
    return Outcomes(confidence, labels == 0, np.stack([confidence, 1 - confidence], -1), labels)


def samples():
    for n in (1, 2, 40, 400):
        for decimals in (None, 1, 2):
            yield make_outcomes(n, decimals=decimals)
    yield saturated()


@pytest.mark.parametrize("build", [*ADDITIVE, Bins.of_equal_count], ids=name_of)
def test_a_resample_is_the_state_of_copied_samples(build):
    for outcomes in samples():
        n = len(outcomes.correct)
        counts = np.concatenate([np.ones((1, n), np.uint8), *draw_resamples(n, 5, seed=n)])
        state = build(Ranks(outcomes, counts))
        for b, row in enumerate(counts):
            copied = build(choose(outcomes, np.repeat(np.arange(n), row)))
            for of_resamples, of_copies in zip(state, copied, strict=True):
                np.testing.assert_allclose(of_resamples[b], of_copies[0], atol=1e-8)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 128, 129, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_levels_may_reach_over_blocks(n, dtype, monkeypatch):
    monkeypatch.setattr(states, "BLOCK", states.GROUP)
    for decimals in (None, 2, 1, 0):
        outcomes = make_outcomes(n, decimals=decimals)
        c, correct = outcomes.confidence.astype(dtype), outcomes.correct
        resampled = Ranks(Outcomes(c.astype(np.float64), correct), np.ones((1, n), np.uint8))
        for name in ("ece", "ace", "brier", "ks", "auroc", "augrc", "smooth_ece", "ece_debiased"):
            once = METRICS[name].measure(c, correct)
            of_resample = METRICS[name].definition(resampled)[0]
            np.testing.assert_allclose(once, of_resample, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("build", ADDITIVE, ids=name_of)
def test_the_states_of_two_batches_add_up(build):
    for outcomes in samples():
        half = len(outcomes.correct) // 2
        if half:
            batches = [choose(outcomes, rows) for rows in (slice(0, half), slice(half, None))]
            total = add(*map(build, batches))
            for added, at_once in zip(total, build(Ranks(outcomes)), strict=True):
                np.testing.assert_allclose(added, at_once, atol=1e-11)


def test_every_metric_resamples_as_if_samples_were_copied():
    for outcomes in (make_outcomes(40), make_outcomes(40, decimals=1), saturated()):
        n = len(outcomes.correct)
        (counts,) = draw_resamples(n, 12)
        for name, values in replicate_metrics(outcomes, list(METRICS), [counts]).items():
            expected = [measure(name, outcomes, np.repeat(np.arange(n), row)) for row in counts]
            np.testing.assert_allclose(values, expected, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("decimals", [None, 1])
def test_sums_are_of_the_copied_samples_up_to_each_distinct_confidence(decimals):
    outcomes = make_outcomes(80, decimals=decimals)
    counts = np.concatenate([np.ones((1, 80), np.uint8), *draw_resamples(80, 4)])
    resampled = Ranks(outcomes, counts)
    for i, level in enumerate(outcomes.levels):
        below = outcomes.confidence <= level
        for b, count in enumerate(counts):
            rows = np.repeat(np.flatnonzero(below), count[below])
            correct = outcomes.correct[rows]
            excess = (outcomes.confidence[rows] - correct).sum()
            for ranks, at in ((resampled, b), (Ranks(outcomes), 0)) if not b else ((resampled, b),):
                assert (ranks.weight[at, i], ranks.right[at, i]) == (len(rows), correct.sum())
                assert ranks.wrong[at, i] == (~correct).sum()
                assert ranks.excess[at, i] / outcomes.unit == pytest.approx(excess, abs=1e-12)


def test_units_stay_exact_for_many_samples():
    outcomes = make_outcomes(200_000)
    resampled = Ranks(outcomes, np.ones((1, 200_000), dtype=np.uint8))
    for name in ("ece", "ks", "ace"):
        c, correct = outcomes.confidence, outcomes.correct
        value = METRICS[name].definition(resampled)[0]
        assert value == pytest.approx(METRICS[name].measure(c, correct), abs=1e-10)
    excess = np.bincount(states.assign_equal_width(c, 25), c - correct, 25)
    assert METRICS["ece"].measure(c, correct) == pytest.approx(abs(excess).sum() / 2e5, abs=1e-12)


def test_sums_between_levels_undo_a_cumulative_sum():
    steps = np.array([[1, 0, 2, 5], [0, 3, 1, 1]])
    cumulative = steps.cumsum(-1)
    np.testing.assert_array_equal(states.step(cumulative), steps)
    # Bins of two, no and two levels; then those of each row.
    ends = np.array([[2, 2, 4]])
    np.testing.assert_array_equal(states.sum_between(cumulative, ends), [[1, 0, 7], [3, 0, 2]])
    ends = np.array([[2, 2, 4], [0, 1, 4]])
    np.testing.assert_array_equal(states.sum_between(cumulative, ends), [[1, 0, 7], [0, 0, 5]])


def test_bins_are_closed_on_the_right_at_every_edge():
    for bins in (5, 10, 15, 25, 100):
        edges = np.array([float(f"{m / bins:.17g}") for m in range(bins + 1)])
        assert states.assign_equal_width(edges, bins).tolist() == [0, *range(bins)]
        above = np.nextafter(edges[:-1], 1)
        assert states.assign_equal_width(above, bins).tolist() == list(range(bins))
        for values in (edges, above):
            index = states.assign_equal_width(values, bins)
            state = Bins.of_equal_width(Ranks(Outcomes(values, values > 2)), bins)
            np.testing.assert_array_equal(state.size[0], np.bincount(index, minlength=bins))


def test_bins_of_float32_compare_in_double_precision():
    confidence = np.array([0.04, 0.28, 0.28, 0.5, 1.0], dtype=np.float32)
    state = Bins.of_equal_width(Ranks(Outcomes(confidence, confidence > 2)))
    index = np.digitize(confidence.astype(np.float64), np.arange(1, 25) / 25, right=True)
    np.testing.assert_array_equal(state.size[0], np.bincount(index, minlength=25))


def test_bins_of_equal_count_keep_ties_together_and_saturated_values_apart():
    values = np.array([0.2, 0.4, 0.6, 1, 1, 1, 1, 1])  # quartiles 0.55, 1 and 1
    state = Bins.of_equal_count(Ranks(Outcomes(values, values > 2)), 4)
    assert state.size.tolist() == [[2, 1, 0, 5]]
    values = np.random.default_rng(0).permutation(100) / 100
    state = Bins.of_equal_count(Ranks(Outcomes(values, values > 2)), 5)
    assert state.size.tolist() == [[20] * 5]


def test_cells_are_those_of_a_histogram_and_the_last_is_closed():
    levels = np.unique(np.append(np.random.default_rng(2).random(300), [0.0, 1.0]))
    counts, _ = np.histogram(levels, np.arange(states.CELLS + 1) / states.CELLS)
    state = Bins.of_cells(Ranks(Outcomes(levels, levels > 2)))
    np.testing.assert_array_equal(state.size[0], counts)


def test_the_two_arguments_of_a_metric_are_chosen_by_what_it_reads():
    outcomes = make_outcomes(3)
    assert outcomes.inputs("confidence") == (outcomes.confidence, outcomes.correct)
    assert outcomes.inputs("probabilities") == (outcomes.probabilities, outcomes.labels)
    again = Outcomes.of("probabilities", outcomes.probabilities, outcomes.labels)
    np.testing.assert_array_equal(again.confidence, outcomes.confidence)
    np.testing.assert_array_equal(again.correct, outcomes.correct)
    without = Outcomes(outcomes.confidence, outcomes.correct)
    with pytest.raises(ValueError, match="need probabilities and labels"):
        without.inputs("probabilities")
