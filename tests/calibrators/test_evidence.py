import numpy as np
import pytest
import torch
from scipy.special import log_softmax

from rightly import Predictions
from rightly.calibrators.evidence import (
    EVIDENCE,
    MAX_LOG_ODDS,
    class_log_probabilities,
    correctness_evidence,
    correctness_evidence_names,
    retrieved_scores,
    top_logits,
    view_log_odds,
    view_scores,
)
from rightly.calibrators.solvers import execution
from tests.conftest import make

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


def test_of_tied_classes_the_predicted_one_comes_first():
    # topk need not give the class of argmax first: here it gives 1, and argmax 0.
    logits = torch.tensor([[1.0] * 6 + [0.0] * 2, [0.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0, 0.0]])
    views = torch.arange(8.0).repeat(2, 5, 1)
    predictions = Predictions(logits.repeat(3, 1), views.repeat(3, 1, 1))
    own = views[0, 0].softmax(-1)
    for k in (1, 3, 6):
        scores = view_scores(predictions, k).reshape(6, 5, k)
        expected = own[predictions.classes].double()
        torch.testing.assert_close(scores[:, 0, 0], expected)
        assert all(len(row.unique()) == k for row in scores[:, 0])  # no class twice
    retrieved = retrieved_scores(predictions, k=3)
    top = predictions.logits.softmax(-1).amax(-1)
    assert (retrieved[:, 0] <= top.double() + 1e-7).all()


def test_retrieval_in_blocks_is_retrieval_at_once(monkeypatch, sample):
    whole = retrieved_scores(sample[0])
    monkeypatch.setattr(execution, "BLOCK", 7)
    torch.testing.assert_close(retrieved_scores(sample[0]), whole)


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


def _log_odds(p):
    return np.log(p) - np.log1p(-np.asarray(p))


def test_correctness_evidence_by_hand():
    logits = np.log([[0.1, 0.5, 0.4]])
    views = np.log([[[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]]])
    rows = correctness_evidence(Predictions.from_log_probabilities(logits, views))
    same = _log_odds([0.3, 0.8])
    expected = [_log_odds(0.5), _log_odds(0.5), same.std(), _log_odds(0.8), *same]
    np.testing.assert_allclose(rows, [expected])


def test_correctness_evidence_names_its_columns(sample):
    predictions = sample[0]
    names = correctness_evidence_names(predictions.view_names)
    assert names == (
        "image",
        "max_other_class",
        "view_std",
        "max_any_class",
        "view0",
        "view1",
        "view2",
    )
    assert correctness_evidence(predictions).shape[1] == len(names)
    bare = Predictions(predictions.logits)
    assert correctness_evidence_names(()) == ("image",)
    own = torch.logit(predictions.confidence)[:, None]
    torch.testing.assert_close(correctness_evidence(bare), own, rtol=1e-4, atol=1e-5)


def test_correctness_evidence_has_no_scale(sample):
    predictions = sample[0]
    scaled = Predictions(predictions.logits * 3, predictions.view_logits * 3)
    torch.testing.assert_close(
        correctness_evidence(predictions), correctness_evidence(scaled, 3.0), rtol=1e-5, atol=1e-5
    )


def test_the_order_of_views_orders_their_columns_and_nothing_else(sample):
    turned = sample[0].with_views(["view2", "view0", "view1"])
    rows, moved = correctness_evidence(sample[0]), correctness_evidence(turned)
    torch.testing.assert_close(moved[:, :4], rows[:, :4])
    torch.testing.assert_close(moved[:, 4:], rows[:, [6, 4, 5]])


def test_evidence_of_some_views_is_that_of_predictions_with_those_views(sample):
    some = view_log_odds(sample[0]).take_views([2, 0]).evidence()
    assert torch.equal(some, correctness_evidence(sample[0].with_views(["view2", "view0"])))


def test_certainty_has_bounds():
    predictions = Predictions([[1e4, 0.0, 0.0]], [[[-1e4, 0.0, 0.0]]])
    expected = [[12.0, 0.0, 0.0, 0.0, -12.0]]
    np.testing.assert_allclose(correctness_evidence(predictions), expected, atol=1e-6)


def test_needs_are_known_by_name():
    assert EVIDENCE.find("view_scores").needs == ("view_logits",)
    assert EVIDENCE.find("top_logits").needs == ()
    with pytest.raises(ValueError, match="evidence must be one of top_logits"):
        EVIDENCE.find("tea_leaves")


def test_class_log_probabilities_is_log_probabilities_of_image_and_views():
    predictions, _ = make(n=20)
    found = class_log_probabilities(predictions, 2.0).numpy()
    own = log_softmax(predictions.logits.numpy() / 2, -1)
    views = log_softmax(predictions.view_logits.numpy() / 2, -1).clip(-MAX_LOG_ODDS).mean(1)
    np.testing.assert_allclose(found[:, :10], own.clip(-MAX_LOG_ODDS), atol=1e-5)
    np.testing.assert_allclose(found[:, 10:], views, atol=1e-5)
    bare = Predictions(predictions.logits)
    np.testing.assert_allclose(class_log_probabilities(bare, 2.0).numpy(), found[:, :10])


def test_it_stands_beside_the_samples_own_log_odds(sample):
    predictions = sample[0]
    log_distance_ratio = torch.arange(len(predictions)).double()
    rows = correctness_evidence(predictions, 1.0, log_distance_ratio)
    names = correctness_evidence_names(predictions.view_names, log_distance_ratio=True)
    assert torch.equal(rows[:, names.index("log_distance_ratio")], log_distance_ratio)
    kept = [i for i, name in enumerate(names) if name != "log_distance_ratio"]
    assert torch.equal(rows[:, kept], correctness_evidence(predictions))
    assert correctness_evidence_names((), log_distance_ratio=True) == (
        "image",
        "log_distance_ratio",
    )


@pytest.mark.parametrize(
    ("scale", "offset", "c"), [(3.0, 0.0, 10), (30.0, 500.0, 300), (1e4, 0.0, 2)]
)
def test_log_odds_of_float32_are_those_of_float64(scale, offset, c):
    g = torch.Generator().manual_seed(0)
    logits = scale * torch.randn(500, c, generator=g) + offset
    views = scale * torch.randn(500, 2, c, generator=g) + offset
    single, double = (
        correctness_evidence(Predictions(logits.to(kind), views.to(kind)), 0.7 * scale).sigmoid()
        for kind in (torch.float32, torch.float64)
    )
    torch.testing.assert_close(single, double, atol=1e-6, rtol=0)
    p = (logits.double() / (0.7 * scale)).softmax(-1).amax(-1)
    torch.testing.assert_close(double[:, 0], p.clamp(1e-5, 1 - 1e-5), atol=1e-5, rtol=0)
