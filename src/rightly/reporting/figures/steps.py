"""Reliability at the steps of a stream, each sample alone and adapted to its step."""

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rightly.evaluation.measurement import compute_outcomes
from rightly.metrics import Outcomes
from rightly.reporting.figures.panels import draw_reliability_panel
from rightly.reporting.figures.style import make_grid

if TYPE_CHECKING:
    from rightly.calibrators import Calibrator
    from rightly.evaluation.data_sets import LabelledSet, TestSets
    from rightly.reporting.figures.kinds import FigureData

LEAST, MOST = 4, 6  # steps, and columns
WIDTH, HEIGHT = 1.9, 2.1  # inches of a panel
ROWS = ("each sample alone", "adapted to the step")


def draw_steps(data: "FigureData") -> Any:
    """Test sets one after another, divided where they are few: two rows of diagrams."""
    named = {
        name: one
        for name, one in data.calibrators.items()
        if one is not None and name != "uncalibrated"
    }
    if len(named) != 1:
        raise ValueError(
            f"the figure steps draws one calibrator before and after adapting, got "
            f"{', '.join(named) or 'none'}: name one"
        )
    (calibrator,) = named.values()
    steps = list(_divide(data.tests))
    columns = min(len(steps), MOST)
    grid = make_grid(2 * -(-len(steps) // columns), columns, HEIGHT, WIDTH)
    for ax in grid.flat:
        ax.axis("off")
    for i, (name, one) in enumerate(steps):
        row, column = 2 * (i // columns), i % columns
        for below, outcomes in enumerate(_measure(calibrator, one, data.adapt)):
            ax = grid[row + below, column]
            ax.axis("on")
            draw_reliability_panel(outcomes, ax, "" if below else f"{i + 1}. {name}", data.bins)
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


def _measure(calibrator: "Calibrator", one: "LabelledSet", adapt: bool | int) -> Iterator[Outcomes]:
    """Outcomes before adapting to the samples of a step, and after."""
    predictions, labels = one
    seen = calibrator.select_views(predictions)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="the shift estimate of this batch")
        for each in (False, adapt or True):
            yield compute_outcomes(calibrator, seen, labels, ["brier"], each)
