"""What holds for every calibrator, present and future.

One method of each family is tested point by point, with its default arguments; every other method
against the same contract in one test. There networks are small and train briefly, because what is
promised does not depend on that; `make test-all` also tests them with their default arguments.
"""

import contextlib
import copy
import inspect
import warnings
from collections.abc import Callable
from functools import cache, cached_property

import numpy as np
import pytest
import torch
from safetensors import safe_open

import rightly
from rightly import NotFittedError, Predictions
from rightly.calibrators import CALIBRATORS
from rightly.calibrators.families import VectorCalibrator
from rightly.calibrators.shift_adaptation import ShiftError
from rightly.calibrators.solvers import execution, networks
from tests.calibrators.quick import choose_quick_arguments
from tests.conftest import make, make_for

FAMILIES = [
    "temperature_scaling",
    "spline",  # recalibrates the confidence alone
    "isotonic",  # for two classes
    "matrix_scaling",  # may change the class
    "venn_abers_one_vs_rest",  # tables of its own for each class
    "true_class_probability",  # a network that reads features
    "ca_views",  # a network that reads views
    "correctness_logistic",  # reads views where there are any
]
OTHERS = [name for name in CALIBRATORS if name not in FAMILIES]

CONTRACT: list[Callable[["Case"], None]] = []


def contract(function):
    """Adds a point to the contract."""
    CONTRACT.append(function)
    return function


class Case:
    """A method with its arguments, fitted once, and the data that the contract is tested on."""

    def __init__(self, name, arguments, folder):
        self.name, self.arguments, self.folder = name, arguments, folder
        self.count = CALIBRATORS[name].fits_classes or 10  # classes of the data
        self.sample, self.other = make_for(name), make_for(name, seed=1)

    def fresh(self):
        return rightly.calibrator(self.name, **self.arguments)

    @cached_property
    def fitted(self):
        return self.fresh().fit(*self.sample)


def change(predictions, **inputs):
    """The same predictions but for some inputs."""
    names = ("logits", "view_logits", "features", "view_names")
    return Predictions(**{name: getattr(predictions, name) for name in names} | inputs)


@contract
def confidence_is_a_probability(case):
    confidence = case.fitted.confidence(case.other[0])
    assert confidence.shape == case.other[1].shape
    assert ((confidence >= 0) & (confidence <= 1)).all()


@contract
def probabilities_are_largest_for_the_predicted_class_and_sum_to_one(case):
    fitted, predictions = case.fitted, case.other[0]
    probabilities, classes = fitted.probabilities(predictions), fitted.classes(predictions)
    assert probabilities.shape == predictions.logits.shape
    assert (probabilities >= 0).all()
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(300).double())
    assert torch.equal(probabilities.argmax(-1), classes)
    assert torch.equal(probabilities.float().argmax(-1), classes)
    if fitted.keeps_class:
        assert torch.equal(classes, predictions.classes)


@contract
def everything_computed_together_is_what_is_asked_for_alone(case):
    outputs = case.fitted.compute(case.other[0])
    assert torch.equal(outputs.classes, case.fitted.classes(case.other[0]))
    assert (outputs.temperature is not None) == case.fitted.has_temperature
    for name in ("confidence", "temperature", "probabilities"):
        together, alone = getattr(outputs, name), getattr(case.fitted, name)(case.other[0])
        if together is not None:
            torch.testing.assert_close(together.double(), alone, atol=1e-9, rtol=1e-6)


@contract
def its_record_says_what_it_is(case):
    method, fresh = CALIBRATORS[case.name], case.fresh()
    assert method.needs == fresh.needs and method.uses == fresh.uses
    assert method.is_pointwise == fresh.is_pointwise
    assert method.keeps_class == fresh.keeps_class
    assert method.fits_classes == fresh.fits_classes
    assert method.is_random == method.takes("seed")


@contract
def its_repr_says_whether_and_on_what_it_was_fitted(case):
    fitted = case.fitted
    assert repr(case.fresh()) == f"<{case.name}, not fitted>"
    views = " with 3 views" if fitted.uses_views else ""
    note = f", {fitted.fit_note}" if fitted.fit_note else ""
    expected = f"<{case.name}, fitted on 300 samples of {case.count} classes{views}{note}>"
    assert repr(fitted) == expected


