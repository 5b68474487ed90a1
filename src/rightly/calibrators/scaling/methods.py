"""Entries of the methods that scale logits: from temperature scaling towards a full matrix."""

from rightly.calibrators.method_record import Method
from rightly.calibrators.scaling.dirichlet import Dirichlet
from rightly.calibrators.scaling.matrix_scaling import MatrixScaling
from rightly.calibrators.scaling.structured_scaling import (
    StructuredMatrixScaling,
    StructuredVectorScaling,
)
from rightly.calibrators.scaling.vector_scaling import VectorScaling

SCALING = [
    Method(
        "vector_scaling",
        VectorScaling,
        "scaling",
        "Guo et al., ICML 2017",
        keeps_class=False,
        aliases=("vs",),
        note="a weight and a bias a class",
    ),
    Method(
        "matrix_scaling",
        MatrixScaling,
        "scaling",
        "Guo et al., ICML 2017; Kull et al., NeurIPS 2019",
        keeps_class=False,
        aliases=("ms",),
        note="a full matrix; off-diagonal and intercept regularisation of a strength selected by "
        "cross-validation",
    ),
    Method(
        "dirichlet",
        Dirichlet,
        "scaling",
        "Kull et al., NeurIPS 2019",
        keeps_class=False,
        note="the same on log-probabilities",
    ),
    Method(
        "structured_vector_scaling",
        StructuredVectorScaling,
        "scaling",
        "Berta et al., 2025",
        keeps_class=False,
        aliases=("svs",),
        note="vector scaling drawn to temperature scaling by c / n",
    ),
    Method(
        "structured_matrix_scaling",
        StructuredMatrixScaling,
        "scaling",
        "Berta et al., 2025",
        keeps_class=False,
        aliases=("sms",),
        note="matrix scaling drawn to temperature scaling by c / n, off the diagonal c (c - 1) / n",
    ),
]
