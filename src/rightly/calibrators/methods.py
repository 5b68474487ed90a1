"""The table of contents: every calibrator that can be named, in the order of the paper's tables."""

from functools import partial
from typing import Any

from rightly.calibrators.adaptive_temperature_scaling import AdaptiveTemperatureScaling
from rightly.calibrators.base import Calibrator
from rightly.calibrators.binary.methods import BINARY
from rightly.calibrators.binning.methods import BINNING
from rightly.calibrators.cascade import Cascade
from rightly.calibrators.correctness_logistic.calibrator import CorrectnessLogistic
from rightly.calibrators.correctness_network import CorrectnessNetwork
from rightly.calibrators.density_aware import DensityAware
from rightly.calibrators.ensemble_temperature_scaling import EnsembleTemperatureScaling
from rightly.calibrators.method_record import LOW_BY_SAMPLES, MEDIUM, MEDIUM_BY_SAMPLES
from rightly.calibrators.method_record import Group as Group
from rightly.calibrators.method_record import Method as Method
from rightly.calibrators.multi_isotonic import MultiIsotonic
from rightly.calibrators.proximity import Proximity, ProximityBins
from rightly.calibrators.scaling.methods import SCALING
from rightly.calibrators.spline import Spline
from rightly.calibrators.temperature_network import ReleasedTemperatureNetwork, TemperatureNetwork
from rightly.calibrators.temperature_scaling import TemperatureScaling
from rightly.calibrators.true_class_probability import TrueClassProbability
from rightly.calibrators.uncalibrated import Uncalibrated
from rightly.registry import Registry


def _network(name: str, evidence: str, loss: str, group: Group, **fields: Any) -> Method:
    """A temperature network: `ca_views` and the rows of the paper's ablation."""
    return Method(
        name,
        partial(TemperatureNetwork, evidence, loss, **fields.pop("arguments", {})),
        group,
        needs=VIEWS if evidence == "view_scores" else (),
        is_random=True,
        **{"paper": PAPER, **fields},
    )


# Three layers whose product is s have squared weights of at least 3 s^(2/3), while the loss falls
# with s at most: near 0 decay wins. At 0.03 and more, 15 of 15 fits to CIFAR-10 stayed there.
TWO_LAYER_DECAYS = (0.01, 0.003, 0.001)

PAPER = "Liu et al., ICML 2025"
VIEWS, FEATURES = ("view_logits",), ("features",)