@contract
def the_order_of_calibration_rows_does_not_matter(case):
    predictions, labels = case.sample
    order = torch.randperm(300, generator=torch.Generator().manual_seed(5))
    shuffled = case.fresh().fit(predictions[order], labels[order]).confidence(case.other[0])
    torch.testing.assert_close(shuffled, case.fitted.confidence(case.other[0]), atol=1e-9, rtol=0)


@contract
def confidence_is_the_probability_of_the_class(case):
    confidence = case.fitted.confidence(case.other[0])
    top = case.fitted.probabilities(case.other[0]).amax(-1)
    reachable = confidence > 1 / case.count + 1e-4
    torch.testing.assert_close(top[reachable], confidence[reachable], atol=1e-6, rtol=0)
    # Below 1 / c the row is all but uniform, while the confidence stays what it is.
    assert (top[~reachable] < 1 / case.count + 2e-4).all()


@contract
def temperature_gives_the_confidence(case):
    predictions = case.other[0]
    temperature, confidence = (
        case.fitted.temperature(predictions),
        case.fitted.confidence(predictions),
    )
    assert (temperature > 0).all() and torch.isfinite(temperature).all()
    scaled = (predictions.logits.double() / temperature[:, None]).softmax(-1).amax(-1)
    reachable = confidence > 1 / case.count + 1e-4
    torch.testing.assert_close(scaled[reachable], confidence[reachable], atol=1e-6, rtol=0)


@contract
def each_sample_is_treated_alone(case):
    fitted, predictions = case.fitted, case.other[0]
    together, alone = fitted.confidence(predictions)[:7], fitted.confidence(predictions[:7])
    torch.testing.assert_close(together, alone, atol=1e-6, rtol=0)
    one = torch.cat([fitted.confidence(predictions[i : i + 1]) for i in range(7)])
    torch.testing.assert_close(together, one, atol=1e-6, rtol=0)


@contract
def fitting_is_repeatable_to_the_bit_on_any_number_of_threads(case):
    threads, state = torch.get_num_threads(), torch.random.get_rng_state()
    try:
        torch.set_num_threads(1 if threads > 1 else 2)
        torch.manual_seed(123)
        again = case.fresh().fit(*make_for(case.name)).stored()
    finally:
        torch.set_num_threads(threads)
        torch.random.set_rng_state(state)
    assert again.keys() == case.fitted.stored().keys()
    for key, tensor in case.fitted.stored().items():
        assert torch.equal(tensor, again[key]), key


@contract
def fit_returns_itself_and_touches_neither_inputs_nor_the_global_random_state(case):
    predictions, labels = make_for(case.name, n=60)
    inputs = (predictions.logits, predictions.view_logits, predictions.features, labels)
    copies, state = [x.clone() for x in inputs], torch.random.get_rng_state()
    fresh = case.fresh()
    assert fresh.fit(predictions, labels) is fresh
    assert torch.equal(state, torch.random.get_rng_state())
    for before, now in zip(copies, inputs, strict=True):
        assert torch.equal(before, now)


@contract
def it_refuses_before_fit(case):
    fresh = case.fresh()
    for ask in (fresh.classes, fresh.confidence, fresh.temperature, fresh.probabilities):
        with pytest.raises(NotFittedError, match="is not fitted: call fit"):
            ask(case.other[0])
    with pytest.raises(NotFittedError, match="fit"):
        fresh.save(case.folder / "a.safetensors")


@contract
def what_is_saved_loads_to_the_same_numbers(case):
    path = case.folder / "a.safetensors"
    case.fitted.save(path)
    loaded = rightly.load_calibrator(path)
    for ask in ("confidence", "probabilities"):
        assert torch.equal(
            getattr(loaded, ask)(case.other[0]), getattr(case.fitted, ask)(case.other[0])
        )
    with safe_open(path, "pt") as file:
        header = file.metadata()
    assert header["version"] == "6" and header["method"] == f'"{case.name}"'
    assert header["class_count"] == str(case.count)


