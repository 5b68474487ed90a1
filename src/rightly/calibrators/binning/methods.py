"""Entries of the methods that read confidence from bins or isotonic regressions."""

from rightly.calibrators.binning.bbq import BayesianBinning
from rightly.calibrators.binning.histogram_binning import HistogramBinning
from rightly.calibrators.binning.isotonic_one_vs_rest import IsotonicOneVsRest
from rightly.calibrators.binning.scaling_binning import ScalingBinning
from rightly.calibrators.binning.venn_abers import VennAbers, VennAbersOneVsRest
from rightly.calibrators.method_record import Method

BINNING = [
    Method(
        "histogram_binning",
        HistogramBinning,
        "binning",
        "Zadrozny & Elkan, ICML 2001; Gupta & Ramdas, ICML 2021",
        aliases=("hb",),
        note="the accuracy of bins of confidence, of equal mass or width",
    ),
    Method(
        "scaling_binning",
        ScalingBinning,
        "binning",
        "Kumar et al., NeurIPS 2019",
        note="Platt scaling of the confidence, averaged in bins",
    ),
    Method(
        "bbq",
        BayesianBinning,
        "binning",
        "Naeini et al., AAAI 2015",
        aliases=("bayesian_binning",),
        note="binnings into quantiles, averaged by their evidence",
    ),
    Method(
        "venn_abers",
        VennAbers,
        "binning",
        "Vovk et al., NeurIPS 2015",
        aliases=("ivap",),
        note="two isotonic regressions, with the sample itself as wrong and as right",
    ),
    Method(
        "venn_abers_one_vs_rest",
        VennAbersOneVsRest,
        "binning",
        "Vovk et al., NeurIPS 2015",
        keeps_class=False,
        note="the same for every class against the rest",
    ),
    Method(
        "isotonic_one_vs_rest",
        IsotonicOneVsRest,
        "binning",
        "Zadrozny & Elkan, KDD 2002",
        keeps_class=False,
        note="an isotonic regression for each class against the rest",
    ),
]
