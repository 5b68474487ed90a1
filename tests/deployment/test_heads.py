"""Heads of exported files: calibrators as ONNX graphs, on easy and on extreme logits."""

from contextlib import suppress

import numpy as np
import onnxruntime
import pytest
import torch

from rightly import calibrator
from rightly.calibrators import CALIBRATORS
from rightly.calibrators.shift_adaptation import ShiftError
from rightly.deployment.onnx_compose import iterate_graphs
from rightly.deployment.onnx_tracing import silence_tracer, trace_module
from rightly.deployment.outputs import read_outputs
from rightly.deployment.stages import CalibrationStage, StackedCalibration
from tests.conftest import make
from tests.deployment.tiny_models import rehearsed

MAX_NODES = 250  # bodies of loops included
FAMILIES = (
    "temperature_scaling",
    "multi_isotonic",
    "dirichlet",
    "spline",
    "venn_abers_one_vs_rest",
    "proximity",
    "ca_views",
    "correctness_logistic",
)
CASES = [
    (name, c)
    for name, method in CALIBRATORS.items()
    for c in (10, 2)
    if method.fits_classes in (None, c)
]
DEFAULT = [*((name, 10) for name in FAMILIES), ("multi_isotonic", 2), ("isotonic", 2)]
VARIANTS = {"rightly, shifted": {}, "rightly, neighbours": {"neighbours": 50}}


def fit(name, c):
    predictions, labels = make(c=c, d=8)
    if name == "rightly, shifted":
        return rehearsed()
    options = {"epochs": 3} if name == "true_class_probability" else VARIANTS.get(name, {})
    fitted = calibrator(name.split(",")[0], **options).fit(predictions, labels)
    with suppress(ShiftError):  # some methods cannot be adapted by views
        fitted.learn_shift(predictions, labels)
    return fitted


class Head:
    """A fitted calibrator as the last stage of a model, in torch and in onnxruntime."""

    def __init__(self, fitted):
        self.adaptation = fitted.shift
        self.stage = CalibrationStage(fitted, fitted.view_names, bool(self.adaptation))
        rows, c = 2 * (len(fitted.view_names) + 1), fitted.class_count
        inputs = {"stacked": (torch.randn(rows, c, generator=torch.Generator()), "stack")}
        if "features" in fitted.needs:
            inputs["features"] = (torch.ones(rows, fitted.feature_count), "stack")
        with torch.no_grad():
            self.names = list(self.stage(*(example for example, _ in inputs.values())).to_dict())
        if self.adaptation is not None:
            inputs["shift_estimate"] = (torch.tensor(-0.5), "")
        self.outputs = [f"head_{name}" for name in self.names]
        with silence_tracer():
            self.model = trace_module(StackedCalibration(self.stage), inputs, self.outputs)
        self.session = onnxruntime.InferenceSession(self.model.SerializeToString())
        self.taken = {value.name for value in self.session.get_inputs()}

    def run(self, stacked, features, estimate):
        given = {"stacked": stacked, "features": features, "shift_estimate": estimate}
        feed = {name: given[name].numpy() for name in self.taken}
        values = self.session.run(self.outputs, feed)
        theirs = read_outputs(dict(zip(self.names, values, strict=True)))
        with torch.no_grad():
            ours = self.stage(*(given[name] if name in self.taken else None for name in given))
        return ours.to_numpy(), theirs


def make_cases(predictions):
    """Logits of samples and views, from what a network gives to what breaks arithmetic."""
    views = predictions.view_logits
    stacked = torch.cat([predictions.logits, *(() if views is None else views.unbind(1))])
    masked = torch.rand(stacked.shape, generator=torch.Generator().manual_seed(0)) < 0.4
    masked[:, 0] = False
    return {
        "plain": stacked,
        "saturated": 50 * stacked,
        "1e8": 1e7 * stacked,
        "tied": (2 * stacked).round() / 2,
        "small": 1e-6 * stacked,
        "equal": torch.zeros_like(stacked),
        "masked": stacked.masked_fill(masked, -1e9),
    }


@pytest.mark.parametrize(
    ("name", "c"),
    [
        pytest.param(*case, marks=() if case in DEFAULT else pytest.mark.long)
        for case in [*CASES, *((variant, 10) for variant in VARIANTS)]
    ],
)
def test_a_graph_computes_what_torch_does(name, c):
    fitted = fit(name, c)
    head = Head(fitted)
    nodes = sum(len(graph.node) for graph in iterate_graphs(head.model.graph))
    assert nodes <= (100 if name == "temperature_scaling" else MAX_NODES)
    test, _ = make(60, c=fitted.class_count, d=8, seed=1)
    test = test if fitted.view_names else test.without_views()
    features = test.features.repeat(1 + len(fitted.view_names), 1)
    limits = [0.0] if head.adaptation is None else [0.0, float(head.adaptation.limits[0])]
    for case, stacked in make_cases(test).items():
        for estimate in limits:
            ours, theirs = head.run(stacked, features, torch.tensor(estimate))
            where = f"{case} logits at shift estimate {estimate:.2f}"
            assert (ours.classes == theirs.classes).all(), where
            assert (theirs.probabilities.argmax(1) == theirs.classes).all(), where
            assert np.abs(theirs.probabilities.sum(1) - 1).max() < 1e-5, where
            for output in ("confidence", "unadapted_confidence", "probabilities", "shift_score"):
                mine, other = getattr(ours, output), getattr(theirs, output)
                if mine is None:
                    continue
                if output == "shift_score":  # log-odds: as a difference of confidence
                    p = ours.unadapted_confidence
                    mine, other = p * (1 - p) * mine, p * (1 - p) * other
                assert np.abs(mine - other).max() < 1e-5, f"{output} of {where}"
            if ours.temperature is not None:
                assert np.allclose(theirs.temperature, ours.temperature, rtol=1e-4), where
