"""What holds for every calibrator, present and future."""

import inspect

import numpy as np
import pytest
import torch
from safetensors import safe_open

import rightly
from rightly import CALIBRATORS, NotFittedError, Predictions
from rightly.calibrators.families import VectorCalibrator
from rightly.calibrators.solvers import execution
from tests.conftest import make, make_for

FITTED: dict[str, rightly.Calibrator] = {}


@pytest.fixture
def fitted(name):
    """Each calibrator is fitted once; tests that only look at it share it."""
    if name not in FITTED:
        FITTED[name] = rightly.calibrator(name).fit(*make_for(name))
    return FITTED[name]


@pytest.fixture
def fresh(name):
    return rightly.calibrator(name)


@pytest.fixture
def sample(name):
    return make_for(name)


@pytest.fixture
def other(name):
    return make_for(name, seed=1)


@pytest.fixture
def count(name):
    """The number of classes of those."""
    return CALIBRATORS[name].fits_classes or 10


@pytest.mark.parametrize("name", CALIBRATORS)
class TestEveryCalibrator:
    def test_confidence_is_a_probability(self, fitted, other):
        confidence = fitted.confidence(other[0])
        assert confidence.shape == other[1].shape
        assert ((confidence >= 0) & (confidence <= 1)).all()

    def test_probabilities_are_largest_for_the_predicted_class_and_sum_to_one(self, fitted, other):
        probabilities, classes = fitted.probabilities(other[0]), fitted.classes(other[0])
        assert probabilities.shape == other[0].logits.shape
        assert (probabilities >= 0).all()
        torch.testing.assert_close(probabilities.sum(-1), torch.ones(300).double())
        assert torch.equal(probabilities.argmax(-1), classes)
        assert torch.equal(probabilities.float().argmax(-1), classes)
        if fitted.keeps_class:
            assert torch.equal(classes, other[0].classes)

    def test_everything_computed_together_is_what_is_asked_for_alone(self, fitted, other):
        outputs = fitted.compute(other[0])
        assert torch.equal(outputs.classes, fitted.classes(other[0]))
        for name in ("confidence", "temperature", "probabilities"):
            alone = getattr(fitted, name)(other[0])
            torch.testing.assert_close(getattr(outputs, name), alone, atol=1e-9, rtol=1e-6)

    def test_its_record_says_what_it_is(self, name, fresh):
        method = CALIBRATORS[name]
        assert method.needs == fresh.needs and method.uses == fresh.uses
        assert method.is_pointwise == fresh.is_pointwise
        assert method.keeps_class == fresh.keeps_class
        assert method.fits_classes == fresh.fits_classes
        assert method.is_random == method.takes("seed")

    def test_its_repr_says_whether_and_on_what_it_was_fitted(self, name, fresh, fitted, count):
        assert repr(fresh) == f"<{name}, not fitted>"
        views = " with 3 views" if fitted.uses_views else ""
        note = f", {fitted.fit_note}" if fitted.fit_note else ""
        assert repr(fitted) == f"<{name}, fitted on 300 samples of {count} classes{views}{note}>"

    def test_the_order_of_calibration_rows_does_not_matter(self, fresh, fitted, sample, other):
        predictions, labels = sample
        order = torch.randperm(300, generator=torch.Generator().manual_seed(5))
        shuffled = fresh.fit(predictions[order], labels[order]).confidence(other[0])
        torch.testing.assert_close(shuffled, fitted.confidence(other[0]), atol=1e-9, rtol=0)

    def test_confidence_is_the_probability_of_the_class(self, fitted, other, count):
        confidence = fitted.confidence(other[0])
        top = fitted.probabilities(other[0]).amax(-1)
        reachable = confidence > 1 / count + 1e-4
        torch.testing.assert_close(top[reachable], confidence[reachable], atol=1e-6, rtol=0)
        # Below 1 / c the row is all but uniform, while the confidence stays what it is.
        assert (top[~reachable] < 1 / count + 2e-4).all()

    def test_temperature_gives_the_confidence(self, fitted, other, count):
        temperature = fitted.temperature(other[0])
        assert (temperature > 0).all() and torch.isfinite(temperature).all()
        confidence = fitted.confidence(other[0])
        scaled = (other[0].logits.double() / temperature[:, None]).softmax(-1).amax(-1)
        reachable = confidence > 1 / count + 1e-4
        torch.testing.assert_close(scaled[reachable], confidence[reachable], atol=1e-6, rtol=0)

    def test_each_sample_is_treated_alone(self, fitted, other):
        together, alone = fitted.confidence(other[0])[:7], fitted.confidence(other[0][:7])
        torch.testing.assert_close(together, alone, atol=1e-6, rtol=0)
        one = torch.cat([fitted.confidence(other[0][i : i + 1]) for i in range(7)])
        torch.testing.assert_close(together, one, atol=1e-6, rtol=0)

    def test_fitting_is_repeatable_to_the_bit_on_any_number_of_threads(self, name, fitted):
        threads = torch.get_num_threads()
        state = torch.random.get_rng_state()
        try:
            torch.set_num_threads(1 if threads > 1 else 2)
            torch.manual_seed(123)
            again = rightly.calibrator(name).fit(*make_for(name))
        finally:
            torch.set_num_threads(threads)
            torch.random.set_rng_state(state)
        assert again.stored().keys() == fitted.stored().keys()
        for key, tensor in fitted.stored().items():
            assert torch.equal(tensor, again.stored()[key]), key

    def test_the_global_random_state_is_not_touched(self, name, fresh):
        before = torch.random.get_rng_state()
        fresh.fit(*make_for(name, n=60))
        assert torch.equal(before, torch.random.get_rng_state())

    def test_inputs_are_untouched_and_fit_returns_itself(self, name, fresh):
        predictions, labels = make_for(name, n=60)
        copies = [x.clone() for x in (predictions.logits, predictions.view_logits, labels)]
        assert fresh.fit(predictions, labels) is fresh
        for copy, now in zip(
            copies, (predictions.logits, predictions.view_logits, labels), strict=True
        ):
            assert torch.equal(copy, now)

    def test_it_refuses_before_fit(self, fresh, other, tmp_path):
        for ask in (fresh.classes, fresh.confidence, fresh.temperature, fresh.probabilities):
            with pytest.raises(NotFittedError, match="is not fitted: call fit"):
                ask(other[0])
        with pytest.raises(NotFittedError, match="fit"):
            fresh.save(tmp_path / "a.safetensors")

    def test_what_is_saved_loads_to_the_same_numbers(self, fitted, name, other, count, tmp_path):
        path = tmp_path / "a.safetensors"
        fitted.save(path)
        loaded = rightly.load_calibrator(path)
        assert torch.equal(loaded.confidence(other[0]), fitted.confidence(other[0]))
        assert torch.equal(loaded.probabilities(other[0]), fitted.probabilities(other[0]))
        with safe_open(path, "pt") as file:
            header = file.metadata()
        assert header["version"] == "5" and header["method"] == f'"{name}"'
        assert header["class_count"] == str(count)

    def test_other_classes_are_refused(self, fitted, count):
        with pytest.raises(ValueError, match=f"must have {count} classes.*got 9"):
            fitted.confidence(make(c=9)[0])

    def test_other_views_or_features_are_refused_where_they_matter(self, fitted, other):
        predictions = other[0]
        turned = predictions.with_views(["view2", "view1", "view0"])
        wide = Predictions(
            predictions.logits, predictions.view_logits, torch.ones(300, 5), predictions.view_names
        )
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

    def test_a_lacking_input_is_asked_for_by_name(self, fresh, sample):
        bare = Predictions(sample[0].logits)
        if fresh.needs:
            with pytest.raises(ValueError, match=f"needs predictions with {fresh.needs[0]}"):
                fresh.fit(bare, sample[1])
        else:
            fresh.fit(bare, sample[1])

    def test_what_is_used_but_not_needed_may_be_missing(self, fresh, sample, other):
        bare = Predictions(sample[0].logits)
        if fresh.uses and not fresh.needs:
            fresh.fit(bare, sample[1])
            alone = fresh.confidence(Predictions(other[0].logits))
            # What it was fitted without, it does not look at.
            torch.testing.assert_close(fresh.confidence(other[0]), alone)

    def test_only_unshifted_rows_are_fitted_unless_it_says_so(self, name, fitted):
        predictions, labels = make_for(name)
        shifted, wrong = make_for(name, seed=5)
        both = rightly.concatenate(
            [
                predictions,
                Predictions(
                    shifted.logits,
                    shifted.view_logits,
                    shifted.features,
                    shifted.view_names,
                    shift=torch.ones(300, dtype=torch.int64),
                ),
            ]
        )
        again = rightly.calibrator(name).fit(both, torch.cat([labels, wrong]))
        same = [
            torch.equal(x, again.stored()[key])
            for key, x in fitted.stored().items()
            if not key.startswith("context.")  # which is learned from shifted rows too
        ]
        assert not all(same) if again.uses_shifted_rows else all(same)

    def test_rows_that_are_all_shifted_are_refused(self, fresh, sample):
        predictions, labels = sample
        marked = Predictions(
            predictions.logits,
            predictions.view_logits,
            predictions.features,
            predictions.view_names,
            shift=np.ones(300, int),
        )
        with pytest.raises(ValueError, match="every row is shifted"):
            fresh.fit(marked, labels)

    @pytest.mark.parametrize("side", ["right", "wrong"])
    def test_one_sided_data_gives_numbers_and_a_warning(self, name, fresh, side):
        predictions, labels = make_for(name, n=600)
        rows = predictions.correct(labels) == (side == "right")
        with pytest.warns(UserWarning, match=f"predicted {side}"):
            fresh.fit(predictions[rows], labels[rows])
        confidence = fresh.confidence(predictions)
        assert torch.isfinite(confidence).all()
        assert torch.isfinite(fresh.probabilities(predictions)).all()

    @pytest.mark.filterwarnings("ignore:.*classes have no calibration sample")
    @pytest.mark.parametrize(
        "kind", ["n = 10", "c = 2", "c = 3", "huge", "ties", "missing class", "double", "mixed"]
    )
    def test_edge_cases_give_numbers(self, name, fresh, kind, count):
        predictions, labels = {
            "n = 10": lambda: make_for(name, n=10),
            "c = 2": lambda: make(n=120, c=2),
            "c = 3": lambda: make_for(name, n=120, **({} if count == 2 else {"c": 3})),
            "huge": lambda: _scaled(make_for(name, n=120), 1e4),
            "ties": lambda: _rounded(make_for(name, n=120)),
            "missing class": lambda: _without_class(make_for(name, n=200), 1),
            "double": lambda: _in(make_for(name, n=120), torch.float64, torch.float64),
            "mixed": lambda: _in(make_for(name, n=120), torch.float32, torch.float64),
        }[kind]()
        fresh.fit(predictions, labels)
        confidence, rows = fresh.confidence(predictions), fresh.probabilities(predictions)
        assert ((confidence >= 0) & (confidence <= 1)).all()
        assert torch.equal(rows.argmax(-1), fresh.classes(predictions))
        torch.testing.assert_close(rows.sum(-1), torch.ones(len(rows)).double())

    def test_numpy_and_other_float_types_give_the_same(self, fitted, other):
        predictions = other[0]
        again = Predictions(
            predictions.logits.numpy(),
            predictions.view_logits.double(),
            predictions.features.numpy(),
            predictions.view_names,
        )
        torch.testing.assert_close(
            fitted.confidence(predictions), fitted.confidence(again), atol=1e-5, rtol=0
        )

    def test_chunks_and_the_layout_of_memory_change_nothing(self, fitted, other, monkeypatch):
        predictions = other[0]
        whole = [ask(predictions) for ask in (fitted.confidence, fitted.probabilities)]
        monkeypatch.setattr(execution, "CHUNK", 7 * predictions.class_count)
        by_columns = Predictions(
            predictions.logits.T.contiguous().T,
            predictions.view_logits,
            predictions.features,
            predictions.view_names,
        )
        for each in (predictions, by_columns):
            parts = [ask(each) for ask in (fitted.confidence, fitted.probabilities)]
            for part, expected in zip(parts, whole, strict=True):
                torch.testing.assert_close(part, expected, atol=1e-6, rtol=0)

    def test_bad_labels_and_bad_predictions_are_refused(self, fresh, sample):
        predictions, labels = sample
        with pytest.raises(TypeError, match="labels must be integers"):
            fresh.fit(predictions, labels.double())
        with pytest.raises(ValueError, match="labels must have shape"):
            fresh.fit(predictions, labels[:-1])
        with pytest.raises(ValueError, match="labels must lie in"):
            fresh.fit(predictions, labels + 1)
        assert not fresh.is_fitted


def _scaled(data, factor):
    predictions, labels = data
    return Predictions(
        predictions.logits * factor,
        predictions.view_logits * factor,
        predictions.features,
        predictions.view_names,
    ), labels


def _rounded(data):
    predictions, labels = data
    return Predictions(
        predictions.logits.round(),
        predictions.view_logits.round(),
        predictions.features.round(),
        predictions.view_names,
    ), labels


def _in(data, own, others):
    """The same in other types of numbers."""
    predictions, labels = data
    return Predictions(
        predictions.logits.to(own),
        predictions.view_logits.to(others),
        predictions.features.to(others),
        predictions.view_names,
    ), labels


def _without_class(data, missing):
    predictions, labels = data
    return predictions[labels != missing], labels[labels != missing]


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
    predictions, labels = _scaled(make(n=2000, c=200), 1.5)
    fitted = rightly.calibrator(name).fit(predictions, labels)
    double, _ = _in((predictions, labels), torch.float64, torch.float64)
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
    with pytest.raises(ValueError, match="temperature_scaling.*got 'plat'.*did you mean 'platt'"):
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
