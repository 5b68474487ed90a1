"""`rightly plot`: a figure."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rightly.checks import check_choice
from rightly.cli.console import print_line, show_status
from rightly.cli.inputs import (
    AllowOverlap,
    AnyClassifier,
    BootstrapSeed,
    FitSeed,
    LabelFiles,
    OnIfAny,
    Probabilities,
    Views,
    read_data_sets,
    read_paths,
    split_names,
)
from rightly.reporting.figures import DESCRIPTIONS

if TYPE_CHECKING:
    from rightly.calibrators import Calibrator
    from rightly.predictions import Predictions
    from rightly.tensor_shapes import Labels

EXAMPLE = "rightly plot roc --calibrator c.safetensors --on a.npz --out roc.pdf"
FITTED_HERE = ("views", "budget")  # figures that fit one method on --cal; others draw any number
KINDS = {name: text for name, text in DESCRIPTIONS.items() if name != "values"}  # of results


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
    labels: LabelFiles = None,
    probabilities: Probabilities = False,
    bins: Annotated[int, typer.Option(help="Of a reliability diagram.")] = 15,
    metric: Annotated[str, typer.Option(help="Of the figure of views.")] = "brier",
    resamples: Annotated[int, typer.Option(help="For intervals and bands.")] = 1000,
    fit_seed: FitSeed = 0,
    bootstrap_seed: BootstrapSeed = 0,
    any_classifier: AnyClassifier = False,
    allow_overlap: AllowOverlap = False,
) -> None:
    """Draw a figure as .pdf, .svg or .png."""
    check_choice("KIND", kind, KINDS)
    from rightly.calibrators import check_calibrator
    from rightly.evaluation.data_sets import load_test_sets
    from rightly.evaluation.leakage import CalibrationData, check_test_sets
    from rightly.reporting.figures import (
        FORMATS,
        FigureData,
        draw_figure,
        include_uncalibrated,
        save,
    )

    if out.suffix.lower() not in FORMATS:
        raise ValueError(f"--out must end in {', '.join(FORMATS)}, got {out.name!r}")
    if not on:
        raise ValueError(f"plot {kind} needs a test set: add --on FILE")
    names, is_fitted_here = split_names(methods), kind in FITTED_HERE
    if is_fitted_here and cal is None:
        raise ValueError(f"plot {kind} needs --cal, the predictions to fit on")
    if is_fitted_here and len(names) > 1:
        raise ValueError(f"plot {kind} draws one method, got --methods {methods}")
    paths = read_paths(on)
    files = [*paths.values(), *([] if cal is None else [cal])]
    sets = read_data_sets(files, labels, probabilities, views)
    tests = load_test_sets(dict(zip(paths, sets, strict=False)))
    data = None if cal is None else sets[-1]
    with show_status(f"drawing {kind}"):
        fitted = {} if is_fitted_here else _fit_or_load(names, data, calibrator or [], fit_seed)
        known = [] if data is None else [CalibrationData.of_predictions(data[0])]
        known += [CalibrationData.of_calibrator(check_calibrator(one)) for one in fitted.values()]
        check_test_sets(known, tests, any_classifier, allow_overlap)
        axes = draw_figure(
            kind,
            FigureData(
                tests,
                include_uncalibrated(fitted) if calibrator else fitted,
                data,
                method=names[0] if is_fitted_here and names else "correctness_logistic",
                metric=metric,
                bins=bins,
                resamples=resamples,
                seed=bootstrap_seed,
            ),
        )
    save(axes, out)
    print_line(f"{KINDS[kind]} is in {out}")


def _fit_or_load(
    methods: list[str],
    data: "tuple[Predictions, Labels] | None",
    files: list[Path],
    seed: int,
) -> "dict[str, Calibrator]":
    """Methods fitted on calibration data, then calibrators from files, by name."""
    from rightly.calibrators import CALIBRATORS, load_calibrator
    from rightly.evaluation.measurement import fit_method

    if methods and data is None:
        raise ValueError("--methods needs --cal, the predictions to fit them on")
    if not methods and not files:
        raise ValueError("give --calibrator FILE, or --methods NAMES with --cal FILE")
    fitted: dict[str, Calibrator] = {}
    if data is not None:
        fitted |= {
            CALIBRATORS.find(name).name: fit_method(name, *data, seed=seed) for name in methods
        }
    for path in files:
        loaded = load_calibrator(path)
        title = loaded.title if loaded.title not in fitted else path.stem
        if title in fitted:
            raise ValueError(f"--calibrator needs different names, got {title!r} twice: rename one")
        fitted[title] = loaded
    return fitted


# \b keeps the lines as they are.
run.__doc__ = f"{run.__doc__}\n\n\b\nKinds:\n" + "\n".join(
    f"  {name:14} {text}{' (needs --cal)' if name in FITTED_HERE else ''}"
    for name, text in KINDS.items()
)
