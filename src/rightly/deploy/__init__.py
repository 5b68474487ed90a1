"""The last mile: a classifier and its calibrator as one module, one folder or one file."""

from rightly.deploy.calibrated import CalibratedClassifier as CalibratedClassifier
from rightly.deploy.deployed import Deployed as Deployed
from rightly.deploy.deployed import open_deployed as open_deployed
from rightly.deploy.exporting import export as export
from rightly.deploy.verdicts import Verdicts as Verdicts
