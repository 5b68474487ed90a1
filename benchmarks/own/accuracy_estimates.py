"""How often a classifier is right on data without labels, as the literature estimates it.

For comparison with `calibrator.expected_accuracy`, which also tells how far it may be off.
"""

import numpy as np

from rightly.checks import check_confidence, check_unlabelled
from rightly.shapes import AnyArray


def average_confidence(confidence: AnyArray) -> float:
    """Mean confidence: the accuracy if the confidence is calibrated on these data.

    >>> average_confidence([0.5, 0.75, 1.0])
    0.75
    """
    return float(check_unlabelled("confidence", confidence).mean())


def atc(confidence: AnyArray, correct: AnyArray, unlabelled: AnyArray) -> float:
    """Average thresholded confidence (Garg et al., ICLR 2022).

    As large a share of the calibration confidences lies below the threshold as is wrong, or the
    nearest share that ties allow; the estimate is the share of the unlabelled that reaches it.
    """
    c, a = check_confidence(confidence, correct)
    u = check_unlabelled("unlabelled", unlabelled)
    ascending, wrong = np.sort(c), int((~a).sum())
    threshold = ascending[min(wrong, len(c) - 1)]
    below, through = (np.searchsorted(ascending, threshold, side) for side in ("left", "right"))
    if through - wrong < wrong - below:
        threshold = np.nextafter(threshold, np.inf)
    return float((u >= threshold).mean())


def doc(confidence: AnyArray, correct: AnyArray, unlabelled: AnyArray) -> float:
    """Difference of confidences (Guillory et al., ICCV 2021), kept between 0 and 1.

    The accuracy on the calibration data, less the drop in mean confidence from there.
    """
    c, a = check_confidence(confidence, correct)
    u = check_unlabelled("unlabelled", unlabelled)
    return float(np.clip(a.mean() - (c.mean() - u.mean()), 0, 1))
