"""Which views the calibration data select."""

import numpy as np
import pytest
import torch

from rightly import Predictions
from rightly.evaluation.view_selection import rank_views, select_views
from tests.conftest import make


def make_telling(n=1200, seed=0, shift=None, names=()):
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


def test_the_view_that_knows_something_comes_first():
    tried = []
    ranking = rank_views(*make_telling(), progress=tried.append)
    best = ranking.alone[0]
    assert best.views == ("telling",) and best.low > 0
    assert all(gain.low < best.low for gain in ranking.alone[1:])
    assert ranking.grown[0].views == ("telling",)
    assert [len(gain.views) for gain in ranking.grown] == [1, 2, 3]
    assert ranking.without.gain == 0
    assert ranking.every == ranking.grown[-1]
    assert ranking.find_smallest(0.9).views == ("telling",)
    assert ranking.find_smallest(99.0) is None
    assert tried[:3] == ["echo", "telling", "other"] and " + " in tried[-1]
    for gain in (*ranking.alone, *ranking.grown):
        assert gain.low <= gain.gain <= gain.high
        assert gain.gain == pytest.approx(ranking.without.brier - gain.brier)
        assert gain.per_pass == pytest.approx(gain.gain / len(gain.views))


def test_ranking_is_repeatable_and_keeps_to_the_most():
    once, again = (rank_views(*make_telling(n=300), most=1, seed=3) for _ in range(2))
    assert once == again and len(once.grown) == 1 and len(once.every.views) == 3


def test_selection_keeps_to_the_passes_and_to_what_gains():
    predictions, labels = make_telling()
    assert select_views(predictions, labels, 1) == ("telling",)
    assert select_views(predictions, labels, 9)[0] == "telling"
    useless, truth = make(n=600)
    assert 1 <= len(select_views(useless, truth, 3)) <= 3


def test_what_cannot_be_ranked_is_refused(sample):
    with pytest.raises(ValueError, match="extra_passes must be at least 1"):
        select_views(*sample, 0)
    with pytest.raises(ValueError, match="most must be at least 1"):
        rank_views(*sample, most=0)
    with pytest.raises(ValueError, match="have none"):
        rank_views(Predictions(sample[0].logits), sample[1])
    with pytest.raises(ValueError, match="every row is shifted"):
        rank_views(*make_telling(n=40, shift=1, names=("blur:1",)))
