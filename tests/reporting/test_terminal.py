"""Tables in the terminal lose no word and no digit, at any width and in pipes."""

import io
import re

import pytest
from rich.console import Console

from rightly.calibrators import CALIBRATORS, Method
from rightly.calibrators.cascade import FULL_BAND
from rightly.calibrators.uncalibrated import Uncalibrated
from rightly.evaluation.benchmark import benchmark
from rightly.evaluation.compare import Comparison, compare
from rightly.evaluation.evaluate import evaluate
from rightly.evaluation.results import Result
from rightly.evaluation.selection import Candidate, MethodChoice
from rightly.evaluation.views import ViewCost, ViewGain, ViewRanking
from rightly.reporting import terminal
from rightly.reporting.formatting import BETTER, REFERENCE, SAME, WORSE
from rightly.reporting.method_list import render_methods
from tests.conftest import make

METHODS = ["uncalibrated", "temperature_scaling", "ca_views_released", "balanced_temperature"]
WIDTHS = (30, 60, 80, 140, None)


def print_at(width, render, *arguments, styles=False, **options):
    """What is printed in a terminal of that width, or in a pipe."""
    console = Console(
        width=width or 80, force_terminal=width is not None, record=True, file=io.StringIO()
    )
    terminal.show(console, lambda *a, width: render(*a, width, **options), *arguments)
    return console.export_text(styles=styles)


def check(text, width, words):
    """Whole words within the width; in 30 columns names are folded, but not cut."""
    assert "…" not in text
    if width is not None:
        assert all(len(line) <= width for line in text.splitlines())
    for word in " ".join(words).split():
        assert word in text or (width == 30 and word[:8] in text), word


@pytest.fixture(scope="module")
def comparison():
    tests = {"first set": make(seed=1), "b": make(seed=2)}
    return compare(make(), tests, methods=METHODS, intervals=True, resamples=200)


@pytest.mark.parametrize("width", WIDTHS[1:])
@pytest.mark.parametrize("with_intervals", [True, False])
def test_a_comparison_keeps_every_digit(comparison, width, with_intervals):
    text = print_at(width, terminal.render_comparison, comparison, with_intervals=with_intervals)
    values = [f"{100 * row.value:.2f}" for row in comparison]
    check(text, width, [*values, *METHODS, "first set"])
    if with_intervals:
        check(text, width, [f"{100 * row.low:.1f}" for row in comparison])


def test_a_pipe_gets_one_wide_table(comparison):
    text = print_at(None, terminal.render_comparison, comparison, with_intervals=False)
    lines = text.splitlines()
    assert lines[0].split() == ["first", "set", "b"] and len(lines) == 2 + len(METHODS) + 3
    assert lines[1].split().count("ece") == 2


def test_a_long_name_of_a_test_set_widens_its_columns():
    name = "a very long name of a test set indeed"
    rows = [Result("x", name, "ece", 0.1, 0), Result("x", "b", "ece", 0.1, 0)]
    text = print_at(None, terminal.render_comparison, Comparison(rows))
    first, second = text.splitlines()[:2]
    assert name in first and first.index(" b") > first.index(name)
    assert len(second.rstrip()) >= first.rstrip().index(" b")


def test_the_best_of_each_column_is_bold(comparison):
    text = print_at(200, terminal.render_comparison, comparison, with_intervals=False, styles=True)
    for dataset in comparison.datasets:
        values = [r.value for r in comparison if (r.dataset, r.metric) == (dataset, "brier")]
        assert re.search(rf"\x1b\[1m *{100 * min(values):.2f}\x1b", text)


def test_marks_say_what_p_values_say(comparison):
    text = print_at(140, terminal.render_comparison, comparison)
    table = text.split("\nb\n")[0]
    base = {r.metric: r.value for r in comparison if r.calibrator == "temperature_scaling"}
    for row in comparison:
        if row.dataset != "first set":
            continue
        base = next(
            r.value for r in comparison if r[:3] == ("temperature_scaling", row.dataset, row.metric)
        )
        line = next(line for line in table.splitlines() if line.startswith(row.calibrator))
        after = line.split(f"{100 * row.value:.2f}")[1]
        mark = next(x for x in after if x in (BETTER, WORSE, SAME, REFERENCE))
        if row.calibrator == "temperature_scaling":
            assert mark == REFERENCE
        elif row.p_holm > 0.05:
            assert mark == SAME
        else:
            improved = (row.value < base) == (row.metric != "auroc")
            assert mark == (BETTER if improved else WORSE)
    assert BETTER in text or WORSE in text
    assert "beside temperature_scaling" in text and "200 resamples" in text