@contract
def learning_of_shifts_changes_no_confidence(case):
    before = case.fitted.stored()
    again = copy.deepcopy(case.fitted)
    with contextlib.suppress(ShiftError):  # where views have no features
        assert again.learn_shift(*case.sample) is again
    kept = {name: x for name, x in again.stored().items() if not name.startswith("shift.")}
    assert kept.keys() == before.keys()
    assert all(torch.equal(x, before[name]) for name, x in kept.items())
    assert (again.shift is None) == (again.no_shift is not None)


@contract
def a_few_labels_adapt_it(case):
    predictions, labels = case.other
    adapted = case.fitted.adapt(predictions, (labels + 1) % case.count)
    before, after = (one.confidence(predictions) for one in (case.fitted, adapted))
    assert after.mean() < before.mean()
    assert (after[before.argsort()].diff() >= 0).all()
    assert case.fitted.correction is None
    adapted.save(case.folder / "b.safetensors")
    loaded = rightly.load_calibrator(case.folder / "b.safetensors")
    assert torch.equal(loaded.confidence(predictions), after)


@contract
def other_classes_are_refused(case):
    with pytest.raises(ValueError, match=f"must have {case.count} classes.*got 9"):
        case.fitted.confidence(make(c=9)[0])


@contract
def other_views_or_features_are_refused_where_they_matter(case):
    fitted, predictions = case.fitted, case.other[0]
    turned = predictions.with_views(["view2", "view1", "view0"])
    wide = change(predictions, features=torch.ones(300, 5))
    if "view_logits" in fitted.needs + fitted.uses:
        with pytest.raises(ValueError, match="in this order"):
            fitted.confidence(turned)
        with pytest.raises(ValueError, match="view"):
            fitted.confidence(Predictions(predictions.logits))
    else:
        fitted.confidence(turned)
    if "features" in fitted.needs + fitted.uses:
        with pytest.raises(ValueError, match="features must have 16 columns"):
            fitted.confidence(wide)
    else:
        fitted.confidence(wide)


@contract
def inputs_that_it_needs_are_asked_for_by_name_and_others_may_be_missing(case):
    fresh, (predictions, labels) = case.fresh(), case.sample
    bare = Predictions(predictions.logits)
    if fresh.needs:
        with pytest.raises(ValueError, match=f"needs predictions with {fresh.needs[0]}"):
            fresh.fit(bare, labels)
        return
    fresh.fit(bare, labels)
    # What it was fitted without, it does not look at.
    alone = fresh.confidence(Predictions(case.other[0].logits))
    torch.testing.assert_close(fresh.confidence(case.other[0]), alone)


@contract
def only_unshifted_rows_are_fitted_unless_it_says_so(case):
    predictions, labels = case.sample
    shifted, wrong = make_for(case.name, seed=5)
    shifted = change(shifted, shift=torch.ones(300, dtype=torch.int64))
    both = rightly.concatenate([predictions, shifted])
    again = case.fresh().fit(both, torch.cat([labels, wrong]))
    same = [torch.equal(x, again.stored()[key]) for key, x in case.fitted.stored().items()]
    assert not all(same) if again.uses_shifted_rows else all(same)


@contract
def rows_that_are_all_shifted_are_refused(case):
    predictions, labels = case.sample
    with pytest.raises(ValueError, match="every row is shifted"):
        case.fresh().fit(change(predictions, shift=np.ones(300, int)), labels)


@contract
def one_sided_data_gives_numbers_and_a_warning(case):
    predictions, labels = make_for(case.name, n=600)
    for side in ("right", "wrong"):
        fresh, rows = case.fresh(), predictions.correct(labels) == (side == "right")
        with pytest.warns(UserWarning, match=f"predicted {side}"):
            fresh.fit(predictions[rows], labels[rows])
        assert torch.isfinite(fresh.confidence(predictions)).all(), side
        assert torch.isfinite(fresh.probabilities(predictions)).all(), side


def without_class(data, missing):
    predictions, labels = data
    return predictions[labels != missing], labels[labels != missing]


def convert(data, own, others):
    """The same data, with one function of the logits and one of views and features."""
    predictions, labels = data
    return change(
        predictions,
        logits=own(predictions.logits),
        view_logits=others(predictions.view_logits),
        features=others(predictions.features),
    ), labels


