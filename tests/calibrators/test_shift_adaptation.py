"""Adapting to a batch without labels: what must hold for every calibrator, and what it gains."""

import warnings

import numpy as np
import pytest
import torch

import rightly
from rightly import Predictions
from rightly.calibrators import CALIBRATORS, serialization
from rightly.calibrators.shift_adaptation import ShiftError
from rightly.demo_data import load_demo_set
from rightly.metrics import auroc, ece
from tests.calibrators.quick import choose_quick_arguments

FITTED: dict[str, rightly.Calibrator] = {}
OF_FEATURES = ("adaptive_temperature_scaling", "true_class_probability")


def simulate(n: int, seed: int, strength: float = 1.0) -> tuple[Predictions, torch.Tensor]:
    """A classifier of four classes that is surer than it should be; views are noisier copies.

    Weaker signals stand for shifted images.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, n)
    signal = strength * rng.gamma(2.0, 1.0, n)
    clean = signal[:, None] * np.eye(4)[labels]
    noise = rng.normal(size=(n, 4))

    def look(keep: float) -> np.ndarray:
        return 2.0 * (keep * clean + 0.7 * noise + 0.5 * rng.normal(size=(n, 4)))

    views = np.stack([look(0.85), look(0.7), look(0.55)], 1)
    features = np.concatenate([clean, noise], 1)
    return Predictions(look(1.0), views, features, ("a", "b", "c")), torch.from_numpy(labels)


@pytest.fixture(scope="module")
def shifted():
    return simulate(600, seed=1, strength=0.5)


def fit(name: str) -> rightly.Calibrator:
    if name not in FITTED:
        calibrator = rightly.calibrator(name, **choose_quick_arguments(name))
        FITTED[name] = calibrator.fit(*simulate(800, seed=0))
        if "features" not in calibrator.needs:
            calibrator.learn_shift(*simulate(800, seed=0))
    return FITTED[name]


@pytest.mark.parametrize(
    "name", [name for name, method in CALIBRATORS.items() if not method.fits_classes]
)
class TestEveryCalibrator:
    @pytest.fixture
    def fitted(self, name):
        fitted = fit(name)
        if "features" in fitted.needs:
            pytest.skip(
                "needs augmented rows: see test_methods_of_features_learn_from_shifted_rows"
            )
        return fitted

    def test_ranking_and_class_stay(self, fitted, shifted):
        test, labels = shifted
        adapted = fitted.adapt(test)
        before, after = fitted.confidence(test), adapted.confidence(test)
        order = before.argsort(stable=True)
        assert (after[order].diff() >= 0).all()
        assert torch.equal(adapted.classes(test), fitted.classes(test))
        correct = fitted.classes(test) == labels
        # No order is reversed (above); values that only rounding tells apart may meet.
        assert auroc(after, correct) == pytest.approx(auroc(before, correct), abs=1e-3)
        assert torch.equal(adapted.probabilities(test).argmax(-1), adapted.classes(test))

    def test_no_shift_is_the_unadapted_calibrator_bit_for_bit(self, fitted, shifted):
        test = shifted[0]
        plain = fitted.compute(test)
        at_zero = fitted.adapt(test).compute(test, torch.zeros(()).double())
        for name in ("classes", "confidence", "probabilities", "unadapted_confidence"):
            assert torch.equal(getattr(plain, name), getattr(at_zero, name))

    def test_it_is_a_function_of_each_sample_alone(self, fitted, shifted):
        if not fitted.is_pointwise:
            pytest.skip("looks at the whole batch anyway")
        test = shifted[0]
        adapted = fitted.adapt(test)
        some = torch.tensor([5, 17, 400])
        torch.testing.assert_close(adapted.confidence(test[some]), adapted.confidence(test)[some])

    def test_it_saves_and_loads_adapted_or_not(self, fitted, shifted, tmp_path):
        test = shifted[0]
        adapted = fitted.adapt(test)
        for one in (adapted, fitted):
            one.save(tmp_path / "c.safetensors")
            loaded = rightly.load_calibrator(tmp_path / "c.safetensors")
            assert torch.equal(loaded.confidence(test), one.confidence(test))
            assert torch.equal(loaded.adapt(test).confidence(test), adapted.confidence(test))

    def test_adapting_again_starts_from_the_unadapted(self, fitted, shifted):
        test, other = shifted[0], simulate(300, seed=2)[0]
        once, twice = fitted.adapt(other), fitted.adapt(test).adapt(other)
        assert torch.equal(once.confidence(other), twice.confidence(other))


def test_the_level_follows_the_batch(shifted):
    test, labels = shifted
    fitted = fit("temperature_scaling")
    accuracy = float((test.classes == labels).double().mean())
    before = float(fitted.confidence(test).mean()) - accuracy
    after = float(fitted.adapt(test).confidence(test).mean()) - accuracy
    assert before > 0.05 and abs(after) < before / 2


def test_small_batches_are_believed_less(shifted):
    fitted, test = fit("temperature_scaling"), shifted[0]
    one = test[:1]
    repeated = Predictions(one.logits.repeat(500, 1), one.view_logits.repeat(500, 1, 1))
    alone = fitted.adapt(one).shift.estimate
    many = fitted.adapt(repeated).shift.estimate
    assert 0 < abs(float(alone)) < 0.5 * abs(float(many))


def test_estimates_beyond_what_was_learned_are_clipped_with_a_warning():
    fitted = fit("temperature_scaling")
    blank = Predictions(torch.zeros(20_000, 4) + 1e-3 * torch.eye(4).repeat(5_000, 1))
    with pytest.warns(UserWarning, match="beyond those that temperature_scaling learned from"):
        adapted = fitted.adapt(blank)
    low, high = adapted.shift.limits.tolist()
    assert low <= float(adapted.shift.estimate) <= high


def test_the_record_says_what_it_was_adapted_to(shifted, tmp_path):
    fitted = rightly.fit(*simulate(800, seed=0), "temperature_scaling", threshold=0.8)
    adapted = fitted.adapt(shifted[0])
    assert adapted.threshold == 0.8 and adapted.record["adapted"]["samples"] == 600
    assert "adapted to a batch" in repr(adapted) and "adapted" not in repr(fitted)
    adapted.save(tmp_path / "c.safetensors")
    assert rightly.load_calibrator(tmp_path / "c.safetensors").record == adapted.record


def test_without_views_or_shifts_it_refuses_and_says_what_to_collect(tmp_path):
    predictions, labels = simulate(300, seed=0)
    bare = predictions.without_views()
    fitted = rightly.calibrator("temperature_scaling").fit(bare, labels)
    with pytest.raises(ShiftError, match="no shifted rows, and no views.*--shifts"):
        fitted.learn_shift(bare, labels)
    with pytest.raises(ShiftError, match="no shifted rows, and no views.*--shifts"):
        fitted.adapt(predictions)
    fitted.save(tmp_path / "c.safetensors")
    with pytest.raises(ShiftError, match="no shifted rows, and no views"):
        rightly.load_calibrator(tmp_path / "c.safetensors").adapt(predictions)


def test_what_never_learned_of_shifts_says_what_to_call(shifted):
    fitted = rightly.calibrator("temperature_scaling").fit(*simulate(300, seed=0))
    remedy = (
        r"^temperature_scaling cannot be adapted: call learn_shift\(predictions, labels\) with the "
        "calibration data first$"
    )
    for ask in (fitted.adapt, fitted.expected_accuracy, lambda _: rightly.Stream(fitted)):
        with pytest.raises(ShiftError, match=remedy):
            ask(shifted[0])


def test_what_was_loaded_learns_it_too_and_a_new_fit_forgets_it(shifted, tmp_path):
    data = simulate(800, seed=0)
    fitted = rightly.calibrator("temperature_scaling").fit(*data)
    fitted.save(tmp_path / "c.safetensors")
    assert fitted.shift is None  # saving learns nothing
    loaded = rightly.load_calibrator(tmp_path / "c.safetensors")
    assert loaded.learn_shift(*data) is loaded
    adapted = fit("temperature_scaling").adapt(shifted[0])
    assert torch.equal(
        loaded.adapt(shifted[0]).confidence(shifted[0]), adapted.confidence(shifted[0])
    )
    assert loaded.fit(*data).shift is None


def test_a_file_does_not_depend_on_what_was_adapted_before(shifted, tmp_path):
    fitted, names = fit("temperature_scaling"), ("before", "after")
    fitted.save(tmp_path / "before.safetensors")
    fitted.adapt(shifted[0])
    fitted.adapt(*shifted)
    fitted.save(tmp_path / "after.safetensors")
    # The checksum of each is over header and tensors, whose order in a file may differ.
    one, two = (serialization.read(tmp_path / f"{name}.safetensors") for name in names)
    assert one[0] == two[0] and one[1].keys() == two[1].keys()
    assert all(torch.equal(x, two[1][name]) for name, x in one[1].items())


def test_too_few_images_are_refused():
    predictions, labels = simulate(40, seed=0)
    fitted = rightly.calibrator("temperature_scaling").fit(predictions, labels)
    with pytest.raises(ShiftError, match="40 unshifted calibration images.*too few"):
        fitted.learn_shift(predictions, labels)


def augment(predictions: Predictions, labels: torch.Tensor) -> tuple[Predictions, torch.Tensor]:
    """The same images and two kinds of shift of them."""
    n = len(predictions)
    kinds = [simulate(n, seed=0, strength=strength) for strength in (0.7, 0.4)]
    assert all(torch.equal(labels, other) for _, other in kinds)
    parts = [predictions, *(part for part, _ in kinds)]
    return Predictions(
        torch.cat([part.logits for part in parts]),
        torch.cat([part.view_logits for part in parts]),
        torch.cat([part.features for part in parts]),
        predictions.view_names,
        shift=torch.arange(3).repeat_interleave(n),
        shift_names=("fog:3", "rain:3"),
        image=torch.arange(n).repeat(3),
    ), labels.repeat(3)


@pytest.mark.parametrize("name", OF_FEATURES)
def test_methods_of_features_learn_from_shifted_rows_only(name, shifted):
    predictions, labels = simulate(800, seed=0)
    with pytest.raises(ShiftError, match="no features of views"):
        fit(name).learn_shift(predictions, labels)
    both = augment(predictions, labels)
    fitted = rightly.calibrator(name).fit(*both).learn_shift(*both)
    adapted = fitted.adapt(shifted[0])
    before, after = (float(one.confidence(shifted[0]).mean()) for one in (fitted, adapted))
    assert after <= before


class TestExpectedAccuracy:
    def test_it_is_the_mean_adapted_confidence_within_its_range(self, shifted):
        test, labels = shifted
        fitted = fit("temperature_scaling")
        value, low, high = fitted.expected_accuracy(test)
        assert value == pytest.approx(float(fitted.adapt(test).confidence(test).mean()), abs=1e-12)
        assert low < float((test.classes == labels).double().mean()) < high

    def test_a_higher_level_has_a_wider_range(self, shifted):
        fitted = fit("temperature_scaling")
        narrow, wide = (
            fitted.expected_accuracy(shifted[0], confidence_level=x) for x in (0.5, 0.99)
        )
        assert wide.low < narrow.low < narrow.high < wide.high
        with pytest.raises(
            ValueError, match="confidence_level must be a fraction in \\(0, 1\\), got 1"
        ):
            fitted.expected_accuracy(shifted[0], confidence_level=1.0)

    def test_one_kind_of_shift_gives_no_range(self, shifted):
        predictions, labels = simulate(800, seed=0)
        one = predictions.with_views(["a"])
        fitted = rightly.calibrator("temperature_scaling").fit(one, labels)
        fitted.learn_shift(one, labels)
        with pytest.raises(ShiftError, match="one kind of shift"):
            fitted.expected_accuracy(shifted[0])


class TestRealPredictions:
    """A ResNet-20 on CIFAR-10: context learned from three views only."""

    @pytest.mark.parametrize("method", ["temperature_scaling", "correctness_logistic"])
    def test_it_lowers_ece_under_shift(self, method):
        cal = load_demo_set("cal")
        fitted = rightly.calibrator(method).fit(*cal).learn_shift(*cal)
        test, labels = load_demo_set("haze")
        correct = test.classes == labels
        before = ece(fitted.confidence(test), correct)
        assert ece(fitted.adapt(test).confidence(test), correct) < 0.9 * before

    def test_a_skewed_class_mix_is_not_taken_for_a_shift(self):
        cal = load_demo_set("cal")
        fitted = rightly.calibrator("temperature_scaling").fit(*cal).learn_shift(*cal)
        test, labels = load_demo_set("ind")
        rng, worse = np.random.default_rng(0), []
        for _ in range(10):
            share = rng.dirichlet(np.full(10, 0.3))[labels.numpy()]
            rows = torch.from_numpy(rng.choice(len(labels), 1000, p=share / share.sum()))
            batch, correct = test[rows], (test.classes == labels)[rows].double().mean()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a mix may be easier than any that was learned
                adapted = fitted.adapt(batch).confidence(batch)
            gaps = [abs(float(c.mean() - correct)) for c in (fitted.confidence(batch), adapted)]
            worse.append(gaps[1] - gaps[0])
        assert np.mean(worse) < 0.01
