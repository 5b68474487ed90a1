"""Rows sorted by what is in them: shuffled files give the same fits."""

import pytest
import torch

import rightly
from rightly import Predictions
from rightly.evaluation.selection import select_method
from rightly.evaluation.views import compute_view_costs, rank_views
from rightly.predictions.rows import sort_rows
from tests.conftest import make


def make_augmented(n=200, kinds=4):
    """Images as they are, and under several shifts, whose numbers are derived by position."""
    parts = [make(n=n)] + [make(n=n, seed=9 + kind) for kind in range(kinds)]
    shift = torch.arange(kinds + 1).repeat_interleave(n)
    names = [f"shift{kind}:1" for kind in range(kinds)]
    augmented = Predictions(
        torch.cat([one.logits for one, _ in parts]),
        torch.cat([one.view_logits for one, _ in parts]),
        view_names=parts[0][0].view_names,
        shift=shift,
        shift_names=names,
    )
    return augmented, parts[0][1].repeat(kinds + 1)


def shuffle_images(predictions, labels, kinds=4):
    """The same images in another order, which the derived numbers follow."""
    n = len(predictions) // (kinds + 1)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(2))
    rows = torch.cat([order + kind * n for kind in range(kinds + 1)])
    return (
        Predictions(
            predictions.logits[rows],
            predictions.view_logits[rows],
            view_names=predictions.view_names,
            shift=predictions.shift[rows],
            shift_names=predictions.shift_names,
        ),
        labels[rows],
    )


def test_sorted_rows_are_the_same_rows_whatever_their_order():
    predictions, labels = make_augmented()
    sorted_rows, sorted_labels = sort_rows(predictions, labels)
    again, again_labels = sort_rows(*shuffle_images(predictions, labels))
    for name in ("logits", "view_logits", "shift", "image"):
        assert torch.equal(getattr(sorted_rows, name), getattr(again, name))
    assert torch.equal(sorted_labels, again_labels)
    assert not torch.equal(sorted_rows.logits, predictions.logits)
    # Each image keeps its rows, and its number counts from 0 in the new order.
    firsts = predictions.logits[:, 0].tolist()
    groups = {frozenset(firsts[i::200]) for i in range(200)}
    now = sorted_rows.logits[:, 0].reshape(200, 5).tolist()
    assert {frozenset(row) for row in now} == groups
    assert torch.equal(sorted_rows.image, torch.arange(200).repeat_interleave(5))


def test_neither_unit_nor_offset_nor_masked_classes_nor_a_shift_of_0_matter():
    predictions, labels = make()
    logits = predictions.logits
    masked = torch.cat([logits, torch.full((300, 2), -torch.inf)], 1)
    expected = sort_rows(predictions, labels)[1]
    for same in (
        Predictions(1000 * logits),
        Predictions(logits.double() - 7),
        Predictions(masked),
        Predictions(logits, shift=torch.zeros(300, dtype=torch.int64)),
    ):
        assert torch.equal(sort_rows(same, labels)[1], expected)


def test_ties_are_broken_by_content():
    # Four rows of one lead that differ in the lead over the third, in class and in label.
    logits = torch.tensor([[3.0, 1, 0], [3, 1, -1], [1, 3, 0], [3, 1, 0]])
    labels = torch.tensor([1, 0, 1, 0])
    expected = logits[[3, 0, 2, 1]], labels[[3, 0, 2, 1]]
    for order in ([0, 1, 2, 3], [2, 0, 3, 1], [3, 2, 1, 0]):
        sorted_rows, sorted_labels = sort_rows(Predictions(logits[order]), labels[order])
        assert torch.equal(sorted_rows.logits, expected[0])
        assert torch.equal(sorted_labels, expected[1])


@pytest.mark.parametrize("budget", [None, 1.5])
def test_shift_augmentation_in_another_order_gives_the_same_confidence(budget, other):
    data = make_augmented()
    fits = [
        rightly.calibrator("rightly", budget=budget).fit(*one)
        for one in (data, shuffle_images(*data))
    ]
    first, second = (fitted.confidence(other[0]) for fitted in fits)
    assert torch.equal(first, second)


def test_methods_views_and_budgets_are_selected_alike():
    data = make()
    order = torch.randperm(300, generator=torch.Generator().manual_seed(5))
    again = data[0][order], data[1][order]
    candidates = ("temperature_scaling", "spline", "rightly")
    assert select_method(*data, candidates) == select_method(*again, candidates)
    assert rank_views(*data) == rank_views(*again)
    assert compute_view_costs(*data, budgets=[1.5]) == compute_view_costs(*again, budgets=[1.5])
