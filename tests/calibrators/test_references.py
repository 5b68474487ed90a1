"""Each method against independent code, a closed form, or a case whose answer is known."""

import numpy as np
import pytest
import torch
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize, minimize_scalar
from scipy.stats import multivariate_normal
from sklearn.isotonic import IsotonicRegression

import rightly
from rightly import Predictions, losses, metrics
from rightly.calibrators.adaptive_temperature_scaling import _divergence, _log_normal
from rightly.calibrators.ensemble_temperature_scaling import simplex_least_squares
from rightly.calibrators.multi_isotonic import isotonic_map
from rightly.calibrators.spline import natural_spline
from rightly.calibrators.temperature_scaling import (
    best_inverse_temperature,
    nll_inverse_temperature,
)
from tests.conftest import make


def drawn(logits, seed=0):
    """Labels drawn from softmax(logits)."""
    g = torch.Generator().manual_seed(1000 + seed)  # not the seed that drew the logits
    noise = torch.rand(logits.shape, generator=g, dtype=torch.float64)
    return (logits - (-noise.clamp_min(1e-12).log()).log()).argmax(-1)


def normal(n, c, scale=2.0, seed=0):
    return scale * torch.randn(n, c, generator=torch.Generator().manual_seed(seed)).double()


class TestTemperatureScaling:
    @pytest.mark.parametrize("factor", [0.3, 2.0, 3.0, 1e4])
    def test_it_undoes_a_known_factor(self, factor):
        logits = normal(20_000, 8)
        inverse = nll_inverse_temperature(logits * factor, drawn(logits))
        assert 1 / inverse == pytest.approx(factor, rel=0.03)

    def test_it_is_exactly_proportional_to_the_scale_of_logits(self):
        logits, labels = normal(2000, 5), drawn(normal(2000, 5))
        one, ten = (nll_inverse_temperature(logits * s, labels) for s in (1, 10))
        assert one == pytest.approx(10 * ten, rel=1e-9)

    @pytest.mark.parametrize("n", [50, 3000, 20_000])
    def test_the_slope_vanishes_at_the_optimum(self, n):
        logits = normal(n, 6)
        labels = drawn(logits / 1.7)
        found = nll_inverse_temperature(logits, labels)
        b = torch.tensor(found, dtype=torch.float64, requires_grad=True)
        torch.nn.functional.cross_entropy(logits * b, labels).backward()
        assert abs(float(b.grad)) < 1e-8

    def test_a_brute_force_search_finds_the_same(self):
        predictions, labels = make(n=1000)
        fitted = rightly.calibrator("temperature_scaling").fit(predictions, labels)
        logits = predictions.logits.double()

        def nll(t):
            return float(torch.nn.functional.cross_entropy(logits / t, labels))

        best = minimize_scalar(nll, bounds=(0.1, 10), method="bounded", options={"xatol": 1e-9}).x
        assert float(fitted.temperature(predictions)[0]) == pytest.approx(best, abs=1e-6)

    def test_single_precision_is_exact_to_a_millionth(self):
        logits = normal(20_000, 100)
        labels = drawn(logits / 1.5)
        single, double = (1 / nll_inverse_temperature(z, labels) for z in (logits.float(), logits))
        assert single == pytest.approx(double, abs=1e-6)

    def test_a_constant_added_to_a_row_changes_nothing(self):
        logits = normal(500, 4)
        labels = drawn(logits)
        moved = logits + torch.linspace(-9, 9, 500).double()[:, None]
        one, two = (nll_inverse_temperature(z, labels) for z in (logits, moved))
        assert one == pytest.approx(two, rel=1e-9)

    def test_worthless_logits_end_at_the_bound_not_in_a_crash(self):
        logits = normal(300, 4)
        labels = logits.argmin(-1)
        with pytest.warns(UserWarning, match="predicted wrong"):
            fitted = rightly.calibrator("temperature_scaling").fit(Predictions(logits), labels)
        assert float(fitted.confidence(Predictions(logits)).max()) < 0.26

    def test_constant_rows_are_left_alone(self):
        logits = torch.ones(20, 3)
        labels = torch.arange(20) % 3
        fitted = rightly.calibrator("temperature_scaling").fit(Predictions(logits), labels)
        torch.testing.assert_close(
            fitted.confidence(Predictions(logits)), torch.full((20,), 1 / 3).double()
        )

    def test_global_scaling_can_reorder_samples(self):
        p = np.array([[0.5, 0.499, 0.001], [0.52, 0.24, 0.24]])
        confidence = torch.tensor(np.log(p) / 2).softmax(-1).amax(-1)
        np.testing.assert_allclose(confidence, [0.489, 0.424], atol=1e-3)


