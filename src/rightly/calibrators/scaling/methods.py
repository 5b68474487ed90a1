"""Entries of the methods that scale logits: from temperature scaling towards a full matrix."""

from rightly.calibrators.method_record import LOW_BY_CLASSES, Method
from rightly.calibrators.scaling.dirichlet import Dirichlet
from rightly.calibrators.scaling.logistic_mixture import LogisticMixture
from rightly.calibrators.scaling.matrix_scaling import MatrixScaling
from rightly.calibrators.scaling.order_preserving import OrderPreserving
from rightly.calibrators.scaling.perturbed_temperature import PerturbedTemperature
from rightly.calibrators.scaling.structured_scaling import (
    StructuredMatrixScaling,
    StructuredVectorScaling,
)
from rightly.calibrators.scaling.transcal import TransCal
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
        cost=LOW_BY_CLASSES,
        note="a full matrix; off-diagonal and intercept regularisation of a strength selected by "
        "cross-validation",
    ),
    Method(
        "dirichlet",
        Dirichlet,
        "scaling",
        "Kull et al., NeurIPS 2019",
        keeps_class=False,
        cost=LOW_BY_CLASSES,
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
        cost=LOW_BY_CLASSES,
        note="matrix scaling drawn to temperature scaling by c / n, off the diagonal c (c - 1) / n",
    ),
    Method(
        "logistic_mixture",
        LogisticMixture,
        "scaling",
        "Jacobs et al., 1991",
        note="two temperatures, mixed by a logistic curve of the confidence",
    ),
    Method(
        "order_preserving",
        OrderPreserving,
        "scaling",
        "Rahimi et al., NeurIPS 2020",
        aliases=("iop",),
        note="one rising function of all logits, piecewise linear",
    ),
    Method(
        "perturbed_temperature",
        PerturbedTemperature,
        "scaling",
        "Tomani et al., CVPR 2021",
        note="temperature scaling on images as they are and under shifts",
    ),
    Method(
        "transcal",
        TransCal,
        "scaling",
        "Wang et al., NeurIPS 2020",
        needs=("features",),
        note="temperature scaling; adapt(unlabelled) gives a temperature for that domain",
    ),
]
