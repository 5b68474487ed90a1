"""The last mile: a classifier and its calibrator as one module, one folder or one file."""

from rightly.deployment.calibrated_classifier import CalibratedClassifier as CalibratedClassifier
from rightly.deployment.export import export as export
from rightly.deployment.outputs import Verdicts as Verdicts
from rightly.deployment.runtime import Deployed as Deployed
from rightly.deployment.runtime import open_deployed as open_deployed
