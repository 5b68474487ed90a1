"""Joining: rows in order, and images told apart where they come from different places."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import rightly
from rightly import Predictions, concatenate
from rightly.predictions import Source

LOGITS = np.array([[2.0, 1.0, 0.5], [0.1, 3.0, -1.0], [5.0, 4.9, 4.8], [0.0, 0.2, 1.0]])
TWICE = np.concatenate([LOGITS, LOGITS])
SHIFTED = {"shift": [0] * 4 + [1] * 4, "shift_names": ["blur"]}


def test_parts_are_joined_in_order():
    predictions = Predictions(LOGITS, LOGITS[:, None], LOGITS, ["v"], ["a", "b", "c"])
    joined = concatenate([predictions[:1], predictions[1:]])
    np.testing.assert_array_equal(joined.logits, predictions.logits)
    np.testing.assert_array_equal(joined.view_logits, predictions.view_logits)
    assert joined.class_names == ("a", "b", "c")
    assert joined.shift is None


def test_joining_marks_unshifted_rows_with_zero():
    plain, shifted = Predictions(LOGITS), Predictions(LOGITS, shift=[1] * 4, shift_names=["blur"])
    joined = concatenate([plain, shifted])
    assert joined.shift.tolist() == [0] * 4 + [1] * 4
    assert joined.shift_names == ("blur",)
    assert joined.unshifted().tolist() == [True] * 4 + [False] * 4


@pytest.mark.parametrize(
    ("parts", "word"),
    [
        ([], "at least one"),
        ([Predictions(LOGITS), Predictions(LOGITS[:, :2])], "class_count"),
        ([Predictions(LOGITS, LOGITS[:, None], None, ["a"]), Predictions(LOGITS)], "view_names"),
        ([Predictions(LOGITS, features=LOGITS), Predictions(LOGITS)], "features"),
        (
            [
                Predictions(LOGITS, shift=[1] * 4, shift_names=["a"]),
                Predictions(LOGITS, shift=[1] * 4, shift_names=["b"]),
            ],
            "shift",
        ),
    ],
)
def test_parts_that_do_not_fit_are_refused(parts, word):
    with pytest.raises(ValueError, match=word):
        concatenate(parts)


def stored(folder, name, **fields):
    """The same predictions from a file."""
    rightly.save(folder / f"{name}.npz", Predictions(**fields))
    return rightly.load(folder / f"{name}.npz")[0]


def test_images_of_different_files_are_told_apart(tmp_path):
    one, other = (stored(tmp_path, name, logits=TWICE, **SHIFTED) for name in "ab")
    joined = concatenate([one, other])
    assert joined.image.tolist() == [0, 1, 2, 3] * 2 + [4, 5, 6, 7] * 2


def test_parts_of_one_file_keep_their_numbers(tmp_path):
    large = np.arange(8) // 2 * 10**18
    whole = stored(tmp_path, "a", logits=TWICE, image=large)
    again = rightly.load(tmp_path / "a.npz")[0]
    for parts in ([whole[:3], whole[3:]], [whole[:3], again[3:].to("cpu")]):
        assert concatenate(parts).image.tolist() == large.tolist()
    other = stored(tmp_path, "b", logits=TWICE, image=large)
    joined = concatenate([whole[:3], other, whole[3:]])
    assert joined.image.tolist() == [0, 0, 1, *(4 + large // 10**18), 1, 2, 2, 3, 3]


def test_numbers_that_the_caller_gave_mean_the_same_image_everywhere():
    plain = Predictions(LOGITS, image=[4, 3, 2, 1])
    shifted = Predictions(LOGITS, shift=[1] * 4, image=[1, 2, 3, 9])
    assert concatenate([plain, shifted]).image.tolist() == [4, 3, 2, 1, 1, 2, 3, 9]


def test_derived_numbers_of_two_parts_are_told_apart():
    parts = [Predictions(TWICE, **SHIFTED) for _ in range(2)]
    joined = concatenate([parts[0][:5], parts[1], parts[0][5:]])
    assert joined.image.tolist() == [0, 1, 2, 3, 0, *[4, 5, 6, 7] * 2, 1, 2, 3]


def test_plain_parts_are_new_images_beside_numbered_ones():
    joined = concatenate([Predictions(LOGITS), Predictions(TWICE, **SHIFTED), Predictions(LOGITS)])
    assert joined.image.tolist() == [*range(4), *[4, 5, 6, 7] * 2, *range(8, 12)]
    assert concatenate([Predictions(LOGITS)] * 2).image is None


def test_shifted_rows_that_nobody_numbered_are_numbered_by_position_where_that_is_safe():
    shifted = Predictions(LOGITS, shift=[1] * 4)
    assert concatenate([Predictions(LOGITS), shifted]).image.tolist() == [0, 1, 2, 3] * 2
    distinct = Predictions(LOGITS, image=[30, 10, 20, 0])
    assert concatenate([distinct, shifted]).image.tolist() == [0, 1, 2, 3] * 2
    doubled = Predictions(LOGITS, image=[0, 0, 1, 1])  # position would part these
    for parts in ([doubled, shifted], [Predictions(LOGITS[:3]), shifted]):
        with pytest.raises(ValueError, match="store image"):
            concatenate(parts).images()


@settings(deadline=None, max_examples=50)
@given(data=st.data())
def test_rows_share_a_number_only_with_rows_of_the_same_image_and_origin(data):
    drawn = st.lists(st.sampled_from([0, 1, 5, 2**62]), min_size=1, max_size=5)
    whole = [
        Predictions(np.ones((len(numbers), 2)), image=numbers, source=Source(numbering=origin))
        for origin, numbers in ((o, data.draw(drawn)) for o in ("a", "b", None))
    ]
    parts = [part[i : i + 1] for part in whole for i in range(len(part))]
    parts = data.draw(st.permutations(parts))
    joined = concatenate(parts).images()
    keys = [(part.source.numbering, int(part.image)) for part in parts]
    for i, key in enumerate(keys):
        same = torch.tensor([other == key for other in keys])
        assert torch.equal(joined == joined[i], same)
