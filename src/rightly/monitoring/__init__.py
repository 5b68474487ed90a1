"""A calibrated classifier at work: its stream of predictions, and alarms when that changes.

The modules load when a name is first used, and torch when one is given a calibrator.
"""

from typing import TYPE_CHECKING

from rightly.optional import lazy_names

if TYPE_CHECKING:
    from rightly.monitoring.monitor import DriftReport as DriftReport
    from rightly.monitoring.monitor import monitor_log as monitor_log
    from rightly.monitoring.stream import Stream as Stream

__all__, __getattr__, __dir__ = lazy_names(
    __name__, {"monitor": ("DriftReport", "monitor_log"), "stream": ("Stream",)}
)