def test_values_that_do_not_exist_are_missing(sample):
    predictions, labels = sample
    right = predictions.correct(labels)
    tests = {"all right": (predictions[right], labels[right])}
    methods = ["uncalibrated", "temperature_scaling"]
    for options in ({}, {"intervals": True, "resamples": 50}):
        shown = compare(sample, tests, methods=methods, allow_overlap=True, **options)
        assert print_at(80, terminal.render_comparison, shown).count("n/a") == 2


@pytest.mark.parametrize("width", WIDTHS)
def test_an_evaluation_keeps_every_word(comparison, width):
    fitted = comparison.calibrators["temperature_scaling"]
    evaluation = evaluate(fitted, {"mine": make(seed=3)}, intervals=True, resamples=100)
    text = print_at(width, terminal.render_evaluation, evaluation)
    before = evaluation.sets["mine"].before
    check(text, width, ["classwise_ece", "no detectable difference", "accuracy", "in %, except"])
    check(text, width, [f"{100 * before['brier'].value:.2f}", f"{before['nll'].value:.3f}"])
    plain = evaluate(fitted, {"mine": make(seed=3)}, metrics=["brier"], intervals=False)
    assert "interval" not in print_at(width, terminal.render_evaluation, plain)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_benchmark_keeps_every_word(comparison, width, tmp_path):
    for name in ("one", "two"):
        comparison.to_json(tmp_path / f"{name}.json")
    ranked = benchmark(tmp_path)
    text = print_at(width, terminal.render_benchmark, ranked)
    check(text, width, [*METHODS, "mean rank", f"{ranked[0].rank:.2f}", "2 classifiers"])


@pytest.mark.parametrize("width", WIDTHS)
def test_methods_keep_every_word(width):
    long = Method("x", Uncalibrated, "baseline", "[paper]", aliases=("y",), note="[a] note [/b]")
    text = print_at(width, render_methods, [*CALIBRATORS.values(), long])
    words = [method.name for method in CALIBRATORS.values()]
    check(text, width, [*words, "[paper]", "[/b]"])
    notes = " ".join(text.split())
    for method in CALIBRATORS.values():
        assert method.note in notes and method.paper in notes


@pytest.mark.parametrize("width", WIDTHS)
def test_views_costs_and_candidates_keep_every_word(width):
    names = ("random_resized_crop", "color_jitter")
    gains = tuple(ViewGain(names[:k], 0.1, 0.2, 0.03, 0.01, 0.05) for k in (1, 2))
    ranking = ViewRanking(ViewGain((), 0.12, 0.3, 0.0, 0.0, 0.0), gains, gains, gains[-1])
    check(
        print_at(width, terminal.render_views, ranking),
        width,
        ["random_resized_crop", "color_jitter", "10.000", "1.000 to 5.000", "log loss ↓"],
    )
    costs = [ViewCost(4.0, 4.0, FULL_BAND, 0.1, 0.9, 0.02, 0.01, 0.0, 0.02)]
    check(print_at(width, terminal.render_view_costs, costs), width, ["everywhere", "90.00"])
    one = Candidate("temperature_scaling", 0.1, 0.2, 0.15, 0.0, 0.01)
    choice = MethodChoice("temperature_scaling", "because", (one,))
    text = print_at(width, terminal.render_candidates, choice)
    check(text, width, ["temperature_scaling", "under shift ↓", "because."])


def test_names_with_brackets_are_no_markup():
    rows = [Result("[red]x[/red]", "[bold]", "ece", 0.1, 0)]
    for tested in ((), (50, "[red]x[/red]")):
        text = print_at(80, terminal.render_comparison, Comparison(rows, *tested))
        assert "[red]x[/red]" in text and "[bold]" in text


def test_a_pipe_keeps_its_width_afterwards(comparison):
    console = Console(width=80, file=io.StringIO())
    terminal.show(console, terminal.render_comparison, comparison)
    assert console.width == 80
