"""The last mile: a classifier and its calibrator as one module, one folder or one file.

Nothing is loaded before it is asked for, so that `deployment.runtime` runs without torch.
"""

from typing import TYPE_CHECKING

from rightly.optional import lazy_names

if TYPE_CHECKING:
    from rightly.deployment.calibrated_classifier import (
        CalibratedClassifier as CalibratedClassifier,
    )
    from rightly.deployment.export import export_classifier as export_classifier
    from rightly.deployment.export import export_model as export_model
    from rightly.deployment.model_card import make_card as make_card
    from rightly.deployment.outputs import Outputs as Outputs
    from rightly.deployment.runtime import ExportedModel as ExportedModel
    from rightly.deployment.runtime import open_exported as open_exported

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "calibrated_classifier": ("CalibratedClassifier",),
        "export": ("export_classifier", "export_model"),
        "model_card": ("make_card",),
        "outputs": ("Outputs",),
        "runtime": ("ExportedModel", "open_exported"),
    },
)
