"""Reliability at the steps of a stream, each sample alone and adapted to its step."""

import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rightly.evaluation.adapted_sets import BatchAdapted
from rightly.evaluation.measurement import compute_outcomes
from rightly.metrics import Outcomes
from rightly.reporting.figures.panels import draw_reliability_panel
from rightly.reporting.figures.style import make_grid

if TYPE_CHECKING:
    from rightly.evaluation.adapted_sets import MeasuredCalibrator
    from rightly.evaluation.data_sets import LabelledSet, TestSets

LEAST, MOST = 4, 6  # steps, and columns
WIDTH, HEIGHT = 1.9, 2.1  # inches of a panel
ROWS = ("each sample alone", "adapted to the step")


def draw_steps(
    tests: "TestSets", calibrators: "Mapping[str, MeasuredCalibrator]", bins: int
) -> Any:
    """Test sets one after another, divided where they are few: two rows of diagrams."""
    named = [name for name in calibrators if name != "uncalibrated"]
    if len(named) != 1:
        raise ValueError(
            f"the figure steps draws one calibrator before and after adapting, got "
            f"{', '.join(named) or 'none'}: name one"
        )
    calibrator = calibrators[named[0]]
    steps = list(_divide(tests))
    columns = min(len(steps), MOST)
    grid = make_grid(2 * -(-len(steps) // columns), columns, HEIGHT, WIDTH)
    for ax in grid.flat:
        ax.axis("off")
    for i, (name, one) in enumerate(steps):
        row, column = 2 * (i // columns), i % columns
        for below, outcomes in enumerate(_measure(calibrator, one)):
            ax = grid[row + below, column]
            ax.axis("on")
            draw_reliability_panel(outcomes, ax, "" if below else f"{i + 1}. {name}", bins)
            ax.set(xticks=[0, 0.5, 1], yticks=[0, 0.5, 1], xlabel="confidence" if below else "")
            ax.set_ylabel("" if column else f"accuracy,\n{ROWS[below]}")
    return grid.flat[0]


def _divide(tests: "TestSets") -> "Iterator[tuple[str, LabelledSet]]":
    """Steps in the order of the stream: test sets, or equal parts of each if they are few."""
    parts = -(-LEAST // len(tests)) if len(tests) < LEAST else 1
    for name, (predictions, labels) in tests.items():
        size = -(-len(labels) // parts)
        for start in range(0, len(labels), size):
            rows = slice(start, start + size)
            yield name, (predictions[rows], labels[rows])


def _measure(calibrator: "MeasuredCalibrator", one: "LabelledSet") -> Iterator[Outcomes]:
    """Outcomes before adapting to the samples of a step, and after."""
    predictions, labels = one
    if not isinstance(calibrator, BatchAdapted):
        calibrator = BatchAdapted(calibrator, None)
    seen = calibrator.select_views(predictions)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="the shift estimate of this batch")
        for each in (calibrator.calibrator, calibrator):
            yield compute_outcomes(each, seen, labels, ["brier"])
