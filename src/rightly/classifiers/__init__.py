"""Classifiers from anywhere: libraries, files, or the user's own code.

The modules load when a name is first used: `Preprocessing` and `MODEL_SPECS` need no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rightly.classifiers.classifier import Classifier as Classifier
    from rightly.classifiers.classifier import open_model as open_model
    from rightly.classifiers.preprocessing import Preprocessing as Preprocessing
    from rightly.classifiers.sources import MODEL_SPECS as MODEL_SPECS

_HOMES = {
    "Classifier": "classifier",
    "Preprocessing": "preprocessing",
    "open_model": "classifier",
    "MODEL_SPECS": "sources",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
