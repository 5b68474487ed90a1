"""Raw outputs of one classifier on n samples, and the files they are kept in.

The modules load when a name is first used: readers of files run where there is no torch.
"""

from typing import TYPE_CHECKING

from rightly.optional import lazy_names

if TYPE_CHECKING:
    from rightly.predictions.concatenation import concatenate as concatenate
    from rightly.predictions.files import load as load
    from rightly.predictions.files import save as save
    from rightly.predictions.predictions import Predictions as Predictions
    from rightly.predictions.predictions import Source as Source
    from rightly.predictions.validation import check_labels as check_labels

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "concatenation": ("concatenate",),
        "files": ("load", "save"),
        "predictions": ("Predictions", "Source"),
        "validation": ("check_labels",),
    },
)