CALIBRATORS: Registry[Method] = Registry(
    "method",
    Method,
    [
        Method("uncalibrated", Uncalibrated, "baseline", note="the classifier's own confidence"),
        Method(
            "temperature_scaling",
            TemperatureScaling,
            "baseline",
            "Guo et al., ICML 2017",
            aliases=("ts",),
            note="one temperature, solved exactly",
        ),
        Method(
            "ensemble_temperature_scaling",
            EnsembleTemperatureScaling,
            "baseline",
            "Zhang et al., ICML 2020",
            aliases=("ets",),
            note="a mixture of tempered, plain and uniform probabilities",
        ),
        Method(
            "multi_isotonic",
            MultiIsotonic,
            "baseline",
            "Zhang et al., ICML 2020",
            aliases=("mir",),
            note="one isotonic map of all class probabilities",
        ),
        Method(
            "spline",
            Spline,
            "baseline",
            "Gupta et al., ICLR 2021",
            aliases=("spl",),
            note="recalibrates the confidence alone",
        ),
        *BINARY,
        *SCALING,
        *BINNING,
        Method(
            "adaptive_temperature_scaling",
            AdaptiveTemperatureScaling,
            "literature",
            "Joy et al., AAAI 2023",
            needs=FEATURES,
            is_random=True,
            aliases=("ats",),
            cost=MEDIUM,
            note="class-conditional autoencoder",
        ),
        Method(
            "true_class_probability",
            TrueClassProbability,
            "literature",
            "Corbiere et al., NeurIPS 2019",
            needs=FEATURES,
            is_random=True,
            aliases=("tcp",),
            cost=MEDIUM,
            note="ranks well, biased low as a probability",
        ),
        Method(
            "proximity",
            Proximity,
            "literature",
            "Xiong et al., NeurIPS 2023",
            needs=FEATURES,
            aliases=("procal",),
            cost=LOW_BY_SAMPLES,
            note="density ratio at (log-odds or confidence, proximity)",
        ),
        Method(
            "proximity_bins",
            ProximityBins,
            "literature",
            "Xiong et al., NeurIPS 2023",
            needs=FEATURES,
            cost=LOW_BY_SAMPLES,
            note="shrunken gap of bins of (confidence, proximity)",
        ),
        Method(
            "density_aware",
            DensityAware,
            "literature",
            "Tomani et al., ICML 2023",
            needs=FEATURES,
            aliases=("dac",),
            cost=MEDIUM_BY_SAMPLES,
            note="hotter where features are far from the calibration data",
        ),
        _network(
            "parameterized_temperature_scaling",
            "top_logits",
            "squared_error",
            "literature",
            paper="Tomani et al., ECCV 2022",
            arguments={"hidden": (5, 5), "decays": TWO_LAYER_DECAYS},
            aliases=("pts",),
            note="ten logits, two hidden layers, squared error",
        ),
        _network(
            "ce_only", "top_logits", "cross_entropy", "ablation", note="what the paper calls PTS"
        ),
        _network("ca_only", "top_logits", "correctness_aware", "paper"),
        _network("ce_views", "view_scores", "cross_entropy", "ablation"),
        _network(
            "ca_views",
            "view_scores",
            "correctness_aware",
            "paper",
            note="the paper's method, converged",
        ),
        _network("ca_ce_views", "view_scores", "correctness_aware+cross_entropy", "ablation"),
        _network(
            "dca_views", "view_scores", "dca", "ablation", paper=f"Liang et al., 2020; {PAPER}"
        ),
        _network(
            "mdca_views",
            "view_scores",
            "mdca",
            "ablation",
            paper=f"Hebbalaguppe et al., 2022; {PAPER}",
        ),
        _network("dca_ca_views", "view_scores", "dca+correctness_aware", "ablation"),
        _network("mdca_ca_views", "view_scores", "mdca+correctness_aware", "ablation"),
        _network(
            "ca_balanced_views",
            "view_scores",
            "balanced_correctness_aware",
            "released",
            paper=f"released code of {PAPER}",
            note="right and wrong samples weigh the same, which lowers every confidence; converged",
        ),
        Method(
            "ca_views_released",
            partial(
                ReleasedTemperatureNetwork, "view_scores", "balanced_correctness_aware", epochs=10
            ),
            "released",
            f"released code of {PAPER}",
            needs=VIEWS,
            is_random=True,
            note="for the record: balanced, Adam 1e-4, 10 epochs, clamp 0.1-10; half its seeds "
            "never leave the clamp, the others stay near where they start on small calibration "
            "sets",
        ),
        Method(
            "ce_views_released",
            partial(ReleasedTemperatureNetwork, "view_scores", "cross_entropy", epochs=500),
            "released",
            f"released code of {PAPER}",
            needs=VIEWS,
            is_random=True,
            cost=MEDIUM,
            note="for the record: unweighted, Adam 1e-4, 500 epochs, clamp 0.1-10; the same dead "
            "starts",
        ),
        Method(
            "balanced_temperature",
            partial(TemperatureScaling, "balanced_correctness_aware"),
            "ablation",
            "control",
            note="one temperature under the balanced loss: what lowering every confidence alone "
            "does",
        ),
        Method(
            "correctness_network",
            CorrectnessNetwork,
            "ablation",
            "control",
            needs=VIEWS,
            is_random=True,
            note="the same view evidence and the image's log-odds; cross-entropy on correctness",
        ),
        Method(
            "correctness_logistic",
            CorrectnessLogistic,
            "own",
            "this project",
            uses=VIEWS,
            aliases=("rightly",),
            note="uses views and shift augmentation where there are any; expected_shift=0..1 says "
            "how much shift to expect",
        ),
    ],
    group="rightly.calibrators",
    base=Calibrator,
)


def calibrator(
    name: str, *, budget: float | None = None, first: str | None = None, **arguments: Any
) -> Calibrator:
    """An unfitted calibrator by its name or alias in the registry.

    With a budget, in mean forward passes per image, views are looked at only inside a deferral
    band of the confidence of the method called `first`, which needs none: by default the same
    method without views if it can do without, else temperature scaling.
    """
    method = CALIBRATORS.find(name)
    built = method.build(**arguments)
    if budget is not None:
        built.method = method.name
        first = CALIBRATORS.find(first or fallback_method(name)).name
        built = Cascade(calibrator(first), built, budget)
        arguments |= {"budget": budget, "first": first}
    built.method, built.arguments = method.name, dict(arguments)
    return built


def fallback_method(name: str) -> str:
    """What gives the confidence where a budget spares this method its views."""
    return "temperature_scaling" if "view_logits" in CALIBRATORS.find(name).needs else name
