"""From a classifier and images to stored predictions: the only slow step, done once.

The modules load when a name is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rightly.collection.decoding import CollectionLog as CollectionLog
    from rightly.collection.pipeline import collect as collect
    from rightly.collection.pipeline import collect_into as collect_into
    from rightly.collection.plan import DEFAULT_VIEWS as DEFAULT_VIEWS
    from rightly.collection.plan import Plan as Plan

_HOMES = {
    "CollectionLog": "decoding",
    "collect": "pipeline",
    "collect_into": "pipeline",
    "DEFAULT_VIEWS": "plan",
    "Plan": "plan",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
