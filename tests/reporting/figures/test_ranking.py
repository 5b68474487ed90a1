"""ROC and risk-coverage curves draw the numbers they are given."""

import numpy as np

from rightly.metrics import curves
from rightly.reporting import figures
from tests.reporting.figures.test_calibration import line, make_pair


def test_roc_curves_are_named_with_their_area():
    roc = curves.roc(*make_pair())
    ax = figures.draw_roc({"one": roc, "two": roc})
    np.testing.assert_allclose(line(ax, 1), [roc.wrong, roc.right])
    assert f"{100 * roc.auroc:.1f}" in ax.get_legend().get_texts()[0].get_text()


def test_risk_is_drawn_where_enough_is_accepted():
    risk = curves.risk_coverage(*make_pair())
    ax = figures.draw_risk_coverage({"one": risk})
    kept = risk.coverage >= 0.02
    np.testing.assert_allclose(line(ax, 0), [100 * risk.coverage[kept], 100 * risk.risk[kept]])
