import numpy as np
import pytest
import torch

from rightly import Predictions
from rightly.evidence import EVIDENCE, needs_of, retrieved_scores, top_logits, view_scores

ALONE = [name for name in EVIDENCE if name != "retrieved_scores"]


@pytest.mark.parametrize("name", EVIDENCE)
def test_every_evidence_is_one_finite_row_a_sample(name, sample):
    rows = EVIDENCE[name](sample[0])
    assert rows.shape[0] == 300 and rows.ndim == 2
    assert torch.isfinite(rows).all()


@pytest.mark.parametrize("name", ALONE)
def test_each_sample_is_looked_at_alone(name, sample):
    together, alone = EVIDENCE[name](sample[0])[:7], EVIDENCE[name](sample[0][:7])
    torch.testing.assert_close(together, alone)


@pytest.mark.parametrize("name", EVIDENCE)
def test_a_constant_added_to_logits_changes_nothing(name, sample):
    predictions = sample[0]
    moved = Predictions(predictions.logits + 5, predictions.view_logits - 3, predictions.features)
    torch.testing.assert_close(
        EVIDENCE[name](predictions), EVIDENCE[name](moved), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("name", EVIDENCE)
def test_fewer_classes_than_k_are_all_used(name):
    predictions = Predictions([[1.0, 2.0], [0.3, 0.1], [2.0, 1.0], [4.0, 1.0]], np.ones((4, 3, 2)))
    assert EVIDENCE[name](predictions).shape[1] in (2, 6, 7)


def test_view_scores_by_hand():
    logits = np.log([[0.1, 0.5, 0.4], [0.6, 0.3, 0.1]])
    views = np.log([[[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]], [[0.7, 0.1, 0.2], [0.3, 0.3, 0.4]]])
    predictions = Predictions.from_log_probabilities(logits, views)
    expected = [[0.3, 0.5, 0.8, 0.1], [0.7, 0.1, 0.3, 0.3]]
    np.testing.assert_allclose(view_scores(predictions, k=2), expected)


def test_identical_views_repeat_the_samples_own_probabilities(sample):
    own = sample[0].logits
    predictions = Predictions(own, own[:, None].expand(-1, 3, -1))
    top = own.softmax(-1).topk(4).values.double()
    torch.testing.assert_close(view_scores(predictions), top.repeat(1, 3))


def test_top_logits_are_sorted_and_centred(sample):
    rows = top_logits(sample[0], k=10)
    assert (rows.diff() <= 0).all()
    torch.testing.assert_close(rows.mean(-1), torch.zeros(300).double(), atol=1e-6, rtol=0)


def test_views_that_are_missing_are_asked_for(sample):
    with pytest.raises(ValueError, match="view_logits are needed"):
        view_scores(Predictions(sample[0].logits))


def test_retrieval_finds_the_nearest_others_in_the_batch():
    features = np.array([[1, 0.0], [1, 0.1], [0, 1.0], [0.1, 1.0]])
    logits = np.log([[0.7, 0.3], [0.6, 0.4], [0.2, 0.8], [0.1, 0.9]])
    predictions = Predictions.from_log_probabilities(logits, features=features)
    expected = [[0.6, 0.4], [0.7, 0.3], [0.9, 0.1], [0.8, 0.2]]
    np.testing.assert_allclose(retrieved_scores(predictions, neighbours=1), expected)
    with pytest.raises(ValueError, match="more than 3 samples"):
        retrieved_scores(predictions[:3])


def test_needs_are_known_by_name():
    assert needs_of("view_scores") == ("view_logits",)
    assert needs_of("top_logits") == ()
    with pytest.raises(ValueError, match="evidence must be one of top_logits"):
        needs_of("tea_leaves")
