"""A full matrix and a bias a class (Guo et al., 2017), regularised by ODIR (Kull et al., 2019)."""

from typing import final

from rightly.calibrators.scaling.affine import OdirCalibrator


@final
class MatrixScaling(OdirCalibrator):
    """softmax(W x + b) of temperature-scaled logits x, less the row's mean."""
