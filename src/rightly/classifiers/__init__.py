"""Classifiers from anywhere: libraries, files, or the user's own code.

The modules load when a name is first used: `Preprocessing` and `MODEL_SPECS` need no torch.
"""

from typing import TYPE_CHECKING

from rightly.optional import lazy_names

if TYPE_CHECKING:
    from rightly.classifiers.classifier import Classifier as Classifier
    from rightly.classifiers.classifier import open_model as open_model
    from rightly.classifiers.preprocessing import Preprocessing as Preprocessing
    from rightly.classifiers.sources import MODEL_SPECS as MODEL_SPECS

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "classifier": ("Classifier", "open_model"),
        "preprocessing": ("Preprocessing",),
        "sources": ("MODEL_SPECS",),
    },
)
