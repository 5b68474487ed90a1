"""Results for people: comparisons, evaluations, rankings and reports, in every form they take.

Loaded when they are used: `formatting`, `layout`, `markup` and `terminal` need no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rightly.reporting.comparison import Comparison as Comparison
    from rightly.reporting.comparison import Ranking as Ranking
    from rightly.reporting.comparison import compare as compare
    from rightly.reporting.comparison import rank as rank
    from rightly.reporting.evaluation_table import Evaluation as Evaluation
    from rightly.reporting.evaluation_table import evaluate as evaluate
    from rightly.reporting.html_report import Report as Report
    from rightly.reporting.html_report import report as report

_PLACES = {
    "comparison": ("Comparison", "Ranking", "compare", "rank"),
    "evaluation_table": ("Evaluation", "evaluate"),
    "html_report": ("Report", "report"),
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_MODULES)
