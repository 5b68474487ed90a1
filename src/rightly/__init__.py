"""Rightly: how likely is each prediction to be right?"""

from rightly import losses as losses
from rightly import metrics as metrics
from rightly.calibrators import CALIBRATORS as CALIBRATORS
from rightly.calibrators import Calibrator as Calibrator
from rightly.calibrators import NotFittedError as NotFittedError
from rightly.calibrators import calibrator as calibrator
from rightly.calibrators import load_calibrator as load_calibrator
from rightly.collection import collect as collect
from rightly.deployment import CalibratedClassifier as CalibratedClassifier
from rightly.fitting import fit as fit
from rightly.predictions import Predictions as Predictions
from rightly.predictions import concatenate as concatenate
from rightly.predictions import load as load
from rightly.predictions import save as save

__version__ = "0.1.0"
