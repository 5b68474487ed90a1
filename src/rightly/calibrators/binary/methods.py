"""The entries of calibrators for two classes."""

from rightly.calibrators.binary.beta import Beta
from rightly.calibrators.binary.isotonic import Isotonic
from rightly.calibrators.binary.platt import Platt
from rightly.calibrators.method_record import Method

BINARY = (
    Method(
        "platt",
        Platt,
        "binary",
        "Platt, 1999",
        keeps_class=False,
        fits_classes=2,
        aliases=("sigmoid",),
        note="a logistic curve of P(y = 1); the class may change",
    ),
    Method(
        "beta",
        Beta,
        "binary",
        "Kull et al., AISTATS 2017",
        keeps_class=False,
        fits_classes=2,
        note="bends both ends of P(y = 1) by themselves; the class may change",
    ),
    Method(
        "isotonic",
        Isotonic,
        "binary",
        "Zadrozny & Elkan, KDD 2002",
        keeps_class=False,
        fits_classes=2,
        note="any rising curve of P(y = 1); the class may change",
    ),
)
