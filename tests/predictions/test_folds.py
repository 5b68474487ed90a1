"""Rows that share an image are fitted on together or held out together, in any order of rows."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import rightly
from rightly import Predictions
from rightly.evaluation import selection
from rightly.evaluation.selection import select_method
from rightly.evaluation.views import rank_views
from rightly.predictions.rows import stratified_split
from tests.conftest import make

IMAGES = 120
NUMBERS = np.arange(IMAGES) * 2**53 + 4  # multiples of the number of folds, and far apart
CANDIDATES = ("uncalibrated", "temperature_scaling")


def shifted_copies(image=None):
    """Each image as it is and under two shifts that add noise."""
    predictions, labels = make(IMAGES)
    shift = torch.arange(3).repeat_interleave(IMAGES)
    noise = torch.randn(len(shift), 10, generator=torch.Generator().manual_seed(7)) * shift[:, None]
    return Predictions(
        predictions.logits.repeat(3, 1) + noise,
        predictions.view_logits.repeat(3, 1, 1) + noise[:, None],
        view_names=predictions.view_names,
        shift=shift,
        shift_names=("gaussian_noise:3", "jpeg:2"),
        image=None if image is None else np.tile(image, 3),
    ), labels.repeat(3)


def orders():
    """The same rows by derived numbers; by large ones; and these in another order."""
    predictions, labels = shifted_copies(NUMBERS)
    rows = torch.randperm(len(labels), generator=torch.Generator().manual_seed(1))
    return shifted_copies(), (predictions, labels), (predictions[rows], labels[rows])


def test_methods_are_compared_alike():
    expected, *others = (select_method(*data, CANDIDATES) for data in orders())
    for result in others:
        for one, other in zip(expected.candidates, result.candidates, strict=True):
            assert one.loss == pytest.approx(other.loss, rel=1e-6)
            assert one.error == pytest.approx(other.error, rel=1e-4, abs=1e-9)


def test_views_are_ranked_alike():
    expected, *others = (rank_views(*data) for data in orders())
    for result in others:
        for one, other in zip(expected.alone, result.alone, strict=True):
            assert one.views == other.views
            for name in ("gain", "low", "high"):
                assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-6)


def test_numbers_of_any_size_give_the_same_fit():
    fits = [rightly.calibrator("rightly").fit(*shifted_copies(image)) for image in (None, NUMBERS)]
    confidence = [fitted.confidence(make(seed=1)[0]) for fitted in fits]
    assert torch.equal(*confidence)


def test_no_method_is_evaluated_on_an_image_that_it_was_fitted_on(monkeypatch):
    shared = []

    class Watching:
        def fit(self, predictions, labels):
            self.images = set(predictions.images().tolist())
            return self

        def classes(self, predictions):
            return predictions.classes

        def confidence(self, predictions):
            shared.append(self.images & set(predictions.images().tolist()))
            return predictions.confidence

    monkeypatch.setattr(selection, "calibrator", lambda name, **options: Watching())
    for predictions, labels in orders():
        select_method(predictions, labels, ("uncalibrated",))
    assert len(shared) == 3 * selection.FOLDS and not any(shared)


def test_there_are_no_more_folds_than_images():
    predictions, labels = shifted_copies(np.zeros(IMAGES, int))
    with pytest.raises(ValueError, match="folds must be between 2 and the number of images"):
        select_method(predictions, labels, ("uncalibrated",))


def test_shifted_rows_without_numbers_are_refused_with_the_remedy():
    predictions, labels = shifted_copies()
    rows = slice(0, 300)  # the last shift lacks rows
    lacking = Predictions(
        predictions.logits[rows], predictions.view_logits[rows], shift=predictions.shift[rows]
    )
    for failing in (
        lambda: rightly.calibrator("rightly").fit(lacking, labels[rows]),
        lambda: select_method(lacking, labels[rows], CANDIDATES),
        lambda: rank_views(lacking, labels[rows]),
    ):
        with pytest.raises(ValueError, match="store image, one number an image"):
            failing()
    rightly.calibrator("temperature_scaling").fit(lacking, labels[rows])


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_rows_held_out_take_their_whole_image_along(data):
    image = torch.tensor(data.draw(st.lists(st.integers(0, 6), min_size=2, max_size=30)))
    correct = torch.tensor(data.draw(st.lists(st.booleans(), min_size=30, max_size=30)))
    correct = correct[: len(image)]
    train, held = stratified_split(correct, 0, 0.5, image)
    assert sorted({*train.tolist(), *held.tolist()}) == list(range(len(image)))
    if set(train.tolist()) != set(held.tolist()):  # too few to hold any out
        assert not set(image[train].tolist()) & set(image[held].tolist())


def test_images_that_differ_are_split_as_if_they_had_no_numbers():
    correct = torch.rand(50, generator=torch.Generator().manual_seed(0)) < 0.7
    for one, other in zip(
        stratified_split(correct, 3),
        stratified_split(correct, 3, image=torch.arange(50) * 7),
        strict=True,
    ):
        assert torch.equal(one, other)


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_rows_are_split_once_with_right_and_wrong_in_the_same_shares(share):
    correct = torch.arange(100) % 4 > 0
    train, held = stratified_split(correct, seed=0, share=share)
    assert torch.equal(torch.cat([train, held]).sort().values, torch.arange(100))
    assert len(held) == pytest.approx(100 * share, abs=1)
    assert float(correct[held].double().mean()) == pytest.approx(0.75, abs=0.03)
    again = stratified_split(correct, seed=0, share=share)
    assert torch.equal(train, again[0]) and torch.equal(held, again[1])
    assert not torch.equal(held, stratified_split(correct, seed=1, share=share)[1])


def test_too_few_rows_to_hold_out_are_held_out_all():
    train, held = stratified_split(torch.tensor([True, False]), seed=0)
    assert torch.equal(train.sort().values, torch.arange(2))
    assert torch.equal(held, train)
