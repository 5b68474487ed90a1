"""Whether confidence tells right from wrong."""

from collections.abc import Mapping
from typing import Any

from rightly.metrics.curves import RiskCoverage, Roc
from rightly.reporting.figures.style import draw_diagonal, line_styles, make_axes, use_style
from rightly.reporting.formatting import format_percent


def draw_roc(data: Mapping[str, Roc], ax: Any | None = None, title: str = "") -> Any:
    """Right samples accepted against wrong ones accepted, a line for each name."""
    with use_style():
        ax = make_axes(ax, height=3.25)
        draw_diagonal(ax)
        for (name, roc), style in zip(data.items(), line_styles(), strict=False):
            label = f"{name}  {format_percent(roc.auroc)}"
            every = max(1, len(roc.right) // 6)
            ax.plot(roc.wrong, roc.right, label=label, markevery=every, **style)
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", title=title)
        ax.set(xlabel="wrong samples accepted", ylabel="right samples accepted")
        ax.legend(loc="lower right", title="AUROC, %", title_fontsize=8, alignment="right")
    return ax


def draw_risk_coverage(
    data: Mapping[str, RiskCoverage], ax: Any | None = None, title: str = ""
) -> Any:
    """Error rate among accepted samples against the share accepted, a line for each name."""
    with use_style():
        ax = make_axes(ax)
        for (name, curve), style in zip(data.items(), line_styles(), strict=False):
            # Among the first few samples the rate jumps between 0 and 1, which says nothing.
            kept = curve.coverage >= 0.02
            every = max(1, int(kept.sum()) // 6)
            ax.plot(
                100 * curve.coverage[kept],
                100 * curve.risk[kept],
                label=name,
                markevery=every,
                **style,
            )
        ax.set(xlim=(0, 100), ylim=(0, None), title=title)
        ax.set(xlabel="% of samples accepted", ylabel="% of them wrong")
        ax.legend(loc="upper left")
    return ax
