"""The table of contents: every calibrator that can be named, in the order of the paper's tables."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

from rightly.calibrators import serialization as saved
from rightly.calibrators.adaptive_temperature_scaling import AdaptiveTemperatureScaling
from rightly.calibrators.base import Calibrator as Calibrator
from rightly.calibrators.base import NotFittedError as NotFittedError
from rightly.calibrators.cascade import Cascade
from rightly.calibrators.correctness_logistic.calibrator import CorrectnessLogistic
from rightly.calibrators.correctness_network import CorrectnessNetwork
from rightly.calibrators.ensemble_temperature_scaling import EnsembleTemperatureScaling
from rightly.calibrators.multi_isotonic import MultiIsotonic
from rightly.calibrators.proximity import Proximity
from rightly.calibrators.spline import Spline
from rightly.calibrators.temperature_network import TemperatureNetwork
from rightly.calibrators.temperature_scaling import TemperatureScaling
from rightly.calibrators.true_class_probability import TrueClassProbability
from rightly.calibrators.uncalibrated import Uncalibrated


@dataclass(frozen=True)
class Method:
    """How to build a calibrator, where it comes from, and what to know before choosing it."""

    build: Callable[..., Calibrator]
    paper: str
    note: str = ""

    @property
    def needs(self) -> tuple[str, ...]:
        return self.build().needs

    @property
    def uses(self) -> tuple[str, ...]:
        return self.build().uses


def _learned(evidence: str, loss: str, **options: Any) -> Callable[..., Calibrator]:
    return partial(TemperatureNetwork, evidence, loss, **options)


OURS = "Liu et al., ICML 2025"

CALIBRATORS: Mapping[str, Method] = {
    "uncalibrated": Method(Uncalibrated, "", "the classifier's own confidence"),
    "temperature_scaling": Method(
        TemperatureScaling, "Guo et al., ICML 2017", "one temperature, solved exactly"
    ),
    "ensemble_temperature_scaling": Method(
        EnsembleTemperatureScaling, "Zhang et al., ICML 2020", "the paper's ETS"
    ),
    "multi_isotonic": Method(MultiIsotonic, "Zhang et al., ICML 2020", "the paper's MIR"),
    "spline": Method(Spline, "Gupta et al., ICLR 2021", "confidence only"),
    "adaptive_temperature_scaling": Method(
        AdaptiveTemperatureScaling, "Joy et al., AAAI 2023", "class-conditional autoencoder"
    ),
    "true_class_probability": Method(
        TrueClassProbability,
        "Corbiere et al., NeurIPS 2019",
        "ranks well, biased low as a probability; the paper's TCP",
    ),
    "proximity": Method(
        Proximity, "Xiong et al., NeurIPS 2023", "the paper's ProCal; variant='bins' is its other"
    ),
    "parameterized_temperature_scaling": Method(
        _learned("top_logits", "squared_error", hidden=(5, 5)),
        "Tomani et al., ECCV 2022",
        "PTS as its authors define it: ten logits, two hidden layers, squared error",
    ),
    "ce_only": Method(_learned("top_logits", "cross_entropy"), OURS, "what the paper calls PTS"),
    "ca_only": Method(_learned("top_logits", "correctness_aware"), OURS),
    "ce_views": Method(_learned("view_scores", "cross_entropy"), OURS),
    "ca_views": Method(
        _learned("view_scores", "correctness_aware"), OURS, "the paper's method, converged"
    ),
    "ca_ce_views": Method(_learned("view_scores", "correctness_aware+cross_entropy"), OURS),
    "dca_views": Method(_learned("view_scores", "dca"), f"Liang et al., 2020; {OURS}"),
    "mdca_views": Method(_learned("view_scores", "mdca"), f"Hebbalaguppe et al., 2022; {OURS}"),
    "dca_ca_views": Method(_learned("view_scores", "dca+correctness_aware"), OURS),
    "mdca_ca_views": Method(_learned("view_scores", "mdca+correctness_aware"), OURS),
    "ca_balanced_views": Method(
        _learned("view_scores", "balanced_correctness_aware"),
        f"released code of {OURS}",
        "right and wrong samples weigh the same, which lowers every confidence; converged",
    ),
    "ca_views_released": Method(
        _learned("view_scores", "balanced_correctness_aware", released_epochs=10),
        f"released code of {OURS}",
        "for the record: balanced, Adam 1e-4, 10 epochs, clamp 0.1-10; half its seeds never leave "
        "the clamp, the others stay near where they start on small calibration sets",
    ),
    "ce_views_released": Method(
        _learned("view_scores", "cross_entropy", released_epochs=500),
        f"released code of {OURS}",
        "for the record: unweighted, Adam 1e-4, 500 epochs, clamp 0.1-10; same dead starts",
    ),
    "balanced_temperature": Method(
        partial(TemperatureScaling, "balanced_correctness_aware"),
        "control",
        "one temperature under the balanced loss: what lowering every confidence alone does",
    ),
    "correctness_regression": Method(
        CorrectnessNetwork,
        "control",
        "the same view evidence, logistic output, cross-entropy on correctness",
    ),
    "rightly": Method(
        CorrectnessLogistic,
        "this project",
        "uses views and rehearsal rows where there are any; expected_shift=0..1 says how much shift to "
        "expect",
    ),
}


def method(name: str) -> Method:
    """The registry entry of this name."""
    if name not in CALIBRATORS:
        raise ValueError(f"method must be one of {', '.join(CALIBRATORS)}, got {name!r}")
    return CALIBRATORS[name]


def takes(name: str, argument: str) -> bool:
    """Whether a method can be built with that argument."""
    return argument in signature(method(name).build).parameters


def calibrator(
    name: str, *, budget: float | None = None, first: str | None = None, **arguments: Any
) -> Calibrator:
    """An unfitted calibrator by its name in the registry.

    With a budget, in mean forward passes per image, views are looked at only where the method
    called `first`, which needs none, is in two minds: by default the same method without views if
    it can do without, else temperature scaling.
    """
    built = method(name).build(**arguments)
    if budget is not None:
        built.method = name
        first = first or first_of(name)
        built = Cascade(calibrator(first), built, budget)
        arguments |= {"budget": budget, "first": first}
    built.method, built.arguments = name, dict(arguments)
    return built


def first_of(name: str) -> str:
    """What decides alone where a budget spares this method its views."""
    return "temperature_scaling" if "view_logits" in method(name).needs else name


def load_calibrator(path: str | os.PathLike[str]) -> Calibrator:
    """A calibrator that was saved."""
    header, tensors = saved.read(Path(path))
    try:
        built = calibrator(header["method"], **header["arguments"])
        built.restore(header, tensors)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} has a damaged header: {error}") from error
    return built
