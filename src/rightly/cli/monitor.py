"""`rightly monitor`: drift of logged predictions, without labels."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rightly.cli.console import ERR, OUT, ExitCode, print_line, write_json
from rightly.cli.options import CalibratorFile, Import, Json, Plot, check_outputs, check_plot
from rightly.progress import track

if TYPE_CHECKING:
    from rightly.monitoring import DriftReport
    from rightly.monitoring.drift import DriftPlan
    from rightly.reporting.figures.monitoring import AccuracyOverTime
    from rightly.reporting.layout import Layout

EXAMPLE = "rightly monitor cal.safetensors log.jsonl"
FUNCTIONS = ("rightly.monitoring:monitor_log",)


def run(
    calibrator: CalibratorFile,
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG",
            help="Log that predict or serve wrote: .csv, .jsonl, .parquet or a folder.",
        ),
    ],
    modules: Import = None,
    samples_per_day: Annotated[
        float | None,
        typer.Option(
            help="Predictions per day: blocks are an hour's worth of rows.",
            show_default="blocks by the log's times",
        ),
    ] = None,
    false_alarms_per_year: Annotated[
        float, typer.Option(help="Expected false alarms per year.")
    ] = 1.0,
    window: Annotated[
        int | None,
        typer.Option(
            help="Rows per line of the table.",
            show_default="a twentieth of the log, at least 512",
        ),
    ] = None,
    plot: Plot = None,
    json: Json = None,
) -> int:
    """Watch a log for drift, without labels.

    Ends with 4 after an alarm. No alarm does not mean that all is well: some errors keep the
    confidence high, so label a few predictions now and then.
    """
    from rightly.calibrators import load_calibrator
    from rightly.monitoring import monitor_log
    from rightly.reporting.terminal import render_layout, show

    check_outputs([plot, json], [calibrator, log])
    check_plot(plot, None, ["accuracy"])
    with track(True, "simulating years without drift"):
        monitored = monitor_log(
            log,
            load_calibrator(calibrator),
            samples_per_day=samples_per_day,
            false_alarms_per_year=false_alarms_per_year,
            window=window,
        )
    _print_status(monitored)
    show(OUT, render_layout, _lay_out(monitored))
    if json:
        write_json(json, "rightly-monitor", monitored.to_dict())
    if plot:
        from rightly.reporting.figures import save
        from rightly.reporting.figures.monitoring import draw_accuracy_over_time

        save(draw_accuracy_over_time(_collect_points(monitored)), plot)
        print_line(f"the figure is in {plot}")
    return ExitCode.DRIFT_ALARM if monitored.alarms else ExitCode.DONE


def _print_status(monitored: "DriftReport") -> None:
    from rightly.monitoring.drift import describe_time

    for alarm in monitored.alarms:
        time = describe_time(alarm.time)
        more = f"; {alarm.count} alarms in all" if alarm.count > 1 else ""
        print_line(
            f"ALARM, {alarm.name}: {alarm.what}, noticed at row {alarm.row}"
            f"{f' ({time} UTC)' if time else ''}, since about row {alarm.since_row}{more}",
            style="red",
        )
    if not monitored.blocks:
        print_line(
            f"nothing tested yet: {monitored.rows} rows do not fill a block of at least "
            f"{_describe_block(monitored.plan)}"
        )
    elif not monitored.alarms:
        print_line(f"no alarm in {monitored.rows} rows")
    if monitored.decision is not None:
        print_line(f"decision: {monitored.decision.describe()}")
    rate = monitored.samples_per_day
    print_line(
        f"watched: {', '.join(monitored.watched)} and class prior, in {monitored.blocks} blocks of "
        f"at least {_describe_block(monitored.plan)}"
        f"{'' if rate is None else f', {rate:.0f} samples per day'}, with "
        f"{monitored.false_alarms_per_year:g} false alarms per year",
        ERR,
        style="dim",
    )


def _describe_block(plan: "DriftPlan") -> str:
    return f"{plan.block} samples" + (f" and {plan.seconds / 3600:g} h" if plan.seconds else "")


def _lay_out(monitored: "DriftReport") -> "Layout":
    from rightly.monitoring.drift import describe_time
    from rightly.reporting.layout import Cell, Column, Layout

    windows = monitored.windows
    expected = [window.expected_accuracy for window in windows]
    columns = {
        "samples": [str(window.rows) for window in windows],
        "mean confidence": [f"{window.confidence:.3f}" for window in windows],
        "shift estimate": [f"{window.shift_estimate:+.2f}" for window in windows],
        "expected accuracy": [
            "" if one is None else f"{one.value:.3f} ({one.low:.3f} to {one.high:.3f})"
            for one in expected
        ],
    }
    if any(window.accuracy is not None for window in windows):
        columns["accuracy"] = [
            "" if window.accuracy is None else f"{window.accuracy:.3f}" for window in windows
        ]
    return Layout(
        "from row",
        [f"{window.first} {describe_time(window.time)}".rstrip() for window in windows],
        [Column(heading, [Cell(text) for text in texts]) for heading, texts in columns.items()],
    )


def _collect_points(monitored: "DriftReport") -> "AccuracyOverTime":
    import numpy as np

    from rightly.reporting.figures.monitoring import AccuracyOverTime

    def collect(*values: float | None) -> np.ndarray:
        return np.array([np.nan if value is None else value for value in values], float)

    windows = monitored.windows
    expected = [window.expected_accuracy for window in windows]
    return AccuracyOverTime(
        collect(*(window.first + window.rows / 2 for window in windows)),
        collect(*(window.confidence for window in windows)),
        collect(*(one and one.value for one in expected)),
        collect(*(one and one.low for one in expected)),
        collect(*(one and one.high for one in expected)),
        collect(*(window.accuracy for window in windows)),
        [(alarm.row, alarm.name) for alarm in monitored.alarms],
    )
