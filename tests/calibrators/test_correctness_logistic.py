"""Rightly's own calibrator: what it learns, from which rows, and with how much expected_shift."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

import rightly
from rightly import Predictions
from rightly.calibrators.correctness_logistic.pseudo_shifted import (
    pseudo_shifted,
    view_coupling,
)
from rightly.calibrators.correctness_logistic.random_features import FAR, RandomFeatures
from rightly.calibrators.solvers.ridge_logistic import Rows, fit_platt, fit_ridge_logistic
from rightly.cli import main
from rightly.transforms.shifts import STANDARD_SHIFTS
from tests.conftest import make

RIGHT = 4.0


def shaken(n=1500, strength=0.0, seed=0, shift=None, names=()):
    """Classes with a clear logit, but for noise that also reaches the views; a shift adds more."""
    g = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 10, (n,), generator=g)
    clear = torch.nn.functional.one_hot(labels, 10) * RIGHT
    noise = (1 + strength) * torch.randn(n, 10, generator=g)
    own = clear + noise + torch.randn(n, 10, generator=g)
    views = clear[:, None] + noise[:, None] + torch.randn(n, 3, 10, generator=g)
    marks = None if shift is None else np.full(n, shift)
    image = None if shift is None else np.arange(n)
    predictions = Predictions(2 * own, 2 * views, shift=marks, shift_names=names, image=image)
    return predictions, labels


def rehearsing(names=("gaussian_noise:3", "gaussian_blur:3")):
    parts = [shaken(shift=0, names=names)]
    parts += [shaken(700, 0.8 + 0.1 * s, 10 + s, s, names) for s in range(1, len(names) + 1)]
    joined = rightly.concatenate([predictions for predictions, _ in parts])
    return joined, torch.cat([labels for _, labels in parts])


def solve(rows, held_back, class_held_back, class_count):
    weighed = fit_ridge_logistic(rows, held_back, class_held_back, class_count)
    score = weighed.logits(rows.evidence, rows.classes)
    return weighed.along(fit_platt(score, rows.correct, rows.weight))


def overconfidence(fitted, predictions, labels):
    right = predictions.correct(labels).double().mean()
    return float(fitted.confidence(predictions).mean() - right)


def test_rehearsal_lowers_overconfidence_under_a_shift_it_has_not_seen():
    plain = rightly.calibrator("rightly").fit(*shaken())
    rehearsed = rightly.calibrator("rightly").fit(*rehearsing())
    shifted = shaken(strength=0.9, seed=99)
    assert overconfidence(plain, *shifted) > 0.02
    assert overconfidence(rehearsed, *shifted) < 0.95 * overconfidence(plain, *shifted)


@pytest.mark.parametrize(
    ("data", "right", "most"),
    [(shaken, RIGHT, 0.005), (rehearsing, RIGHT, 0.016), (rehearsing, 6.0, 0.016)],
)
def test_shift_costs_in_distribution_no_more_than_it_may(data, right, most, monkeypatch):
    monkeypatch.setattr("tests.calibrators.test_correctness_logistic.RIGHT", right)
    predictions, labels = data()
    plain = predictions.unshifted()
    fitted = rightly.calibrator("rightly").fit(predictions, labels)
    wrong = float((~predictions.correct(labels)[plain]).double().mean())
    most *= min(1.0, wrong / 0.1)  # the classifier hardly errs: nor may much be lost
    lost = -overconfidence(fitted, predictions[plain], labels[plain])
    assert lost == pytest.approx(most, abs=1e-4)
    careless = rightly.calibrator("rightly", expected_shift=0.0).fit(predictions, labels)
    assert abs(overconfidence(careless, predictions[plain], labels[plain])) < 1e-3


@pytest.mark.parametrize("data", [shaken, rehearsing])
def test_more_caution_never_raises_confidence_under_shift(data):
    predictions, labels = data()
    shifted, _ = shaken(strength=0.9, seed=99)
    means = [
        float(
            rightly.calibrator("rightly", expected_shift=c)
            .fit(predictions, labels)
            .confidence(shifted)
            .mean()
        )
        for c in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]
    assert means == sorted(means, reverse=True)
    assert means[0] - means[-1] > 0.002


def test_without_views_and_rehearsal_there_is_nothing_to_be_cautious_by():
    predictions, labels = make()
    bare = Predictions(predictions.logits)
    low, high = (
        rightly.calibrator("rightly", expected_shift=c).fit(bare, labels).confidence(bare)
        for c in (0.0, 1.0)
    )
    torch.testing.assert_close(low, high)


def test_without_caution_rehearsal_is_not_looked_at():
    rehearsed = rightly.calibrator("rightly", expected_shift=0.0).fit(
        *rehearsing(STANDARD_SHIFTS[:4])
    )
    plain = rightly.calibrator("rightly", expected_shift=0.0).fit(*shaken())
    shown, _ = shaken(seed=5)
    torch.testing.assert_close(rehearsed.confidence(shown), plain.confidence(shown))


def test_the_scale_of_logits_does_not_matter():
    predictions, labels = make()
    scaled = Predictions(predictions.logits * 5, predictions.view_logits * 5)
    once = rightly.calibrator("rightly").fit(predictions, labels)
    again = rightly.calibrator("rightly").fit(scaled, labels)
    torch.testing.assert_close(
        once.confidence(predictions), again.confidence(scaled), atol=1e-4, rtol=0
    )


def test_fit_says_what_was_rehearsed(tmp_path, capsys):
    rightly.save(tmp_path / "cal.npz", *rehearsing())
    cal, out = str(tmp_path / "cal.npz"), str(tmp_path / "c.safetensors")
    for method, more in (("rightly", " and 1400 of shifted images"), ("temperature_scaling", "")):
        assert main(["fit", cal, "--method", method, "--out", out]) == 0
        assert f"1500 predictions of 10 classes{more}, is in" in capsys.readouterr().out


def test_fit_takes_caution_and_neighbours_for_those_who_have_them(tmp_path, capsys):
    predictions, labels = make(n=400)
    rightly.save(tmp_path / "cal.npz", predictions, labels)
    cal, out = str(tmp_path / "cal.npz"), str(tmp_path / "c.safetensors")
    assert main(["fit", cal, "--expected-shift", "0.8", "--neighbours", "90", "--out", out]) == 0
    fitted = rightly.load_calibrator(out)
    assert (fitted.expected_shift, fitted.near_features.shape[0]) == (0.8, 90)
    again = rightly.calibrator("rightly", expected_shift=0.8, neighbours=90).fit(
        predictions, labels
    )
    assert torch.equal(again.confidence(predictions), fitted.confidence(predictions))
    assert main(["fit", cal, "--method", "auto", "--expected-shift", "0.8", "--out", out]) == 0
    for option in ("--expected-shift", "--neighbours"):
        refused = ["fit", cal, "--method", "temperature_scaling", option, "1", "--out", out]
        assert main(refused) == 2
        assert f"{option} is for --method rightly" in capsys.readouterr().err


def test_views_that_agree_raise_confidence():
    predictions, labels = shaken()
    fitted = rightly.calibrator("rightly").fit(predictions, labels)
    own = predictions.logits
    agreeing = Predictions(own, own[:, None].expand(-1, 3, -1))
    opposed = Predictions(own, -own[:, None].expand(-1, 3, -1))
    assert fitted.confidence(agreeing).mean() > fitted.confidence(opposed).mean() + 0.2


def test_rows_of_many_more_classes_than_samples_are_fitted():
    predictions, labels = make(n=80, c=300)
    fitted = rightly.calibrator("rightly").fit(predictions, labels)
    assert torch.isfinite(fitted.confidence(make(n=80, c=300, seed=3)[0])).all()


def test_views_take_turns_in_the_place_of_the_image_and_the_others_follow():
    predictions, labels = make(n=50)
    shifted = pseudo_shifted(predictions, labels)
    share = view_coupling(predictions, labels).float()
    for i in range(50):
        turn = i % 3
        seen = predictions.view_logits[i]
        assert torch.equal(shifted.logits[i], seen[turn])
        assert torch.equal(shifted.view_logits[i, turn], seen[turn])
        for k in {0, 1, 2} - {turn}:
            expected = seen[k] + share[k] * (seen[turn] - predictions.logits[i])
            torch.testing.assert_close(shifted.view_logits[i, k], expected)


class TestShownToo:
    """How far a view follows the image."""

    def test_it_is_the_squared_slope_within_classes(self):
        predictions, labels = make(n=300, c=4)
        truth = labels.numpy()

        def apart(logits):
            rows = logits.numpy() - logits.numpy().mean(1, keepdims=True)
            means = np.stack([rows[truth == k].mean(0) for k in range(4)])
            return (rows - means[truth]).ravel()

        own = apart(predictions.logits)
        slopes = [
            np.polyfit(own, apart(predictions.view_logits[:, k]), 1)[0]
            for k in range(predictions.view_logits.shape[1])
        ]
        found = view_coupling(predictions, labels)
        np.testing.assert_allclose(found, np.clip(slopes, 0, 1) ** 2, atol=1e-5)

    def test_the_image_itself_follows_wholly_and_noise_or_the_opposite_not_at_all(self):
        own, labels = make(n=4000)
        noise = torch.randn(own.logits.shape, generator=torch.Generator().manual_seed(1))
        views = torch.stack([own.logits, noise, -own.logits], 1)
        found = view_coupling(Predictions(own.logits, views), labels)
        torch.testing.assert_close(found, torch.tensor([1.0, 0, 0]).double(), atol=1e-3, rtol=0)

    def test_images_that_do_not_differ_within_their_class_are_no_reason_to_follow(self):
        labels = torch.arange(10).repeat(3)
        logits = torch.eye(10)[labels] * RIGHT
        found = view_coupling(Predictions(logits, torch.randn(30, 2, 10)), labels)
        assert torch.equal(found, torch.zeros(2).double())


class TestNeighbours:
    @pytest.fixture
    def sample(self):
        """Features that tell the true class, which logits hardly do."""
        predictions, labels = shaken(600)
        g = torch.Generator().manual_seed(2)
        clear = torch.nn.functional.one_hot(labels, 10) + 0.1 * torch.randn(600, 10, generator=g)
        return Predictions(predictions.logits, predictions.view_logits, clear), labels

    @pytest.mark.parametrize("views", [True, False])
    def test_lying_among_samples_of_its_class_raises_confidence(self, sample, views):
        predictions, labels = sample
        if not views:
            predictions = Predictions(predictions.logits, features=predictions.features)
        fitted = rightly.calibrator("rightly", neighbours=300).fit(predictions, labels)
        assert fitted.near_features.shape == (300, 10)
        correct = predictions.correct(labels)
        without = rightly.calibrator("rightly").fit(predictions, labels)
        ranked, unranked = (
            rightly.metrics.auroc(one.confidence(predictions), correct) for one in (fitted, without)
        )
        assert 1 - ranked < 0.7 * (1 - unranked)

    def test_they_are_saved(self, sample, tmp_path):
        fitted = rightly.calibrator("rightly", neighbours=50).fit(*sample)
        fitted.save(tmp_path / "c.safetensors")
        loaded = rightly.load_calibrator(tmp_path / "c.safetensors")
        assert torch.equal(loaded.confidence(sample[0]), fitted.confidence(sample[0]))

    def test_features_are_asked_for(self, sample):
        asked = rightly.calibrator("rightly", neighbours=50)
        with pytest.raises(ValueError, match="needs predictions with features"):
            asked.fit(*shaken())
        asked.fit(*sample)
        with pytest.raises(ValueError, match="needs predictions with features"):
            asked.confidence(shaken()[0])

    def test_a_number_below_nought_is_refused(self):
        with pytest.raises(ValueError, match="neighbours must be 0"):
            rightly.calibrator("rightly", neighbours=-1)


class TestHiddenUnits:
    def test_they_are_what_numpy_makes_of_them(self):
        columns = torch.randn(50, 4, dtype=torch.float64) * 3 + 1
        columns[:, 3] = 7.0  # never changes
        units = RandomFeatures.drawn(columns, 6)
        x = columns.numpy()
        spread = x.std(0)
        spread[3] = 1.0
        z = np.clip((x - x.mean(0)) / spread, -FAR, FAR) @ units.directions.numpy()
        z = z + units.starts.numpy()
        np.testing.assert_allclose(units(columns).numpy()[:, :4], x)
        np.testing.assert_allclose(units(columns).numpy()[:, 4:], z / (1 + np.exp(-z)), rtol=1e-10)

    def test_far_out_nothing_new_is_claimed(self):
        columns = torch.randn(50, 3, dtype=torch.float64)
        units = RandomFeatures.drawn(columns, 5)
        far, farther = (units(torch.full((1, 3), x).double())[:, 3:] for x in (1e3, 1e6))
        assert torch.equal(far, farther)

    def test_they_are_drawn_alike_each_time(self):
        columns = torch.randn(50, 3, dtype=torch.float64)
        once, again = (RandomFeatures.drawn(columns, 5)(columns) for _ in range(2))
        assert torch.equal(once, again)

    @pytest.mark.parametrize(("kinds", "used"), [(3, False), (4, True)])
    def test_it_takes_several_kinds_of_shifts_to_use_them(self, kinds, used):
        fitted = rightly.calibrator("rightly").fit(*rehearsing(STANDARD_SHIFTS[:kinds]))
        assert bool(fitted.starts.shape[0]) == used
        assert 0 < float(fitted.stored()["rehearsed"]) <= 1

    @pytest.mark.parametrize("kinds", [0, 4])
    def test_fitted_without_views_it_ignores_them(self, kinds):
        joined, labels = rehearsing(STANDARD_SHIFTS[:kinds])
        fitted = rightly.calibrator("rightly").fit(joined.without_views(), labels)
        shown, _ = shaken(seed=5)
        assert bool(fitted.starts.shape[0]) == bool(kinds)
        bare = fitted.confidence(Predictions(shown.logits))
        assert torch.equal(fitted.confidence(shown), bare)

    def test_severities_of_one_kind_are_one_kind(self):
        names = tuple(f"gaussian_noise:{severity}" for severity in range(1, 6))
        fitted = rightly.calibrator("rightly").fit(*rehearsing(names))
        assert not fitted.starts.shape[0]

    def test_they_are_saved_and_forgotten_at_the_next_fit(self, tmp_path):
        data = rehearsing(STANDARD_SHIFTS[:4])
        fitted = rightly.calibrator("rightly").fit(*data)
        fitted.save(tmp_path / "c.safetensors")
        loaded = rightly.load_calibrator(tmp_path / "c.safetensors")
        shown, _ = shaken(seed=5)
        assert torch.equal(loaded.confidence(shown), fitted.confidence(shown))
        once = rightly.calibrator("rightly").fit(*shaken()).confidence(shown)
        assert torch.equal(fitted.fit(*shaken()).confidence(shown), once)

    def test_they_fit_what_no_straight_line_can(self):
        """Two columns that speak for the class together and against it apart."""
        g = torch.Generator().manual_seed(0)
        x = torch.randn(4000, 2, generator=g, dtype=torch.float64)
        correct = torch.rand(4000, generator=g).double() < (2 * x[:, 0] * x[:, 1]).sigmoid()
        classes, ones = torch.zeros(4000, dtype=torch.int64), torch.ones(4000).double()
        squares = []
        for columns in (x, RandomFeatures.drawn(x, 60)(x)):
            rows = Rows(columns, classes, correct, ones)
            found = solve(rows, torch.ones(columns.shape[1]).double(), 1.0, 1)
            p = found.logits(columns, classes).sigmoid()
            squares.append(float((p - correct.double()).square().mean()))
        assert squares[0] > 0.24 and squares[1] < 0.18

    def test_hundreds_of_classes_are_not_given_a_column_each(self):
        names = STANDARD_SHIFTS[:4]
        parts, truth = [], []
        for s in range(5):
            predictions, labels = make(n=120, c=100, seed=s)
            marks = {"shift": np.full(120, s), "shift_names": names}
            parts.append(Predictions(predictions.logits, predictions.view_logits, **marks))
            truth.append(labels)
        fitted = rightly.calibrator("rightly").fit(rightly.concatenate(parts), torch.cat(truth))
        assert fitted.directions.shape[0] == 4 + 3  # evidence of correctness with three views
        assert torch.isfinite(fitted.confidence(parts[0])).all()


class TestLogistic:
    @pytest.fixture
    def rows(self):
        g = torch.Generator().manual_seed(0)
        x = torch.randn(400, 3, generator=g, dtype=torch.float64) * 2 + 1
        classes = torch.randint(0, 4, (400,), generator=g)
        score = x[:, 0] - 0.5 * x[:, 1] + 0.5 * classes
        correct = torch.rand(400, generator=g, dtype=torch.float64) < score.sigmoid()
        weight = torch.rand(400, generator=g, dtype=torch.float64) + 0.5
        return Rows(x, classes, correct, weight)

    def test_it_is_solved_as_by_an_independent_minimiser(self, rows):
        held_back, class_held_back = np.array([1.0, 5.0, 20.0]), 3.0
        found = solve(rows, torch.tensor(held_back), class_held_back, 4)
        weight = rows.weight.numpy()
        share = weight / weight.sum()
        x = rows.evidence.numpy()
        centre = share @ x
        z = (x - centre) / np.sqrt(share @ (x - centre) ** 2)
        one_hot, truth = np.eye(4)[rows.classes], rows.truth().numpy()

        def loss(p):
            t = p[0] + z @ p[1:4] + one_hot @ p[4:]
            penalty = held_back @ p[1:4] ** 2 + class_held_back * (p[4:] ** 2).sum()
            return weight @ (np.logaddexp(0, t) - truth * t) + penalty / 2

        p = minimize(loss, np.zeros(8), options={"gtol": 1e-8}).x
        score = z @ p[1:4] + one_hot @ p[4:]

        def stretched(q):
            t = q[0] + q[1] * score
            return weight @ (np.logaddexp(0, t) - truth * t)

        q = minimize(stretched, [p[0], 1.0], options={"gtol": 1e-8}).x
        expected = q[0] + q[1] * score
        logits = found.logits(rows.evidence, rows.classes)
        np.testing.assert_allclose(logits, expected, atol=1e-4)

    def test_evidence_that_separates_right_from_wrong_gives_finite_weights(self):
        x = torch.linspace(-1, 1, 50, dtype=torch.float64)[:, None]
        rows = Rows(x, torch.zeros(50, dtype=torch.int64), x[:, 0] > 0, torch.ones(50).double())
        found = solve(rows, torch.zeros(1).double(), 1.0, 1)
        p = found.logits(x, rows.classes).sigmoid()
        assert torch.isfinite(found.weights).all() and (p.diff() >= 0).all()

    def test_a_column_that_never_changes_does_no_harm(self, rows):
        constant = torch.cat([rows.evidence, torch.full((400, 1), 7.0).double()], 1)
        widened = Rows(constant, rows.classes, rows.correct, rows.weight)
        held_back = torch.ones(4).double()
        narrow = solve(rows, held_back[:3], 1.0, 4).logits(rows.evidence, rows.classes)
        wide = solve(widened, held_back, 1.0, 4).logits(constant, rows.classes)
        torch.testing.assert_close(narrow, wide)
