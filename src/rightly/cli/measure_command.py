"""`rightly measure`: metrics of confidences that came from elsewhere."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rightly.checks import check_choice
from rightly.cli.console import OUT, print_line, write_json
from rightly.cli.inputs import (
    Intervals,
    Json,
    Resamples,
    Seed,
    split_names,
)

if TYPE_CHECKING:
    import numpy as np

EXAMPLE = "rightly measure pairs.csv --plot reliability.pdf"
KINDS = ("reliability", "smooth", "histogram", "ks", "roc", "risk-coverage")


def run(
    pairs: Annotated[
        Path,
        typer.Argument(metavar="PAIRS", help="A .csv file with the columns confidence, correct."),
    ],
    metrics: Annotated[
        str | None, typer.Option(help="all, or names joined by commas.", show_default="all")
    ] = None,
    intervals: Intervals = True,
    resamples: Resamples = None,
    seed: Seed = 0,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw it: .pdf, .svg or .png.")
    ] = None,
    kind: Annotated[str, typer.Option(help=f"What to draw: {', '.join(KINDS)}.")] = "reliability",
    json: Json = None,
) -> None:
    """Measure confidences that came from elsewhere, without logits."""
    from rightly.evaluation.evaluate import evaluate_pairs, read_pairs
    from rightly.reporting import formatting
    from rightly.reporting.layout import Cell, Column, Layout
    from rightly.reporting.terminal import render_layout, show

    check_choice("--kind", kind, KINDS)
    chosen = "all" if metrics in (None, "all") else split_names(metrics)
    confidence, correct = read_pairs(pairs)
    results = evaluate_pairs(
        confidence,
        correct,
        metrics=chosen,
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
        from rightly.reporting.figures import FORMATS, save

        if plot.suffix.lower() not in FORMATS:
            raise ValueError(f"--plot must end in {', '.join(FORMATS)}, got {plot.name!r}")
        save(_draw(kind, confidence, correct, pairs.stem), plot)
        print_line(f"the figure is in {plot}")


def _draw(kind: str, confidence: "np.ndarray", correct: "np.ndarray", title: str) -> Any:
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