def make_edge_cases(name):
    """Data at the edge of what a method must take, by what it is."""
    data, keep, double = make_for(name, n=120), torch.Tensor.clone, torch.Tensor.double
    two_only = CALIBRATORS[name].fits_classes == 2
    return {
        "ten samples": make_for(name, n=10),
        "two classes": make(n=120, c=2),
        "three classes": data if two_only else make(n=120, c=3),
        "huge logits": convert(data, lambda x: 1e4 * x, lambda x: 1e4 * x),
        "ties": convert(data, torch.round, torch.round),
        "a class without samples": without_class(make_for(name, n=200), 1),
        "double precision": convert(data, double, double),
        "logits and views of different precision": convert(data, keep, double),
    }


@contract
def edge_cases_give_numbers(case):
    for kind, (predictions, labels) in make_edge_cases(case.name).items():
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*classes have no calibration sample")
            fitted = case.fresh().fit(predictions, labels)
        confidence, rows = fitted.confidence(predictions), fitted.probabilities(predictions)
        assert ((confidence >= 0) & (confidence <= 1)).all(), kind
        assert torch.equal(rows.argmax(-1), fitted.classes(predictions)), kind
        assert ((rows.sum(-1) - 1).abs() < 1e-7).all(), kind


@contract
def numpy_and_other_float_types_give_the_same(case):
    predictions = case.other[0]
    again = change(
        predictions,
        logits=predictions.logits.numpy(),
        view_logits=predictions.view_logits.double(),
        features=predictions.features.numpy(),
    )
    torch.testing.assert_close(
        case.fitted.confidence(predictions), case.fitted.confidence(again), atol=1e-5, rtol=0
    )


@contract
def chunks_and_the_layout_of_memory_change_nothing(case):
    predictions, asks = case.other[0], (case.fitted.confidence, case.fitted.probabilities)
    whole = [ask(predictions) for ask in asks]
    by_columns = change(predictions, logits=predictions.logits.T.contiguous().T)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execution, "CHUNK", 7 * predictions.class_count)
        for each in (predictions, by_columns):
            for ask, expected in zip(asks, whole, strict=True):
                torch.testing.assert_close(ask(each), expected, atol=1e-6, rtol=0)


@contract
def bad_labels_and_bad_predictions_are_refused(case):
    fresh, (predictions, labels) = case.fresh(), case.sample
    with pytest.raises(TypeError, match="labels must be integers"):
        fresh.fit(predictions, labels.double())
    with pytest.raises(ValueError, match="labels must have shape"):
        fresh.fit(predictions, labels[:-1])
    with pytest.raises(ValueError, match="labels must lie in"):
        fresh.fit(predictions, labels + 1)
    assert not fresh.is_fitted


@pytest.fixture(scope="module")
def case_of(tmp_path_factory):
    """The case of a method with its default arguments; all points share its fit."""
    return cache(lambda name: Case(name, {}, tmp_path_factory.mktemp(name)))


@pytest.mark.parametrize("point", CONTRACT, ids=lambda point: point.__name__)
@pytest.mark.parametrize("name", FAMILIES)
def test_contract(name, point, case_of):
    point(case_of(name))


@pytest.mark.parametrize("name", OTHERS)
def test_contract_in_one(name, tmp_path, monkeypatch):
    monkeypatch.setattr(networks, "ITERATIONS", 10)
    case = Case(name, choose_quick_arguments(name), tmp_path)
    for point in CONTRACT:
        point(case)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in OTHERS if choose_quick_arguments(name)])
def test_contract_in_one_of_networks_as_they_are_by_default(name, tmp_path):
    case = Case(name, {}, tmp_path)
    for point in CONTRACT:
        point(case)


