"""Calibrators: from predictions to the probability that each one is correct.

`CALIBRATORS` lists them, `calibrator(name)` builds one, `load_calibrator(path)` reads one back.
"""

from rightly.calibrators.base import Calibrator as Calibrator
from rightly.calibrators.base import NotFittedError as NotFittedError
from rightly.calibrators.base import check_calibrator as check_calibrator
from rightly.calibrators.cascade import Cascade as Cascade
from rightly.calibrators.conformal.sets import ConformalSets as ConformalSets
from rightly.calibrators.methods import CALIBRATORS as CALIBRATORS
from rightly.calibrators.methods import Method as Method
from rightly.calibrators.methods import calibrator as calibrator
from rightly.calibrators.methods import fallback_method as fallback_method
from rightly.calibrators.serialization import load_calibrator as load_calibrator
