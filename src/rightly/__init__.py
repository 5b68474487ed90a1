"""Rightly: how likely is each prediction to be right?

Importing the package loads neither torch nor SciPy: every name below is loaded when it is first
used (PEP 562).
"""

from typing import TYPE_CHECKING

from rightly.optional import lazy_names

__version__ = "0.1.0"

if TYPE_CHECKING:
    from rightly import losses as losses
    from rightly import metrics as metrics
    from rightly.calibrators import Calibrator as Calibrator
    from rightly.calibrators import NotFittedError as NotFittedError
    from rightly.calibrators import calibrator as calibrator
    from rightly.calibrators import load_calibrator as load_calibrator
    from rightly.collection import collect as collect
    from rightly.decisions import Decision as Decision
    from rightly.deployment import CalibratedClassifier as CalibratedClassifier
    from rightly.evaluation.benchmark import benchmark as benchmark
    from rightly.evaluation.compare import Comparison as Comparison
    from rightly.evaluation.compare import compare as compare
    from rightly.evaluation.evaluate import Evaluation as Evaluation
    from rightly.evaluation.evaluate import evaluate as evaluate
    from rightly.evaluation.examination.examining import examine as examine
    from rightly.fitting import fit as fit
    from rightly.monitoring import Stream as Stream
    from rightly.predictions import Predictions as Predictions
    from rightly.predictions import concatenate as concatenate
    from rightly.predictions import load as load
    from rightly.predictions import save as save
    from rightly.registry import register as register
    from rightly.reporting import report as report
    from rightly.transforms.shifts import Shift as Shift
    from rightly.transforms.views import View as View

# The same again for the running program: the names of each module.
__all__, __getattr__, __dir__ = lazy_names(
    "rightly",
    {
        "calibrators": (
            "Calibrator",
            "NotFittedError",
            "calibrator",
            "load_calibrator",
        ),
        "collection": ("collect",),
        "decisions": ("Decision",),
        "deployment": ("CalibratedClassifier",),
        "evaluation.benchmark": ("benchmark",),
        "evaluation.compare": ("Comparison", "compare"),
        "evaluation.evaluate": ("Evaluation", "evaluate"),
        "evaluation.examination.examining": ("examine",),
        "fitting": ("fit",),
        "monitoring": ("Stream",),
        "predictions": ("Predictions", "concatenate", "load", "save"),
        "registry": ("register",),
        "reporting": ("report",),
        "transforms.shifts": ("Shift",),
        "transforms.views": ("View",),
        "": ("losses", "metrics"),
    },
)
