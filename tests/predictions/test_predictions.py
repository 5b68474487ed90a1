import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rightly import Predictions

LOGITS = np.array([[2.0, 1.0, 0.5], [0.1, 3.0, -1.0], [5.0, 4.9, 4.8], [0.0, 0.2, 1.0]])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_any_float_type_is_taken(dtype):
    given = torch.tensor(LOGITS).to(dtype)
    kept = Predictions(given).logits
    assert kept.dtype in (torch.float32, torch.float64)
    torch.testing.assert_close(kept.double(), given.double())


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f4", "f16"])
def test_any_numpy_float_type_is_taken(dtype):
    given = LOGITS.astype(dtype)
    given.flags.writeable = False
    np.testing.assert_allclose(Predictions(given[::-1]).logits, LOGITS[::-1], rtol=1e-3)


def test_lists_are_taken():
    assert Predictions([[1.0, 2.0], [3.0, 0.5]]).classes.tolist() == [1, 0]


def test_confidence_is_the_softmax_of_the_predicted_class():
    predictions = Predictions(LOGITS)
    expected = torch.tensor(LOGITS).softmax(-1).amax(-1)
    torch.testing.assert_close(predictions.confidence, expected)
    assert predictions.classes.tolist() == [0, 1, 0, 2]


def test_rows_are_selected_everywhere():
    predictions = Predictions(
        LOGITS, LOGITS[:, None], LOGITS, ["v"], shift=[0, 1, 2, 0], image=[7, 7, 9, 8]
    )
    for rows in (slice(1, 3), [1, 2], np.array([False, True, True, False]), torch.tensor([1, 2])):
        chosen = predictions[rows]
        assert len(chosen) == 2
        np.testing.assert_array_equal(chosen.view_logits[:, 0], LOGITS[1:3])
        np.testing.assert_array_equal(chosen.features, LOGITS[1:3])
        assert chosen.shift.tolist() == [1, 2]
        assert chosen.image.tolist() == [7, 9]
        assert chosen.view_names == ("v",)


def test_views_are_chosen_by_name():
    views = np.stack([LOGITS, LOGITS + 1, LOGITS + 2], 1)
    chosen = Predictions(LOGITS, views, view_names=["a", "b", "c"]).with_views(["c", "a"])
    np.testing.assert_array_equal(chosen.view_logits, views[:, [2, 0]])
    assert chosen.view_names == ("c", "a")
    with pytest.raises(ValueError, match="views must be some of"):
        chosen.with_views(["b"])


def test_probabilities_come_back_from_their_logarithms():
    p = np.array([[0.7, 0.2, 0.1], [0.05, 0.9, 0.05]])
    predictions = Predictions.from_probabilities(p, p[:, None], view_names=["v"])
    np.testing.assert_allclose(predictions.logits.softmax(-1), p)
    np.testing.assert_allclose(predictions.view_logits[:, 0].softmax(-1), p)
    same = Predictions.from_log_probabilities(np.log(p))
    np.testing.assert_allclose(same.logits, predictions.logits)


def test_saturated_probabilities_are_warned_about():
    with pytest.warns(UserWarning, match="exact zeros or are in half precision"):
        Predictions.from_probabilities([[1.0, 0.0], [0.5, 0.5]])
    with pytest.warns(UserWarning, match="half precision"):
        Predictions.from_probabilities(np.array([[0.75, 0.25]], np.float16))


def test_logits_handed_in_as_probabilities_are_refused():
    with pytest.raises(ValueError, match="probabilities must be non-negative rows"):
        Predictions.from_probabilities(LOGITS)
    with pytest.raises(ValueError, match="exponentials sum to 1"):
        Predictions.from_log_probabilities(LOGITS)


def test_logits_that_happen_to_be_small_are_not_taken_for_probabilities():
    Predictions([[0.2, 0.8], [0.3, 0.9]])


class TestImages:
    """Which image each row shows."""

    def test_numbers_are_kept_as_they_are(self):
        image = np.array([2**62, 3, 3, 2**63 - 1], np.uint64)
        predictions = Predictions(LOGITS, shift=[0, 0, 1, 0], image=image)
        assert predictions.image.dtype == torch.int64
        assert predictions.images().tolist() == image.tolist()
        assert predictions.image_ranks().tolist() == [1, 0, 0, 2]

    def test_without_shifted_rows_each_row_is_an_image(self):
        for shift in (None, [0, 0, 0, 0]):
            predictions = Predictions(LOGITS, shift=shift)
            assert predictions.image is None
            assert predictions.images().tolist() == [0, 1, 2, 3]

    @settings(deadline=None, max_examples=50)
    @given(data=st.data())
    def test_they_are_derived_by_position_whatever_the_order_of_shifts(self, data):
        count, shifts = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
        shift = data.draw(st.permutations([s for s in range(shifts + 1) for _ in range(count)]))
        logits = np.random.default_rng(0).normal(size=(len(shift), 3))
        predictions = Predictions(logits, shift=shift)
        expected = [shift[:i].count(value) for i, value in enumerate(shift)]
        assert predictions.image.tolist() == expected
        rows = data.draw(st.permutations(range(len(shift))))
        assert predictions[rows].image.tolist() == [expected[i] for i in rows]

    @pytest.mark.parametrize("shift", [[0, 0, 0, 1], [0, 1, 1, 1], [1, 1, 2, 2], [0, 0, 1, 2]])
    def test_they_are_not_guessed(self, shift):
        predictions = Predictions(LOGITS, shift=shift)
        assert predictions.image is None
        with pytest.raises(ValueError, match="store image, one number an image"):
            predictions.images()

    def test_what_is_left_unshifted_needs_none(self):
        predictions = Predictions(LOGITS, shift=[0, 0, 0, 1])
        assert predictions[predictions.unshifted()].images().tolist() == [0, 1, 2]

    def test_copies_keep_them(self):
        predictions = Predictions(LOGITS, LOGITS[:, None], image=[5, 6, 7, 8])
        for copy in (
            predictions.without_views(),
            predictions.with_views(predictions.view_names),
            predictions.to("cpu"),
        ):
            assert copy.image.tolist() == [5, 6, 7, 8]


def test_severities_of_one_kind_share_its_number():
    names = ("gaussian_blur:3", "jpeg:2", "gaussian_blur:1", "fog")
    shift = np.array([0, 0, 1, 1, 2, 2, 3, 4])
    predictions = Predictions(torch.randn(8, 3), shift=shift, shift_names=names)
    assert predictions.shift_kinds().tolist() == [0, 0, 1, 1, 2, 2, 1, 3]
    unnamed = Predictions(torch.randn(3, 3), shift=np.array([0, 1, 2]))
    assert unnamed.shift_kinds().tolist() == [0, 1, 2]
    assert Predictions(LOGITS).shift_kinds().tolist() == [0] * 4


def test_the_repr_tells_sizes_and_names():
    assert repr(Predictions(LOGITS)) == "<Predictions: 4 samples, 3 classes>"
    many = Predictions(
        np.random.default_rng(0).normal(size=(5000, 3)),
        np.random.default_rng(1).normal(size=(5000, 2, 3)),
        np.ones((5000, 1)),
        ["rotation", "hflip"],
        shift=np.arange(5000) % 3,
    )
    expected = "5,000 samples, 3 classes, 2 views (rotation, hflip), 1 feature, 2 shifts"
    assert repr(many) == f"<Predictions: {expected}>"
