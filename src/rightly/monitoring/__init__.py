"""A calibrated classifier at work: its stream of predictions, and alarms when that changes.

The modules load when a name is first used: `false_alarms` and `sequential_test` know NumPy only.
"""

from typing import TYPE_CHECKING

from rightly.optional import lazy_names

if TYPE_CHECKING:
    from rightly.monitoring.monitored_log import Monitored as Monitored
    from rightly.monitoring.monitored_log import monitor_log as monitor_log
    from rightly.monitoring.stream import Stream as Stream

__all__, __getattr__, __dir__ = lazy_names(
    __name__, {"monitored_log": ("Monitored", "monitor_log"), "stream": ("Stream",)}
)
