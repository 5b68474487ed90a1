"""Results for people: tables, figures and reports.

Loaded when they are used: `formatting`, `layout`, `markup` and `terminal` need no torch.
"""

from typing import TYPE_CHECKING

from rightly.optional import lazy_names

if TYPE_CHECKING:
    from rightly.reporting.html_report import Report as Report
    from rightly.reporting.html_report import report as report

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "html_report": ("Report", "report"),
    },
)
