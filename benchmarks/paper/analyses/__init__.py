"""The paper's analyses and one of ours, each ending in tables and a figure."""

from benchmarks.paper.analyses import (
    cost,
    loss_bounds,
    loss_surface,
    losses,
    lowered_confidence,
    meta_sets,
    methods,
    top_k,
    views,
)
from benchmarks.paper.analyses.analysis import Analysis as Analysis
from benchmarks.paper.analyses.analysis import Context as Context
from benchmarks.paper.analyses.analysis import Table as Table

ANALYSES: dict[str, Analysis] = {
    "methods": methods.ANALYSIS,
    "meta_sets": meta_sets.ANALYSIS,
    "views": views.ANALYSIS,
    "top_k": top_k.ANALYSIS,
    "loss_surface": loss_surface.ANALYSIS,
    "loss_bounds": loss_bounds.ANALYSIS,
    "cost": cost.ANALYSIS,
    "losses": losses.ANALYSIS,
    "lowered_confidence": lowered_confidence.ANALYSIS,
}
