"""Results to the trackers of experiments that people use, where they are installed."""

import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rightly.checks import check_choice
from rightly.evaluation.results import average_seeds
from rightly.optional import require

if TYPE_CHECKING:
    from rightly.evaluation.compare import Comparison

RUN_NAME = "rightly compare"
MLFLOW_AT_ONCE = 500  # values; it refuses more than 1,000


def check_tracker(name: str | None) -> None:
    """Refuses a tracker that is unknown or not installed, before anything is computed."""
    if name is None:
        return
    check_choice("track", name, TRACKERS)
    require(name)


def log_comparison(comparison: "Comparison", tracker: str) -> None:
    """Sends values, settings and the whole table to a tracker: its active run, else one of its own.

    A value is called `test set/method/metric`, the ends of its interval `....low` and `....high`.
    """
    check_tracker(tracker)
    TRACKERS[tracker](comparison, _name_values(comparison), _list_settings(comparison))


def _name_values(comparison: "Comparison") -> dict[str, float]:
    named: dict[str, float] = {}
    for (calibrator, dataset, metric), value in average_seeds(comparison.results).items():
        named[_name(dataset, calibrator, metric)] = value
    for row in comparison.results:
        for end, value in (("low", row.low), ("high", row.high)):
            # Not a slash: a local store cannot have a file and a folder of one name.
            named[f"{_name(row.dataset, row.calibrator, row.metric)}.{end}"] = value
    for dataset, accuracy in comparison.accuracy.items():
        named[_name(dataset, "accuracy")] = accuracy
    return {name: value for name, value in named.items() if math.isfinite(value)}


def _name(*parts: str) -> str:
    # MLflow takes these characters only; a slash makes groups in both.
    return "/".join(re.sub(r"[^\w. :-]", "_", part, flags=re.ASCII) for part in parts)


def _list_settings(comparison: "Comparison") -> dict[str, str]:
    from rightly import __version__

    return {
        "rightly": __version__,
        "methods": ", ".join(comparison.methods),
        "test_sets": ", ".join(comparison.datasets),
        "repeats": str(len({row.seed for row in comparison.results})),
        "seed": str(comparison.seed),
        "adapt": str(comparison.adapt),
        "resamples": "" if comparison.resamples is None else str(comparison.resamples),
        "reference": comparison.reference or "",
    }


def _log_to_mlflow(
    comparison: "Comparison", values: Mapping[str, float], settings: Mapping[str, str]
) -> None:
    mlflow = require("mlflow")
    is_own = mlflow.active_run() is None
    if is_own:
        mlflow.start_run(run_name=RUN_NAME)
    status = "FAILED"
    try:
        mlflow.log_params({f"rightly.{name}": value for name, value in settings.items()})
        names = list(values)
        for start in range(0, len(names), MLFLOW_AT_ONCE):
            some = names[start : start + MLFLOW_AT_ONCE]
            mlflow.log_metrics({name: values[name] for name in some})
        mlflow.log_text(comparison.to_json(), "rightly/comparison.json")
        mlflow.log_text(comparison.to_markdown(), "rightly/comparison.md")
        status = "FINISHED"
    finally:
        if is_own:
            mlflow.end_run(status)


def _log_to_wandb(
    comparison: "Comparison", values: Mapping[str, float], settings: Mapping[str, str]
) -> None:
    wandb = require("wandb")
    is_own = wandb.run is None
    run = wandb.init(project="rightly", name=RUN_NAME) if is_own else wandb.run
    code = 1
    try:
        run.config.update({"rightly": dict(settings)}, allow_val_change=True)
        rows = [list(record.values()) for record in comparison.to_records()]
        columns = list(comparison.to_records()[0])
        table = wandb.Table(columns=columns, data=rows)
        run.log({**values, "rightly/comparison": table})
        code = 0
    finally:
        if is_own:
            run.finish(exit_code=code)


Tracker = Callable[["Comparison", Mapping[str, float], Mapping[str, str]], Any]
TRACKERS: Mapping[str, Tracker] = {"mlflow": _log_to_mlflow, "wandb": _log_to_wandb}