@pytest.mark.parametrize(
    "name", ["squared_error", "correctness_aware", "balanced_correctness_aware"]
)
@pytest.mark.parametrize("c", [10, 100])
def test_one_temperature_under_any_loss_is_found_exactly(name, c):
    predictions, labels = make(n=800, c=c)
    logits = predictions.logits.double()

    def value(u):
        return float(losses.LOSSES[name](logits * np.exp(u), labels))

    grid = np.linspace(-3, 3, 241)
    near = grid[np.argmin([value(u) for u in grid])]
    best = minimize_scalar(
        value, bounds=(near - 0.05, near + 0.05), method="bounded", options={"xatol": 1e-9}
    ).x
    found = np.log(best_inverse_temperature(logits, labels, losses.LOSSES[name]))
    assert found == pytest.approx(best, abs=1e-4)


class TestEnsembleTemperatureScaling:
    def test_training_error_only_falls(self):
        logits = normal(3000, 5, scale=4)
        labels = drawn(logits / 3)
        predictions, one_hot = Predictions(logits), torch.nn.functional.one_hot(labels, 5)

        def error(p):
            return float((p - one_hot).square().mean())

        ensemble = rightly.calibrator("ensemble_temperature_scaling").fit(predictions, labels)
        inverse = best_inverse_temperature(logits, labels, losses.squared_error)
        tempered = error((logits * inverse).softmax(-1))
        assert error(ensemble.probabilities(predictions)) <= tempered + 1e-12
        assert tempered <= error(logits.softmax(-1)) + 1e-12

    def test_a_uniform_share_of_labels_is_found(self):
        logits = normal(40_000, 6, scale=3)
        g = torch.Generator().manual_seed(4)
        uniform = torch.randint(6, (40_000,), generator=g)
        labels = torch.where(torch.rand(40_000, generator=g) < 0.3, uniform, drawn(logits))
        predictions = Predictions(logits)
        fitted = rightly.calibrator("ensemble_temperature_scaling").fit(predictions, labels)
        expected = 0.7 * logits.softmax(-1) + 0.3 / 6
        assert float((fitted.probabilities(predictions) - expected).abs().mean()) < 0.005

    @pytest.mark.parametrize("seed", range(5))
    def test_weights_agree_with_a_general_solver(self, seed):
        rng = np.random.default_rng(seed)
        basis, truth = rng.random((40, 3)), rng.random(40)
        gram, target = basis.T @ basis, basis.T @ truth
        found = simplex_least_squares(gram, target)
        general = minimize(
            lambda w: w @ gram @ w - 2 * target @ w,
            np.full(3, 1 / 3),
            bounds=[(0, 1)] * 3,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
            method="SLSQP",
            tol=1e-12,
        ).x
        np.testing.assert_allclose(found, general, atol=1e-4)
        assert found.sum() == pytest.approx(1) and (found >= 0).all()


class TestMultiIsotonic:
    @pytest.mark.parametrize(("n", "c", "decimals"), [(400, 7, 9), (2000, 10, 1), (30, 2, 9)])
    def test_it_is_scikit_learns_isotonic_regression_of_all_pairs(self, n, c, decimals):
        logits = normal(n, c, scale=3, seed=n).round(decimals=decimals)
        labels = drawn(logits * 0.7)
        xs, ys = isotonic_map(logits, labels)
        p = (logits - logits.logsumexp(-1, keepdim=True)).exp().flatten().numpy()
        one_hot = torch.nn.functional.one_hot(labels, c).flatten().numpy()
        reference = IsotonicRegression(out_of_bounds="clip").fit(p, one_hot)
        places = np.concatenate([p, np.linspace(0, 1, 1001)])
        np.testing.assert_allclose(np.interp(places, xs, ys), reference.predict(places), atol=1e-12)

    def test_fitted_values_sum_to_the_labels(self):
        logits = normal(500, 6)
        labels = drawn(logits)
        xs, ys = isotonic_map(logits, labels)
        p = (logits - logits.logsumexp(-1, keepdim=True)).exp().flatten()
        assert np.interp(p.numpy(), xs, ys).sum() == pytest.approx(500)
        assert (np.diff(ys) >= 0).all() and (np.diff(xs) > 0).all()

    def test_calibrated_probabilities_stay_near_themselves(self):
        logits = normal(30_000, 5)
        xs, ys = isotonic_map(logits, drawn(logits))
        grid = np.linspace(0.02, 0.98, 50)
        assert np.abs(np.interp(grid, xs, ys) - grid).mean() < 0.01

    def test_rows_that_map_to_zero_keep_their_probabilities(self):
        logits = torch.tensor([[9.0, 0, 0], [0, 9.0, 0], [0, 0, 9.0], [8.0, 0, 0]]).double()
        fitted = rightly.calibrator("multi_isotonic").fit(
            Predictions(logits), torch.tensor([0, 1, 2, 1])
        )
        flat = Predictions(torch.tensor([[0.1, 0.0, 0.0]]))
        rows = fitted.probabilities(flat)
        assert torch.isfinite(rows).all() and rows.argmax(-1).tolist() == [0]


