"""`rightly plot`: a figure."""

from pathlib import Path
from typing import Annotated

import typer

from rightly.cli.console import print_line, show_status
from rightly.cli.inputs import BootstrapSeed, FitSeed, OnIfAny, Views
from rightly.registry import did_you_mean

EXAMPLE = "rightly plot roc --calibrator c.safetensors --on a.npz --out roc.pdf"
# What each figure shows. Those of views fit one method on --cal, the others draw any number.
KINDS = {
    "reliability": "accuracy against confidence in bins, with intervals",
    "smooth": "accuracy as a smooth function of confidence, with a band",
    "roc": "right samples accepted against wrong ones accepted",
    "risk-coverage": "error rate among accepted samples against their share",
    "histogram": "confidence of right and of wrong samples",
    "ks": "cumulative confidence and accuracy, whose largest distance is KS",
    "temperature": "temperature against uncalibrated confidence",
    "views": "what each view changes, with paired intervals (needs --cal)",
    "budget": "brier, auroc and ece against forward passes (needs --cal)",
}


def run(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="What to draw, see above.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Ends in .pdf, .svg or .png.")],
    calibrator: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Saved; repeatable.")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="Names joined by commas, to be fitted on --cal.")
    ] = None,
    cal: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Calibration predictions with labels.")
    ] = None,
    on: OnIfAny = None,
    views: Views = None,
    bins: Annotated[int, typer.Option(help="Of a reliability diagram.")] = 15,
    metric: Annotated[str, typer.Option(help="Of the figure of views.")] = "brier",
    resamples: Annotated[int, typer.Option(help="For intervals and bands.")] = 1000,
    fit_seed: FitSeed = 0,
    bootstrap_seed: BootstrapSeed = 0,
) -> None:
    """Draw a figure as .pdf, .svg or .png."""
    if kind not in KINDS:
        close = did_you_mean(kind, KINDS)
        raise ValueError(f"KIND must be one of {', '.join(KINDS)}, got {kind!r}{close}")
    from rightly.cli._legacy_plotting import FigureOptions, draw
    from rightly.reporting.figures import FORMATS, save

    if out.suffix.lower() not in FORMATS:
        raise ValueError(f"--out must end in {', '.join(FORMATS)}, got {out.name!r}")
    options = FigureOptions(
        kind,
        calibrator or [],
        methods or "",
        cal,
        on or [],
        views,
        bins,
        metric,
        resamples,
        fit_seed,
        bootstrap_seed,
    )
    with show_status(f"drawing {kind}"):
        axes = draw(options)
    save(axes, out)
    print_line(f"{KINDS[kind].removesuffix(' (needs --cal)')} is in {out}")


# \b keeps the lines as they are.
run.__doc__ = f"{run.__doc__}\n\n\b\nKinds:\n" + "\n".join(
    f"  {name:14} {text}" for name, text in KINDS.items()
)
