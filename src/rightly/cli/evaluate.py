"""`rightly evaluate`: every metric, before and after calibration."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rightly.cli.console import ERR, OUT, ExitCode, print_line, write_json
from rightly.cli.options import (
    DATA_SET,
    Adapt,
    AllowOverlap,
    AnyClassifier,
    Card,
    CostError,
    CostGain,
    CostReview,
    Import,
    Intervals,
    Json,
    LabelFiles,
    Plot,
    Probabilities,
    Resamples,
    Seed,
    check_outputs,
    check_plot,
    kind_option,
    load_sets,
    option,
    read_adapt,
    read_costs,
    read_paths,
    select_given,
    select_names,
)

if TYPE_CHECKING:
    import numpy as np

EXAMPLE = "rightly evaluate calibrator.safetensors test.npz --json values.json"
FUNCTIONS = ("rightly.evaluation.evaluate:evaluate",)
KINDS = ("reliability", "smooth", "roc", "risk-coverage", "histogram", "ks", "temperature")
PAIR_KINDS = KINDS[:-1]  # those that need no logits


def run(
    calibrator: Annotated[
        Path | None,
        typer.Argument(metavar="CALIBRATOR", help="Saved calibrator (.safetensors)."),
    ] = None,
    tests: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME=]TEST...", help=f"Test sets with labels: {DATA_SET}."),
    ] = None,
    modules: Import = None,
    pairs: Annotated[Path | None, option("pairs", metavar="CSV")] = None,
    labels: LabelFiles = None,
    probabilities: Probabilities = False,
    metrics: Annotated[
        str | None, option("metrics", metavar="NAME,NAME", show_default="all")
    ] = None,
    intervals: Intervals = True,
    resamples: Resamples = None,
    seed: Seed = 0,
    adapt: Adapt = None,
    cost_error: CostError = None,
    cost_review: CostReview = None,
    cost_gain: CostGain = 0.0,
    require: Annotated[
        list[str] | None, option("require", metavar="NAME[.low|.high]>=NUMBER")
    ] = None,
    plot: Plot = None,
    kind: Annotated[str | None, kind_option(KINDS)] = None,
    card: Card = None,
    json: Json = None,
    any_classifier: AnyClassifier = False,
    allow_overlap: AllowOverlap = False,
) -> int:
    """Measure every metric before and after calibration.

    A requirement is on a metric after calibration, accuracy, coverage, accuracy_accepted or cost.
    """
    if pairs is not None:
        given = {"CALIBRATOR": calibrator, "adapt": adapt, "require": require, "card": card}
        for name, value in given.items():
            if value is not None:
                raise ValueError(f"pairs and {name} exclude each other: leave one of them out")
        check_outputs([plot, json], [pairs])
        _evaluate_pairs(pairs, metrics, intervals, resamples, seed, plot, kind, json)
        return ExitCode.DONE
    if calibrator is None or not tests:
        raise ValueError("evaluate needs CALIBRATOR and TEST, or --pairs CSV")
    from rightly.evaluation.evaluate import evaluate
    from rightly.reporting.terminal import render_evaluation, show

    check_outputs([plot, card, json], [calibrator, *tests])
    kind = check_plot(plot, kind, KINDS)
    paths = read_paths(tests)
    loaded = load_sets(list(paths.values()), labels, probabilities)
    sets = dict(zip(paths, loaded, strict=True))
    evaluation = evaluate(
        calibrator,
        sets,
        metrics=select_names(metrics) or "all",
        intervals=intervals,
        resamples=resamples,
        seed=seed,
        any_classifier=any_classifier,
        allow_overlap=allow_overlap,
        adapt=read_adapt(adapt),
        costs=read_costs(cost_error, cost_review, cost_gain),
        require=require or (),
    )
    show(OUT, render_evaluation, evaluation)
    if json:
        evaluation.to_json(json)
    if card:
        from rightly.deployment.model_card import make_card
        from rightly.files import write_atomically

        text = make_card(
            calibrator, sets, any_classifier=any_classifier, allow_overlap=allow_overlap
        )
        write_atomically(card, lambda part: part.write_text(text, encoding="utf-8"))
        print_line(f"the model card is in {card}")
    if plot:
        from rightly.reporting.figures import save

        save(evaluation.plot(kind, seed=seed, **select_given(resamples=resamples)), plot)
        print_line(f"the figure is in {plot}")
    for text in evaluation.missed:
        print_line(f"missed: {text}", ERR, style="red")
    return ExitCode.REQUIREMENT_MISSED if evaluation.missed else ExitCode.DONE


def _evaluate_pairs(
    pairs: Path,
    metrics: str | None,
    intervals: bool,
    resamples: int | None,
    seed: int,
    plot: Path | None,
    kind: str | None,
    json: Path | None,
) -> None:
    """Measure confidences that came from elsewhere, without logits."""
    from rightly.evaluation.evaluate import evaluate_pairs, read_pairs
    from rightly.reporting import formatting
    from rightly.reporting.layout import Cell, Column, Layout
    from rightly.reporting.terminal import render_layout, show

    kind = check_plot(plot, kind, PAIR_KINDS)
    confidence, correct = read_pairs(pairs)
    results = evaluate_pairs(
        confidence,
        correct,
        metrics=select_names(metrics) or "all",
        intervals=intervals,
        resamples=resamples,
        seed=seed,
        dataset=pairs.stem,
    )
    names = [row.metric for row in results]
    notes = [f"Values {formatting.format_units(names)}; ↓ lower is better, ↑ higher is better."]
    if intervals:
        notes.append(formatting.describe_interval())
    print_line(
        f"{pairs}: {len(correct):,} samples, accuracy {formatting.format_percent(correct.mean())} "
        f"%, mean confidence {formatting.format_percent(confidence.mean())} %"
    )
    cells = [Cell(formatting.format_value(row), formatting.format_interval(row)) for row in results]
    headings = [formatting.format_heading(name) for name in names]
    show(OUT, render_layout, Layout("metric", headings, [Column("value", cells)], notes=notes))
    if json:
        rows = [
            {name: None if one != one else one for name, one in zip(fields, values, strict=True)}
            for fields in [("metric", "value", "low", "high")]
            for values in ((row.metric, row.value, row.low, row.high) for row in results)
        ]
        write_json(json, "rightly-measures", {"samples": len(correct), "rows": rows})
    if plot:
        from rightly.reporting.figures import save

        save(_draw_pairs(kind, confidence, correct, pairs.stem), plot)
        print_line(f"the figure is in {plot}")


def _draw_pairs(kind: str, confidence: "np.ndarray", correct: "np.ndarray", title: str) -> Any:
    from rightly.metrics import curves
    from rightly.reporting import figures

    pair = (confidence, correct)
    if kind == "roc":
        return figures.draw_roc({title: curves.roc(*pair)})
    if kind == "risk-coverage":
        return figures.draw_risk_coverage({title: curves.risk_coverage(*pair)})
    kinds: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
        "reliability": (figures.draw_reliability, curves.reliability),
        "smooth": (figures.draw_smooth_reliability, curves.smooth_reliability),
        "histogram": (figures.draw_histogram, curves.histogram),
        "ks": (figures.draw_ks, curves.ks_curve),
    }
    draw, compute = kinds[kind]
    ax = draw(compute(*pair), title=title)
    figures.finish(ax.figure)
    return ax
