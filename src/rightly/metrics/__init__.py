"""How honest a confidence is: metrics, their intervals and the curves behind figures, in NumPy."""

from rightly.metrics.definitions import METRICS as METRICS
from rightly.metrics.definitions import Metric as Metric
from rightly.metrics.definitions import ace as ace
from rightly.metrics.definitions import aurc as aurc
from rightly.metrics.definitions import auroc as auroc
from rightly.metrics.definitions import brier as brier
from rightly.metrics.definitions import classwise_ece as classwise_ece
from rightly.metrics.definitions import confidence_gap as confidence_gap
from rightly.metrics.definitions import ece as ece
from rightly.metrics.definitions import ks as ks
from rightly.metrics.definitions import ks_released as ks_released
from rightly.metrics.definitions import mce as mce
from rightly.metrics.definitions import narrowly_wrong as narrowly_wrong
from rightly.metrics.definitions import nll as nll
from rightly.metrics.definitions import smooth_ece as smooth_ece
