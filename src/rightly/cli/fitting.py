"""The command that fits one calibrator for use: fit."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from rightly.calibrators import CALIBRATORS
from rightly.cli.calibrating import labelled
from rightly.cli.choosing import chosen_method
from rightly.cli.consoles import ERR, OUT
from rightly.fitting import fit
from rightly.predictions import source_of


def add_commands(commands: Any) -> None:
    """The command and its arguments."""
    add = commands.add_parser("fit", help="fit one calibrator and save it")
    add.add_argument(
        "cal", help="calibration predictions with labels (.npz, or a folder that collect wrote)"
    )
    add.add_argument("--method", default="rightly", help="see: rightly methods; or auto")
    add.add_argument("--views", help="use only these views, in this order")
    add.add_argument("--seed", type=int, default=0)
    accept = add.add_mutually_exclusive_group()
    accept.add_argument("--threshold", type=float, help="accept predictions at least this sure")
    accept.add_argument(
        "--accuracy",
        type=float,
        help="accept from the lowest threshold whose accepted calibration samples reach this",
    )
    add.add_argument(
        "--budget",
        type=float,
        help="mean forward passes per image: views are looked at only where they pay",
    )
    add.add_argument(
        "--expected_shift",
        type=float,
        help="how much shift to expect, 0 to 1 (default 0.5; for rightly and auto)",
    )
    add.add_argument(
        "--neighbours",
        type=int,
        help="calibration samples to keep, to see what a sample's features lie among (for rightly)",
    )
    add.add_argument("--out", required=True, metavar="FILE", help="where to write (.safetensors)")
    add.set_defaults(run=_fit)


def _fit(chosen: argparse.Namespace) -> None:
    predictions, labels = labelled(chosen.cal, chosen.views)
    asked = {"expected_shift": chosen.expected_shift, "neighbours": chosen.neighbours}
    if chosen.method != "auto":
        for name, value in asked.items():
            if value is not None and not CALIBRATORS.find(chosen.method).takes(name):
                raise ValueError(f"--{name} is for --method rightly, got --method {chosen.method}")
    chosen.method = chosen_method(chosen.method, predictions, labels, chosen.expected_shift)
    asked["seed"] = chosen.seed
    arguments: dict[str, Any] = {
        name: value
        for name, value in asked.items()
        if value is not None and CALIBRATORS.find(chosen.method).takes(name)
    }
    with ERR.status(f"fitting {chosen.method} on {len(predictions)} predictions"):
        fitted = fit(
            chosen.method,
            predictions,
            labels,
            threshold=chosen.threshold,
            accuracy=chosen.accuracy,
            source=source_of(chosen.cal),
            budget=chosen.budget,
            choose_views=chosen.views is None,
            **arguments,
        )
    fitted.save(chosen.out)
    plain = int(predictions.unshifted().sum())
    shifted = len(predictions) - plain if fitted.calibrator.uses_shifted_rows else 0
    OUT.print(
        f"{chosen.method}, fitted on {plain} predictions of {predictions.class_count} classes"
        f"{f' and {shifted} of shifted images' if shifted else ''}, is in {chosen.out}",
        soft_wrap=True,
    )
    _tell_use(fitted.record, fitted.view_names)


def _tell_use(record: Mapping[str, Any], views: Sequence[str]) -> None:
    """When the calibrator accepts, and what its views cost."""
    chosen = record["threshold"]
    if chosen is not None:
        told = f"accepts confidence from {chosen['threshold']:.4f}: "
        if chosen["accepted"]:
            told += (
                f"{chosen['coverage']:.1%} of the calibration samples, {chosen['accuracy']:.2%} "
                f"right (95 % interval {chosen['accuracy_low']:.2%} to "
                f"{chosen['accuracy_high']:.2%})"
            )
        else:
            told += "none of the calibration samples"
        OUT.print(told, soft_wrap=True)
    if record["passes"] > 1:
        OUT.print(
            f"{record['passes']:.2f} forward passes per image, over the views {', '.join(views)}",
            soft_wrap=True,
        )
