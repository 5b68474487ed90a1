"""Rows sorted by what is in them: shuffled files give the same fits."""

import pytest
import torch

import rightly
from rightly import Predictions
from rightly.calibrators.row_order import hash_rows, sort_rows
from rightly.evaluation.method_selection import select_method
from rightly.evaluation.view_cost import compute_view_costs
from rightly.evaluation.view_selection import rank_views
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
    keys = hash_rows(predictions.logits).tolist()
    groups = {frozenset(keys[i::200]) for i in range(200)}
    now = hash_rows(sorted_rows.logits).reshape(200, 5).tolist()
    assert {frozenset(row) for row in now} == groups
    assert torch.equal(sorted_rows.image, torch.arange(200).repeat_interleave(5))


def test_hashes_see_every_logit_but_neither_its_type_nor_the_sign_of_zero():
    logits = make()[0].logits
    keys = hash_rows(logits)
    assert len(keys.unique()) == 300
    assert torch.equal(hash_rows(logits.double()), keys)
    for column in range(10):
        moved = logits.clone()
        moved[:, column] = torch.nextafter(moved[:, column], torch.tensor(torch.inf))
        assert (hash_rows(moved) != keys).all()
    assert torch.equal(hash_rows(torch.zeros(1, 3)), hash_rows(-torch.zeros(1, 3)))


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