@pytest.mark.parametrize(
    ("name", "tolerance"),
    [
        ("temperature_scaling", 1e-6),
        ("ensemble_temperature_scaling", 1e-6),
        ("correctness_logistic", 1e-6),
        ("spline", 5e-5),  # two scores that rounding swaps move each other's rank by 1 / n
    ],
)
def test_single_precision_is_enough_for_many_classes(name, tolerance, monkeypatch):
    """Where exponentials are those of torch's softmax, in chunks that memory is used again for."""
    monkeypatch.setattr(execution, "CHUNK", 90 * 200)
    scaled, double = (lambda x: 1.5 * x), torch.Tensor.double
    predictions, labels = convert(make(n=2000, c=200), scaled, scaled)
    fitted = rightly.calibrator(name).fit(predictions, labels)
    double, _ = convert((predictions, labels), double, double)
    for ask in (fitted.confidence, fitted.probabilities):
        torch.testing.assert_close(ask(predictions), ask(double), atol=tolerance, rtol=0)
    again = rightly.calibrator(name).fit(double, labels).confidence(double)
    torch.testing.assert_close(fitted.confidence(predictions), again, atol=tolerance, rtol=0)


@pytest.mark.parametrize("name", CALIBRATORS)
def test_vectors_that_are_written_in_place_are_those_of_a_graph(name):
    fitted = rightly.calibrator(name)
    if not isinstance(fitted, VectorCalibrator):
        return
    predictions, labels = make_for(name, n=400)
    logits = fitted.fit(predictions, labels).select_views(predictions).logits
    out = torch.empty_like(logits, dtype=torch.float64)
    fitted.write_vectors(logits, out, execution.Scratch())
    torch.testing.assert_close(out, fitted.compute_vectors(logits).double(), atol=1e-9, rtol=0)


@pytest.mark.parametrize("name", ["temperature_scaling"])
def test_raw_arrays_are_refused_with_the_remedy(sample, name):
    with pytest.raises(TypeError, match="wrap logits as"):
        unchecked = inspect.unwrap(type(rightly.calibrator(name)).fit)  # without shape checks
        unchecked(rightly.calibrator(name), sample[0].logits, sample[1])


def test_an_unknown_method_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="method 'plat' is not known: did you mean platt\\?"):
        rightly.calibrator("plat")


def test_the_registry_stands_in_the_order_of_the_papers_tables():
    papers = [
        "uncalibrated",
        "temperature_scaling",
        "ensemble_temperature_scaling",
        "multi_isotonic",
        "spline",
        "adaptive_temperature_scaling",
        "true_class_probability",
        "proximity",
        "parameterized_temperature_scaling",
        "ce_only",
        "ca_only",
        "ce_views",
        "ca_views",
        "ca_ce_views",
    ]
    assert [name for name in CALIBRATORS if name in papers] == papers


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("ts", "temperature_scaling"),
        ("ets", "ensemble_temperature_scaling"),
        ("mir", "multi_isotonic"),
        ("spl", "spline"),
        ("ats", "adaptive_temperature_scaling"),
        ("tcp", "true_class_probability"),
        ("procal", "proximity"),
        ("pts", "parameterized_temperature_scaling"),
        ("rightly", "correctness_logistic"),
    ],
)
def test_aliases_of_the_literature_are_found_but_not_listed(alias, name):
    assert rightly.calibrator(alias).method == name
    assert CALIBRATORS.find(alias) is CALIBRATORS[name]
    assert alias not in list(CALIBRATORS)
    assert repr(rightly.calibrator(alias)) == f"<{name}, not fitted>"


def test_every_alias_belongs_to_one_method_and_is_no_name():
    aliases = [alias for method in CALIBRATORS.values() for alias in method.aliases]
    assert len(set(aliases)) == len(aliases)
    assert not set(aliases) & set(list(CALIBRATORS))


def test_a_file_holds_the_canonical_name(tmp_path):
    rightly.calibrator("ts").fit(*make(n=50)).save(tmp_path / "a.safetensors")
    assert rightly.load_calibrator(tmp_path / "a.safetensors").method == "temperature_scaling"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("spline", {"knots": 1}), "knots"),
        (("proximity", {"bins": 3}), "bins"),
        (("ca_views", {"loss": "focal"}), "loss"),
        (("rightly", {"expected_shift": 1.5}), "expected_shift"),
    ],
)
def test_bad_arguments_are_refused_when_built(arguments, word):
    name, options = arguments
    with pytest.raises((ValueError, TypeError), match=word):
        rightly.calibrator(name, **options)
