"""What rows say beside a reference and over classifiers, and how it is printed."""

import io
import math

import numpy as np
import pytest
from rich.console import Console

from rightly.evaluation.measurement import compare, mean_ranks
from rightly.evaluation.results import Bootstrap, Result, read_json, write_json
from rightly.reporting.terminal import ALIKE, BETTER, REFERENCE, WORSE, print_verdicts, words
from tests.conftest import make

METHODS = ["uncalibrated", "temperature_scaling", "ca_views_released", "balanced_temperature"]
BOOTSTRAP = Bootstrap(200, 0, "temperature_scaling")


@pytest.fixture(scope="module")
def rows():
    return compare(*make(), {"a": make(seed=1), "b": make(seed=2)}, METHODS, bootstrap=BOOTSTRAP)


def test_intervals_do_not_change_values(rows):
    plain = compare(*make(), {"a": make(seed=1), "b": make(seed=2)}, METHODS)
    assert [row[:5] for row in rows] == [row[:5] for row in plain]
    assert all(row.low <= row.value <= row.high for row in rows)


def test_the_reference_is_not_tested_against_itself(rows):
    for row in rows:
        assert math.isnan(row.p) == (row.calibrator == "temperature_scaling")
        assert math.isnan(row.floor) == (row.metric != "ece")
        if not math.isnan(row.p):
            assert row.p <= row.p_holm <= 1


def test_seeds_share_the_interval_of_their_mean():
    rows = compare(
        *make(), {"a": make(seed=1)}, METHODS, ["brier"], seeds=2, bootstrap=Bootstrap(200)
    )
    released = [row for row in rows if row.calibrator == "ca_views_released"]
    assert released[0].value != released[1].value
    assert released[0][5:9] == released[1][5:9]
    middle = np.mean([row.value for row in released])
    assert released[0].low < middle < released[0].high


def test_a_diagnostic_is_never_better_or_worse():
    rows = compare(
        *make(), {"a": make(seed=1)}, METHODS[:2], ["narrowly_wrong"], bootstrap=Bootstrap(100)
    )
    assert all(math.isnan(row.p) and row.low <= row.high for row in rows)
    assert words(rows, "uncalibrated") == []


def printed(rows, width):
    console = Console(width=width, force_terminal=True, record=True, file=io.StringIO())
    print_verdicts(rows, console, "temperature_scaling", BOOTSTRAP)
    return console.export_text()


@pytest.mark.parametrize("width", [60, 100, 140])
def test_no_digit_is_lost_in_a_narrow_terminal(rows, width):
    text = printed(rows, width)
    assert "…" not in text
    assert all(f"{100 * row.value:.2f}" in text for row in rows)
    assert all(len(line) <= width for line in text.splitlines())


def test_marks_say_what_p_values_say(rows):
    text = printed(rows, 140)
    tables = text.split("\nb\n")[0]
    base = {row.metric: row.value for row in rows if row.calibrator == "temperature_scaling"}
    for row in rows:
        if row.dataset != "a":
            continue
        line = next(line for line in tables.splitlines() if line.startswith(row.calibrator))
        mark = next(
            x
            for x in line.split(f"{100 * row.value:.2f}")[1]
            if x in (BETTER, WORSE, ALIKE, REFERENCE)
        )
        if row.calibrator == "temperature_scaling":
            assert mark == REFERENCE
        elif row.p_holm > 0.05:
            assert mark == ALIKE
        else:
            improved = (row.value < base[row.metric]) == (row.metric != "auroc")
            assert mark == (BETTER if improved else WORSE)
    assert BETTER in text or WORSE in text


def row_of(name, value, dataset="a", metric="ece", seed=0):
    return Result(name, dataset, metric, value, seed)


def test_no_difference_is_said_in_words():
    rows = [row_of("ts", 0.1), row_of("x", 0.2)._replace(p=0.3, p_holm=0.3)]
    assert words(rows, "ts") == ["ece: no detectable difference between ts and any other"]


def test_ranks_over_classifiers_are_the_worked_example():
    first = [row_of("x", 0.1), row_of("y", 0.2), row_of("z", 0.2)]
    first += [row_of(n, v, metric="auroc") for n, v in (("x", 0.9), ("y", 0.95), ("z", 0.8))]
    second = [row_of("x", 0.3), row_of("y", 0.1), row_of("z", 0.2), row_of("w", 0.0)]
    second += [row_of(n, v, metric="auroc") for n, v in (("x", 0.9), ("y", 0.9), ("z", 0.9))]
    found = {one.calibrator: one for one in mean_ranks({"one": first, "two": second})}
    assert set(found) == {"x", "y", "z"}
    assert found["x"].mean_rank == pytest.approx((1 + 2 + 3 + 2) / 4)
    assert found["y"].mean_rank == pytest.approx((2.5 + 1 + 1 + 2) / 4)
    assert found["z"].rank == pytest.approx({"ece": (2.5 + 2) / 2, "auroc": (3 + 2) / 2})
    assert found["x"].mean == pytest.approx({"ece": 0.2, "auroc": 0.9})
    assert found["x"].spread["ece"] == pytest.approx(np.std([0.1, 0.3], ddof=1))
    assert next(iter(found)) == "y"


def test_seeds_are_averaged_and_one_classifier_has_no_spread():
    rows = [
        row_of("x", 0.1),
        row_of("x", 0.3, seed=1),
        row_of("y", 0.25),
        row_of("y", 0.25, seed=1),
    ]
    best, other = mean_ranks({"one": rows})
    assert (best.calibrator, other.calibrator) == ("x", "y")
    assert best.mean["ece"] == pytest.approx(0.2) and math.isnan(best.spread["ece"])


def test_a_value_that_does_not_exist_is_not_ranked():
    rows = [row_of("x", math.nan), row_of("y", 0.1), row_of("x", 0.2, "b"), row_of("y", 0.3, "b")]
    found = {one.calibrator: one for one in mean_ranks({"one": rows})}
    assert (found["x"].mean_rank, found["y"].mean_rank) == (1, 2)


def test_classifiers_with_nothing_in_common_are_refused():
    with pytest.raises(ValueError, match="no calibrator was measured"):
        mean_ranks({"one": [row_of("x", 0.1)], "two": [row_of("y", 0.1)]})
    with pytest.raises(ValueError, match="at least one classifier"):
        mean_ranks({})


def test_rows_survive_json(rows, tmp_path):
    write_json(tmp_path / "table.json", rows, BOOTSTRAP)
    again = read_json(tmp_path / "table.json")
    assert [str(row) for row in again] == [str(row) for row in rows]
