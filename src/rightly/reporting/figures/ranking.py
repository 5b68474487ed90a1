"""Whether confidence tells right from wrong."""

from collections.abc import Mapping
from typing import Any

from rightly.metrics.curves import RiskCoverage, Roc
from rightly.reporting.figures.style import axes, diagonal, looks, styled


def correctness_roc(data: Mapping[str, Roc], ax: Any | None = None, title: str = "") -> Any:
    """Right samples accepted against wrong ones accepted, a line for each name."""
    with styled():
        ax = axes(ax, height=3.25)
        diagonal(ax)
        for (name, roc), look in zip(data.items(), looks(), strict=False):
            label = f"{name}  {100 * roc.auroc:.1f}"
            every = max(1, len(roc.right) // 6)
            ax.plot(roc.wrong, roc.right, label=label, markevery=every, **look)
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", title=title)
        ax.set(xlabel="wrong samples accepted", ylabel="right samples accepted")
        ax.legend(loc="lower right", title="AUROC, %", title_fontsize=8, alignment="right")
    return ax


def risk_coverage_curves(
    data: Mapping[str, RiskCoverage], ax: Any | None = None, title: str = ""
) -> Any:
    """Error rate among accepted samples against the share accepted, a line for each name."""
    with styled():
        ax = axes(ax)
        for (name, curve), look in zip(data.items(), looks(), strict=False):
            # Among the first few samples the rate jumps between 0 and 1, which says nothing.
            kept = curve.coverage >= 0.02
            every = max(1, int(kept.sum()) // 6)
            ax.plot(
                100 * curve.coverage[kept],
                100 * curve.risk[kept],
                label=name,
                markevery=every,
                **look,
            )
        ax.set(xlim=(0, 100), ylim=(0, None), title=title)
        ax.set(xlabel="% of samples accepted", ylabel="% of them wrong")
        ax.legend(loc="upper left")
    return ax
