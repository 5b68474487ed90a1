"""Which methods the data allow, and which one the calibration data select."""

import pytest
import torch

import rightly
from rightly import Predictions
from rightly.calibrators import CALIBRATORS
from rightly.evaluation.compare import resolve_methods
from rightly.evaluation.selection import find_missing_inputs, select_method
from tests.evaluation.test_views import make_telling

SIMPLE = ("uncalibrated", "temperature_scaling", "spline")


def draw_predictions(temperature, n=3000, seed=0):
    """Predictions that are right as often as softmax at this temperature says."""
    g = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(n, 5, generator=g)
    gumbel = -(-torch.rand(n, 5, generator=g).clamp(1e-9, 1 - 1e-7).log()).log()
    return Predictions(logits), (logits / temperature + gumbel).argmax(-1)


def names_of(*groups):
    return [name for name, method in CALIBRATORS.items() if method.group in groups]


class TestResolving:
    def test_without_methods_baselines_the_papers_and_our_own_are_compared(self, sample, other):
        methods, skipped = resolve_methods(None, sample, {"a": other})
        assert list(methods) == names_of("baseline", "paper", "own")
        assert skipped == dict.fromkeys(names_of("binary"), ("2 classes",))

    def test_all_are_in_the_order_of_the_registry(self, sample, other):
        any_classes = [name for name, method in CALIBRATORS.items() if not method.fits_classes]
        assert list(resolve_methods("all", sample, {"a": other}).methods) == any_classes

    def test_names_aliases_and_groups_are_taken_in_the_order_asked_for(self, sample, other):
        methods, _ = resolve_methods(["own", "ts", "baseline", "rightly"], sample, {"a": other})
        assert list(methods) == ["correctness_logistic", "temperature_scaling"] + [
            name for name in names_of("baseline") if name != "temperature_scaling"
        ]
        assert list(resolve_methods("spl", sample, {"a": other}).methods) == ["spline"]

    def test_of_a_group_those_without_their_inputs_are_skipped(self, sample):
        bare = Predictions(sample[0].logits)
        methods, skipped = resolve_methods("all", sample, {"a": (bare, sample[1])})
        assert "ca_only" in methods
        # Fitted with the views of the calibration data, it would need those of the test set.
        assert skipped["correctness_logistic"] == ("view_logits",)
        assert skipped["ca_views"] == ("view_logits",) and skipped["proximity"] == ("features",)
        assert not set(methods) & set(skipped)
        assert set(methods) | set(skipped) == set(CALIBRATORS)

    def test_a_method_called_by_its_name_is_not_skipped(self, sample):
        bare = (Predictions(sample[0].logits), sample[1])
        methods, skipped = resolve_methods(["paper", "ca_views"], bare, {})
        assert list(methods) == ["ca_only", "ca_views"] and not skipped

    def test_unknown_names_and_nothing_to_compare_are_refused(self, sample):
        with pytest.raises(ValueError, match="'basline' is not known: did you mean baseline"):
            resolve_methods(["basline"], sample, {})
        bare = (Predictions(sample[0].logits), sample[1])
        with pytest.raises(ValueError, match="ca_views_released needs view_logits"):
            resolve_methods(["released"], bare, {})

    def test_missing_inputs_are_those_that_any_data_lack(self, sample):
        bare = Predictions(sample[0].logits)
        assert find_missing_inputs("ca_views", [sample[0], bare]) == ("view_logits",)
        assert find_missing_inputs("ts", [bare]) == ()
        assert find_missing_inputs("rightly", [bare, bare]) == ()
        assert find_missing_inputs("rightly", [sample[0], bare]) == ("view_logits",)


class TestSelecting:
    def test_a_classifier_that_is_right_about_itself_is_left_alone(self):
        choice = select_method(*draw_predictions(1.0), SIMPLE)
        assert choice.method == "uncalibrated"
        assert choice.reason.startswith("leave the classifier as it is")

    def test_one_temperature_is_enough_where_only_the_scale_is_off(self):
        choice = select_method(*draw_predictions(3.0), SIMPLE)
        assert choice.method == "temperature_scaling"
        assert [one.method for one in choice.candidates] == list(SIMPLE)

    def test_views_that_know_something_are_worth_a_richer_method(self):
        tried = []
        choice = select_method(
            *make_telling(), (*SIMPLE, "rightly"), progress=lambda *step: tried.append(step)
        )
        assert choice.method == "correctness_logistic"
        assert tried[-1] == ("comparing correctness_logistic", len(SIMPLE), len(SIMPLE) + 1)
        assert "smallest loss" in choice.reason

    def test_the_simplest_within_one_standard_error_wins(self):
        choice = select_method(*draw_predictions(3.0), SIMPLE)
        first = next(one for one in choice.candidates if one.excess <= one.error)
        assert choice.method == first.method
        assert min(one.excess for one in choice.candidates) == 0

    def test_a_simpler_method_than_the_best_is_explained(self):
        choice = select_method(*draw_predictions(1.0, n=400), ("uncalibrated", "spline"))
        best = min(choice.candidates, key=lambda one: one.loss)
        if best.method != choice.method:
            assert f"within one standard error of {best.method}" in choice.reason
        else:
            assert "smallest loss" in choice.reason

    def test_shifted_rows_evaluate_too(self):
        names = ("gaussian_noise:3", "jpeg:3")
        parts = [make_telling(400, s, s, names) for s in range(3)]
        joined = rightly.concatenate([predictions for predictions, _ in parts])
        labels = torch.cat([truth for _, truth in parts])
        choice = select_method(joined, labels, ("uncalibrated", "rightly"), expected_shift=0.3)
        for one in choice.candidates:
            assert one.loss == pytest.approx(0.7 * one.unshifted + 0.3 * one.shifted)

    def test_expected_shift_reaches_the_candidates_that_take_it(self):
        candidates = ("temperature_scaling", "rightly")
        low, high = (
            select_method(*make_telling(400), candidates, expected_shift=x).candidates
            for x in (0.1, 0.9)
        )
        assert low[0].unshifted == high[0].unshifted
        assert low[1].unshifted != high[1].unshifted

    def test_methods_without_their_inputs_are_skipped(self):
        choice = select_method(*draw_predictions(1.0, n=300), ("uncalibrated", "ca_views"))
        assert [one.method for one in choice.candidates] == ["uncalibrated"]

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"expected_shift": 2.0}, "expected_shift"),
            ({"folds": 1}, "folds"),
            ({"candidates": ("ca_views",)}, "candidates must hold a method"),
        ],
    )
    def test_bad_arguments_are_refused(self, options, words):
        with pytest.raises(ValueError, match=words):
            select_method(*draw_predictions(1.0, n=50), **options)
