"""From a classifier and images to stored predictions: the only slow step, done once.

The modules load when a name is first used.
"""

from typing import TYPE_CHECKING

from rightly.optional import lazy_names

if TYPE_CHECKING:
    from rightly.collection.decoding import CollectionLog as CollectionLog
    from rightly.collection.pipeline import collect as collect
    from rightly.collection.pipeline import collect_into as collect_into
    from rightly.collection.pipeline import collect_to_folder as collect_to_folder
    from rightly.collection.plan import DEFAULT_VIEWS as DEFAULT_VIEWS
    from rightly.collection.plan import Plan as Plan

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "decoding": ("CollectionLog",),
        "pipeline": ("collect", "collect_into", "collect_to_folder"),
        "plan": ("DEFAULT_VIEWS", "Plan"),
    },
)