class TestSpline:
    def test_points_on_the_knots_give_scipys_natural_spline(self):
        t, values = np.linspace(0, 1, 6), np.random.default_rng(0).normal(size=6)
        expected = CubicSpline(t, values, bc_type="natural")
        found = natural_spline(t, values, 6)
        fine = np.linspace(0, 1, 101)
        np.testing.assert_allclose(found(fine), expected(fine), atol=1e-13)

    def test_a_known_distortion_is_learned(self):
        rng = np.random.default_rng(0)
        s = rng.uniform(0.5, 1, 20_000)
        predictions = Predictions(np.stack([np.log(s), np.log(1 - s)], 1))
        labels = np.where(rng.random(20_000) < s**2, 0, 1)
        fitted = rightly.calibrator("spline").fit(predictions, labels)
        confidence = fitted.confidence(predictions).numpy()
        assert np.abs(confidence - s**2).mean() < 0.015

    def test_a_constant_gap_is_a_constant_correction(self):
        s = np.linspace(0.6, 0.9, 1000)
        predictions = Predictions(np.stack([np.log(s), np.log(1 - s)], 1))
        labels = np.zeros(1000, int)
        labels[::4] = 1
        fitted = rightly.calibrator("spline").fit(predictions, labels)
        assert float(fitted.confidence(predictions).mean()) == pytest.approx(0.75, abs=0.01)


class TestProximity:
    def test_noise_features_leave_the_bayes_estimate_of_confidence(self):
        rng = np.random.default_rng(0)
        s = rng.uniform(0.5, 0.99, 6000)
        labels = np.where(rng.random(6000) < s, 0, 1)
        predictions = Predictions(
            np.stack([np.log(s), np.log(1 - s)], 1), features=rng.normal(size=(6000, 4))
        )
        fitted = rightly.calibrator("proximity").fit(predictions[:4000], labels[:4000])
        confidence = fitted.confidence(predictions[4000:]).numpy()
        assert np.abs(confidence - s[4000:]).mean() < 0.04

    def test_far_from_everything_the_raw_confidence_stays(self):
        predictions, labels = make(n=200)
        fitted = rightly.calibrator("proximity").fit(predictions, labels)
        alien = Predictions(torch.tensor([[5000.0] + [0.0] * 9]), features=-torch.ones(1, 16))
        assert float(fitted.confidence(alien)) == pytest.approx(1.0)

    def test_the_bin_variant_moves_confidence_halfway_to_the_bins_accuracy(self):
        predictions, labels = make(n=4000)
        fitted = rightly.calibrator("proximity_bins").fit(predictions, labels)
        raw = float(predictions.confidence.mean())
        accuracy = float(predictions.correct(labels).double().mean())
        now = float(fitted.confidence(predictions).mean())
        assert now == pytest.approx((raw + accuracy) / 2, abs=0.01)


class TestTrueClassProbability:
    def test_it_can_learn_its_target(self):
        predictions, labels = make(n=2000)
        target = predictions.logits.softmax(-1).gather(-1, labels[:, None]).squeeze(-1)
        telling = Predictions(predictions.logits, features=target.logit()[:, None])
        fitted = rightly.calibrator("true_class_probability").fit(telling, labels)
        assert float((fitted.confidence(telling) - target).abs().mean()) < 0.05


