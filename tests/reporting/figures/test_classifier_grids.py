"""Figures over classifiers: which methods a bar joins, and panels that are named at the edges."""

import numpy as np

from rightly.metrics import Outcomes
from rightly.reporting.figures.classifier_grids import (
    draw_critical_difference,
    draw_curve_grid,
    draw_reliability_grid,
    find_groups,
)


def make_outcomes(seed):
    rng = np.random.default_rng(seed)
    confidence = rng.random(60)
    return Outcomes(confidence, rng.random(60) < confidence)


def test_bars_join_what_lies_within_the_critical_difference():
    assert find_groups([1.0, 1.5, 2.5, 4.0], 1.0) == [(0, 1), (1, 2)]
    assert find_groups([1.0, 2.0, 3.0], 5.0) == [(0, 2)]
    assert find_groups([1.0, 3.0], 1.0) == []


def test_the_best_rank_is_on_top():
    ax = draw_critical_difference({"worse": 2.6, "best": 1.1, "middle": 2.3}, 0.5)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["best", "middle", "worse"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]
    assert [text.get_text() for text in ax.texts] == ["CD 0.50"]


def test_rows_and_columns_are_named_at_the_edges():
    keys = [(one, name) for one in ("resnet", "vgg") for name in ("a", "b", "c")]
    single = draw_reliability_grid({key: make_outcomes(i) for i, key in enumerate(keys)}, "blur")
    lines = draw_curve_grid("roc", {key: {"x": make_outcomes(0)} for key in keys})
    for ax in (single, lines):
        axes = ax.figure.axes
        assert [one.get_title() for one in axes] == ["a", "b", "c", "", "", ""]
        assert [one.get_ylabel().split("\n")[0] for one in axes[::3]] == ["resnet", "vgg"]
        assert not axes[1].get_ylabel() and not axes[0].get_xlabel() and axes[5].get_xlabel()
    assert single.figure._suptitle.get_text() == "blur"
    assert [text.get_text() for text in lines.figure.legends[0].texts] == ["x"]
    assert all(one.get_legend() is None for one in lines.figure.axes)
