"""Calibrators: from predictions to the probability that each one is correct.

`CALIBRATORS` lists them, `calibrator(name)` builds one, `load_calibrator(path)` reads one back.
"""

from rightly.calibrators.base import Calibrator as Calibrator
from rightly.calibrators.base import NotFittedError as NotFittedError
from rightly.calibrators.cascade import Cascade as Cascade
from rightly.calibrators.conformal.membership import prediction_sets as prediction_sets
from rightly.calibrators.conformal.sets import ConformalSets as ConformalSets
from rightly.calibrators.fitted import AnyCalibrator as AnyCalibrator
from rightly.calibrators.fitted import FittedCalibrator as FittedCalibrator
from rightly.calibrators.fitted import as_fitted as as_fitted
from rightly.calibrators.fitted import calibrator as calibrator
from rightly.calibrators.fitted import first_of as first_of
from rightly.calibrators.fitted import load_calibrator as load_calibrator
from rightly.calibrators.methods import CALIBRATORS as CALIBRATORS
from rightly.calibrators.methods import Method as Method
