"""Choosing views and methods by the calibration data alone."""

import json

import numpy as np
import pytest
import torch

import rightly
from rightly import Predictions
from rightly.cli import main
from rightly.evaluation.method_selection import choose
from rightly.evaluation.view_selection import best_views, rank_views
from tests.conftest import make

SIMPLE = ("uncalibrated", "temperature_scaling", "spline")


def telling(n=1200, seed=0, shift=None, names=()):
    """Three views: one knows something about the label, two repeat the image with noise."""
    g = torch.Generator().manual_seed(seed)
    predictions, labels = make(n, seed=seed)
    views = predictions.view_logits.clone()
    views[:, 1] = predictions.logits + 2 * torch.nn.functional.one_hot(labels, 10)
    views[:, 1] += torch.randn(n, 10, generator=g)
    marks = None if shift is None else np.full(n, shift)
    return Predictions(
        predictions.logits,
        views,
        view_names=["echo", "telling", "other"],
        shift=marks,
        shift_names=names,
    ), labels


def drawn(temperature, n=3000, seed=0):
    """Predictions that are right as often as softmax at this temperature says."""
    g = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(n, 5, generator=g)
    gumbel = -(-torch.rand(n, 5, generator=g).clamp(1e-9, 1 - 1e-7).log()).log()
    return Predictions(logits), (logits / temperature + gumbel).argmax(-1)


class TestViews:
    def test_the_view_that_knows_something_is_found(self):
        ranking = rank_views(*telling())
        best = ranking.alone[0]
        assert best.views == ("telling",) and best.low > 0
        assert all(gain.low < best.low for gain in ranking.alone[1:])
        assert ranking.grown[0].views == ("telling",)
        assert [len(gain.views) for gain in ranking.grown] == [1, 2, 3]
        assert ranking.without.gain == 0
        for gain in (*ranking.alone, *ranking.grown):
            assert gain.low <= gain.gain <= gain.high
            assert gain.gain == pytest.approx(ranking.without.brier - gain.brier)
            assert gain.per_pass == pytest.approx(gain.gain / len(gain.views))

    def test_ranking_is_repeatable_and_keeps_to_the_most(self):
        once, again = (rank_views(*telling(n=300), most=1, seed=3) for _ in range(2))
        assert once == again and len(once.grown) == 1

    def test_best_views_keeps_to_the_passes_and_to_what_gains(self):
        predictions, labels = telling()
        assert best_views(predictions, labels, 1) == ("telling",)
        assert best_views(predictions, labels, 9)[0] == "telling"
        useless, truth = make(n=600)
        assert len(best_views(useless, truth, 3)) >= 1

    def test_what_cannot_be_ranked_is_refused(self, sample):
        with pytest.raises(ValueError, match="extra_passes must be at least 1"):
            best_views(*sample, 0)
        with pytest.raises(ValueError, match="have none"):
            rank_views(Predictions(sample[0].logits), sample[1])


class TestMethods:
    def test_a_classifier_that_is_right_about_itself_is_left_alone(self):
        choice = choose(*drawn(1.0), SIMPLE)
        assert choice.method == "uncalibrated"
        assert choice.reason.startswith("leave the classifier as it is")

    def test_one_temperature_is_enough_where_only_the_scale_is_off(self):
        choice = choose(*drawn(3.0), SIMPLE)
        assert choice.method == "temperature_scaling"
        assert [one.method for one in choice.judged] == list(SIMPLE)

    def test_views_that_know_something_are_worth_a_richer_method(self):
        choice = choose(*telling(), (*SIMPLE, "rightly"))
        assert choice.method == "rightly"
        assert "smallest loss" in choice.reason

    def test_the_simplest_within_one_standard_error_wins(self):
        choice = choose(*drawn(3.0), SIMPLE)
        first = next(one for one in choice.judged if one.excess <= one.error)
        assert choice.method == first.method
        assert min(one.excess for one in choice.judged) == 0

    def test_shifted_rows_judge_too(self):
        names = ("gaussian_noise:3", "jpeg:3")
        parts = [telling(400, s, s, names) for s in range(3)]
        joined = rightly.concatenate([predictions for predictions, _ in parts])
        labels = torch.cat([truth for _, truth in parts])
        choice = choose(joined, labels, ("uncalibrated", "rightly"), expected_shift=0.3)
        for one in choice.judged:
            assert one.loss == pytest.approx(0.7 * one.unshifted + 0.3 * one.shifted)

    def test_methods_without_their_inputs_are_left_out(self):
        choice = choose(*drawn(1.0, n=300), ("uncalibrated", "ca_views"))
        assert [one.method for one in choice.judged] == ["uncalibrated"]

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"expected_shift": 2.0}, "expected_shift"),
            ({"folds": 1}, "folds"),
            ({"candidates": ("ca_views",)}, "candidates"),
        ],
    )
    def test_bad_arguments_are_refused(self, options, words):
        with pytest.raises(ValueError, match=words):
            choose(*drawn(1.0, n=50), **options)


class TestCommands:
    def test_views_prints_a_ranking_and_writes_json(self, tmp_path, capsys):
        rightly.save(tmp_path / "cal.npz", *telling(n=400))
        told = tmp_path / "views.json"
        assert main(["views", str(tmp_path / "cal.npz"), "--most", "2", "--json", str(told)]) == 0
        printed = capsys.readouterr().out
        assert "+ " in printed and "a pass" in printed and "…" not in printed
        found = json.loads(told.read_text())
        assert found["alone"][0]["views"] == ["telling"] and len(found["grown"]) == 2

    def test_auto_says_what_it_chose_and_why(self, tmp_path, capsys):
        rightly.save(tmp_path / "cal.npz", *drawn(3.0, n=1500))
        out = tmp_path / "a.safetensors"
        assert main(["fit", str(tmp_path / "cal.npz"), "--method", "auto", "--out", str(out)]) == 0
        printed = " ".join(capsys.readouterr().out.split())
        assert "one standard error" in printed
        assert rightly.load_calibrator(out).method == "temperature_scaling"

    def test_views_are_asked_for(self, tmp_path, capsys):
        rightly.save(tmp_path / "cal.npz", *drawn(1.0, n=50))
        assert main(["views", str(tmp_path / "cal.npz")]) == 2
        assert "have none" in capsys.readouterr().err


def test_caution_reaches_the_candidates_that_know_it():
    candidates = ("temperature_scaling", "rightly")
    low, high = (choose(*telling(400), candidates, expected_shift=c).judged for c in (0.1, 0.9))
    assert low[0].unshifted == high[0].unshifted
    assert low[1].unshifted != high[1].unshifted
