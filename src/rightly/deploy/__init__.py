"""The last mile: a classifier and its calibrator as one module, one folder or one file."""

from rightly.deploy.calibrated import CalibratedClassifier as CalibratedClassifier
from rightly.deploy.verdicts import Verdicts as Verdicts