class TestAdaptiveTemperatureScaling:
    def test_the_divergence_is_torchs(self):
        a, b, s, t = (
            torch.rand(5, 3, generator=torch.Generator().manual_seed(i)) for i in range(4)
        )
        expected = torch.distributions.kl_divergence(
            torch.distributions.Normal(a, s + 0.1), torch.distributions.Normal(b, t + 0.1)
        ).sum(-1)
        torch.testing.assert_close(_divergence(a, s + 0.1, b, t + 0.1), expected)
        assert float(_divergence(a, s + 0.1, a, s + 0.1).abs().max()) < 1e-6

    def test_log_densities_are_scipys_up_to_a_constant(self):
        g = torch.Generator().manual_seed(0)
        code, mean = torch.randn(4, 3, generator=g), torch.randn(2, 3, generator=g)
        raw = torch.rand(2, 3, generator=g)
        found = _log_normal(code, mean, raw)
        spread = torch.nn.functional.softplus(raw)
        for k in range(2):
            expected = multivariate_normal(mean[k], np.diag(spread[k] ** 2)).logpdf(code)
            np.testing.assert_allclose(
                found[:, k] - 1.5 * np.log(2 * np.pi), expected, rtol=1e-4, atol=1e-4
            )

    def test_constant_features_leave_temperature_scaling(self):
        predictions, labels = make(n=1500)
        flat = Predictions(predictions.logits, features=torch.ones(1500, 4))
        adaptive = rightly.calibrator("adaptive_temperature_scaling").fit(flat, labels)
        plain = rightly.calibrator("temperature_scaling").fit(flat, labels)
        one, two = adaptive.temperature(flat), plain.temperature(flat)
        assert float(one.std()) < 1e-6
        assert float(one[0]) == pytest.approx(float(two[0]), rel=0.1)


class TestLearnedTemperature:
    def informative(self, n=4000, seed=0):
        """Views that agree with the prediction exactly when it is right."""
        g = torch.Generator().manual_seed(seed)
        logits = normal(n, 5, seed=seed)
        labels = drawn(logits / 2, seed=seed)
        right = logits.argmax(-1) == labels
        views = torch.where(right[:, None, None], logits[:, None], -logits[:, None])
        views = views + 0.3 * torch.randn(n, 3, 5, generator=g).double()
        return Predictions(logits, views), labels

    @pytest.mark.parametrize(
        "name",
        ["ca_views", "ce_views", "ca_ce_views", "ca_balanced_views", "correctness_network"],
    )
    def test_views_that_tell_right_from_wrong_are_used(self, name):
        fitted = rightly.calibrator(name).fit(*self.informative())
        test, labels = self.informative(seed=1)
        correct = test.correct(labels)
        assert metrics.auroc(fitted.confidence(test), correct) > 0.97
        assert metrics.auroc(test.confidence, correct) < 0.85

    @pytest.mark.parametrize("name", ["ca_only", "ca_views"])
    def test_the_loss_on_calibration_data_does_not_rise(self, name):
        predictions, labels = make(n=2000)
        fitted = rightly.calibrator(name).fit(predictions, labels)
        correct = predictions.correct(labels)
        now = metrics.brier(fitted.confidence(predictions), correct)
        assert now <= metrics.brier(predictions.confidence, correct)

    def test_useless_views_leave_one_temperature_for_all(self):
        predictions, labels = make(n=2000, noise=0.0)
        g = torch.Generator().manual_seed(0)
        noise = torch.randn(2000, 3, 10, generator=g)
        fitted = rightly.calibrator("ce_views").fit(Predictions(predictions.logits, noise), labels)
        t = fitted.temperature(Predictions(predictions.logits, noise)).log()
        assert float(t.std()) < 0.15

    def test_every_seed_trains(self):
        predictions, labels = self.informative(1000)
        correct = predictions.correct(labels)
        for seed in range(6):
            fitted = rightly.calibrator("ca_views", seed=seed).fit(predictions, labels)
            assert metrics.auroc(fitted.confidence(predictions), correct) > 0.95

    def test_many_classes_use_the_table_and_train_as_well(self):
        predictions, labels = make(n=1500, c=60)
        fitted = rightly.calibrator("ca_views").fit(predictions, labels)
        correct = predictions.correct(labels)
        now = metrics.brier(fitted.confidence(predictions), correct)
        assert now <= metrics.brier(predictions.confidence, correct)

    def test_the_released_recipe_often_starts_dead(self):
        predictions, labels = make(n=300)
        pinned = 0
        for seed in range(20):
            fitted = rightly.calibrator("ca_views_released", seed=seed).fit(predictions, labels)
            temperature = fitted.temperature(predictions)
            pinned += bool((temperature == temperature.min()).all())
        assert 4 <= pinned <= 16
