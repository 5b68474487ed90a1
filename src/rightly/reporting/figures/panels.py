"""Panels of figures: what one pair of axes shows of outcomes."""

from collections.abc import Mapping
from typing import Any

from rightly.metrics import Outcomes, curves
from rightly.reporting.formatting import format_percent


def draw_reliability_panel(one: Outcomes, ax: Any, title: str = "", bins: int = 15) -> None:
    from rightly.reporting.figures.calibration import draw_reliability

    of_bins = curves.reliability(one.confidence, one.correct, bins)
    draw_reliability(of_bins, ax, title, f"ECE {format_percent(of_bins.ece)} %")


def draw_roc_panel(outcomes: Mapping[str, Outcomes], ax: Any, title: str = "") -> None:
    from rightly.reporting.figures.ranking import draw_roc

    lines = {name: curves.roc(one.confidence, one.correct) for name, one in outcomes.items()}
    draw_roc(lines, ax, title)


def draw_risk_coverage_panel(outcomes: Mapping[str, Outcomes], ax: Any, title: str = "") -> None:
    from rightly.reporting.figures.ranking import draw_risk_coverage

    lines = {
        name: curves.risk_coverage(one.confidence, one.correct) for name, one in outcomes.items()
    }
    draw_risk_coverage(lines, ax, title)
