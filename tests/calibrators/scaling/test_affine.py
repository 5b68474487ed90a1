"""Vector, matrix, Dirichlet and structured scaling: converged, and what others compute."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from torch.nn.functional import cross_entropy

import rightly
from rightly import Predictions
from rightly.calibrators.scaling.affine import odir
from rightly.calibrators.solvers import softmax_regression
from rightly.calibrators.solvers.softmax_regression import Penalty
from tests.calibrators.samples import draw_labels, draw_logits
from tests.conftest import make

NAMES = (
    "vector_scaling",
    "matrix_scaling",
    "dirichlet",
    "structured_vector_scaling",
    "structured_matrix_scaling",
)


def make_uneven(n, c, seed=0):
    """Logits that are too large by a factor, and lack a weight and a bias a class."""
    z = draw_logits(n, c, seed=seed)
    g = torch.Generator().manual_seed(99)
    weight, bias = 1 + 0.4 * torch.rand(c, generator=g).double(), torch.randn(c, generator=g)
    return Predictions(1.7 * z), draw_labels(z * weight + bias, seed)


def measure_nll(fitted, predictions, labels):
    true = fitted.probabilities(predictions).gather(1, labels[:, None])
    return float(-true.log().mean())


@pytest.mark.parametrize("name", NAMES)
def test_it_beats_temperature_scaling_where_classes_differ(name):
    data, new = make_uneven(2000, 5), make_uneven(5000, 5, seed=1)
    fitted = rightly.calibrator(name).fit(*data)
    tempered = rightly.calibrator("ts").fit(*data)
    assert measure_nll(fitted, *new) < measure_nll(tempered, *new) - 0.1
    right = float((fitted.classes(new[0]) == new[1]).double().mean())
    assert right > float(new[0].correct(new[1]).double().mean()) + 0.03


@pytest.mark.parametrize(
    ("name", "arguments", "penalty"),
    [
        ("vector_scaling", {}, Penalty()),
        ("matrix_scaling", {"strength": 0.1}, odir(0.1, 5)),
        ("dirichlet", {"strength": 0.1}, odir(0.1, 5)),
        ("structured_vector_scaling", {}, Penalty(5 / 400, 20 / 400, 5 / 400)),
        ("structured_matrix_scaling", {}, Penalty(5 / 400, 20 / 400, 5 / 400)),
    ],
)
@pytest.mark.parametrize("few", [256, 0], ids=["newton", "l-bfgs"])
def test_the_slope_of_what_is_minimised_is_zero(monkeypatch, name, arguments, penalty, few):
    """By automatic differentiation of the objective as it stands in the papers."""
    monkeypatch.setattr(softmax_regression, "FEW", few)
    predictions, labels = make_uneven(400, 5)
    fitted = rightly.calibrator(name, **arguments).fit(predictions, labels)
    weight = fitted.weight.clone().requires_grad_()
    bias = fitted.bias.clone().requires_grad_()
    matrix = torch.diag(weight) if weight.ndim == 1 else weight
    scores = fitted.compute_inputs(predictions.logits) @ matrix.T + bias
    on = matrix.diagonal()
    off = matrix.square().sum() - on.square().sum()
    value = cross_entropy(scores, labels) + penalty.bias * bias.square().sum()
    value = value + penalty.diagonal * (on - 1).square().sum() + penalty.off_diagonal * off
    slopes = torch.autograd.grad(value, (weight, bias))
    assert max(float(slope.abs().max()) for slope in slopes) < 1e-6


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "svs",
            [
                [0.001892, 0.016509, 0.206119, 0.021618, 0.753862],
                [0.466813, 0.206533, 0.010299, 0.300595, 0.015761],
            ],
        ),
        (
            "sms",
            [
                [0.003546, 0.00892, 0.209818, 0.020106, 0.75761],
                [0.244402, 0.326729, 0.004071, 0.409451, 0.015347],
            ],
        ),
    ],
)
def test_structured_scaling_is_that_of_its_authors(name, expected):
    """Frozen from probmetrics 1.3.0, which works in float32 and stops earlier."""
    predictions, labels = make_uneven(400, 5)
    rows = rightly.calibrator(name).fit(predictions, labels).probabilities(predictions)[:2]
    torch.testing.assert_close(rows, torch.tensor(expected).double(), atol=1e-3, rtol=0)


def test_neither_unit_nor_offset_of_logits_matters():
    predictions, labels = make_uneven(300, 4)
    other = Predictions(100 * predictions.logits + torch.arange(300)[:, None])
    for name in NAMES:
        first = rightly.calibrator(name).fit(predictions, labels).probabilities(predictions)
        second = rightly.calibrator(name).fit(other, labels).probabilities(other)
        if name == "dirichlet":  # whose log-probabilities are not those of other units
            continue
        torch.testing.assert_close(first, second, atol=1e-6, rtol=0)


def test_a_weaker_penalty_is_selected_where_samples_are_many():
    from rightly.calibrators.scaling.affine import select_strength
    from rightly.calibrators.solvers.softmax_regression import Rows, identity

    def select(n):
        predictions, labels = make_uneven(n, 5)
        start = identity(5, is_diagonal=False, device=torch.device("cpu"))
        return select_strength(Rows(predictions.logits / 1.7, labels), start)[0]

    assert select(1500) < select(40)


@pytest.mark.parametrize("name", ["matrix_scaling", "dirichlet", "svs", "sms"])
@pytest.mark.parametrize("strength", [-1.0, float("nan"), float("inf")])
def test_a_strength_that_is_none_is_refused(name, strength):
    with pytest.raises(ValueError, match=r"strength must be a number of at least 0.*got"):
        rightly.calibrator(name, strength=strength)


def test_a_class_without_samples_keeps_a_probability():
    predictions, labels = make(n=200)
    rows = labels != 3
    for name in NAMES:
        fitted = rightly.calibrator(name).fit(predictions[rows], labels[rows])
        assert (fitted.probabilities(predictions) > 0).all()


def test_probabilities_of_a_class_changing_method_are_computed_once(monkeypatch):
    predictions, labels = make(n=300)
    fitted = rightly.calibrator("structured_vector_scaling").fit(predictions, labels)
    calls = []
    compute = type(fitted).compute_vectors
    counted = lambda self, logits: calls.append(len(logits)) or compute(self, logits)  # noqa: E731
    monkeypatch.setattr(type(fitted), "compute_vectors", counted)
    assert (fitted.probabilities(predictions).sum(-1) - 1).abs().max() < 1e-12
    assert calls == [300]


@pytest.mark.parametrize("name", ["matrix_scaling", "dirichlet"])
def test_a_free_matrix_is_scikit_learns_logistic_regression(name):
    predictions, labels = make_uneven(600, 4)
    inputs = predictions.logits.double()
    x = inputs.log_softmax(-1) if name == "dirichlet" else inputs - inputs.mean(-1, keepdim=True)
    free = LogisticRegression(C=np.inf, tol=1e-10, max_iter=5000).fit(x.numpy(), labels.numpy())
    ours = rightly.calibrator(name, strength=0.0).fit(predictions, labels)
    expected = torch.from_numpy(free.predict_proba(x.numpy()))
    torch.testing.assert_close(ours.probabilities(predictions), expected, atol=2e-4, rtol=0)


def test_vector_scaling_is_what_another_optimiser_finds():
    predictions, labels = make_uneven(600, 4)
    centred = predictions.logits.double() - predictions.logits.double().mean(-1, keepdim=True)

    def loss(moved):
        weight, bias = torch.from_numpy(moved[:4]), torch.from_numpy(moved[4:])
        return float(cross_entropy(centred * weight + bias, labels))

    found = minimize(loss, np.append(np.ones(4), np.zeros(4)), method="BFGS", tol=1e-9).x
    scores = centred * torch.from_numpy(found[:4]) + torch.from_numpy(found[4:])
    ours = rightly.calibrator("vector_scaling").fit(predictions, labels)
    expected = scores.softmax(-1)
    torch.testing.assert_close(ours.probabilities(predictions), expected, atol=1e-4, rtol=0)


def test_a_fit_that_has_not_converged_says_so(monkeypatch):
    monkeypatch.setattr(softmax_regression, "ITERATIONS", 2)
    logits = draw_logits(300, 20)
    labels = draw_labels(logits)
    calibrator = rightly.calibrator("matrix_scaling", strength=1e-4)
    with pytest.warns(UserWarning, match="before it converged.*pass a larger strength"):
        calibrator.fit(Predictions(logits), labels)
