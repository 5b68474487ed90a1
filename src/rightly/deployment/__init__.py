"""The last mile: a classifier and its calibrator as one module, one folder or one file.

Nothing is loaded before it is asked for, so that `deployment.runtime` runs without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

_MODULES = {
    "CalibratedClassifier": "calibrated_classifier",
    "export_classifier": "export",
    "export_model": "export",
    "make_card": "model_card",
    "Outputs": "outputs",
    "ExportedModel": "runtime",
    "open_exported": "runtime",
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
