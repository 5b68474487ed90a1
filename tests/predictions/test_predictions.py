import numpy as np
import pytest
import torch

from rightly import Predictions, concatenate

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
    predictions = Predictions(LOGITS, LOGITS[:, None], LOGITS, ["v"], shift=[0, 1, 2, 0])
    for rows in (slice(1, 3), [1, 2], np.array([False, True, True, False]), torch.tensor([1, 2])):
        chosen = predictions[rows]
        assert len(chosen) == 2
        np.testing.assert_array_equal(chosen.view_logits[:, 0], LOGITS[1:3])
        np.testing.assert_array_equal(chosen.features, LOGITS[1:3])
        assert chosen.shift.tolist() == [1, 2]
        assert chosen.view_names == ("v",)


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


def test_views_are_chosen_by_name():
    views = np.stack([LOGITS, LOGITS + 1, LOGITS + 2], 1)
    chosen = Predictions(LOGITS, views, view_names=["a", "b", "c"]).with_views(["c", "a"])
    np.testing.assert_array_equal(chosen.view_logits, views[:, [2, 0]])
    assert chosen.view_names == ("c", "a")
    with pytest.raises(ValueError, match="views must be some of"):
        chosen.with_views(["b"])


BAD = {
    "NaN": (lambda: Predictions([[np.nan, 1.0]]), ValueError, "logits must be finite"),
    "infinite": (lambda: Predictions([[np.inf, 1.0]]), ValueError, "logits must be finite"),
    "both infinities": (
        lambda: Predictions([[np.inf, -np.inf], [1.0, 2.0]]),
        ValueError,
        "in 1 of 2 rows",
    ),
    "NaN view": (
        lambda: Predictions([[0.5, 1.5]], [[[np.nan, 1.0]]]),
        ValueError,
        "view_logits must be finite",
    ),
    "empty": (lambda: Predictions(np.empty((0, 3))), ValueError, "not be empty"),
    "vector": (lambda: Predictions([1.0, 2.0]), ValueError, r"shape \(n, c\)"),
    "one class": (lambda: Predictions([[1.0], [2.0]]), ValueError, "at least 2 classes"),
    "integers": (lambda: Predictions([[1, 2]]), TypeError, "float"),
    "text": (lambda: Predictions([["a", "b"]]), TypeError, "logits must be numbers"),
    "objects": (lambda: Predictions(np.array([[None, 1]])), TypeError, "logits must be numbers"),
    "probabilities": (lambda: Predictions([[0.2, 0.8]]), ValueError, "from_probabilities"),
    "probable views": (
        lambda: Predictions([[1.0, 2.0]], [[[0.25, 0.75]]]),
        ValueError,
        "from_probabilities",
    ),
    "views of other length": (
        lambda: Predictions(LOGITS, LOGITS[:3, None]),
        ValueError,
        "view_logits must have shape",
    ),
    "features of other length": (
        lambda: Predictions(LOGITS, features=LOGITS[:3]),
        ValueError,
        "features must have 4 rows like logits, got 3",
    ),
    "too few view names": (
        lambda: Predictions(LOGITS, LOGITS[:, None], view_names=["a", "b"]),
        ValueError,
        "view_names",
    ),
    "a string for names": (
        lambda: Predictions(LOGITS, class_names="abc"),
        TypeError,
        "class_names must be a sequence",
    ),
    "too few class names": (
        lambda: Predictions(LOGITS, class_names=["a"]),
        ValueError,
        "class_names must have 3",
    ),
    "float shift": (lambda: Predictions(LOGITS, shift=[0.0] * 4), TypeError, "shift"),
    "unnamed shift": (
        lambda: Predictions(LOGITS, shift=[2] * 4, shift_names=["a"]),
        ValueError,
        "shift must lie in 0..1",
    ),
    "no rows": (lambda: Predictions(LOGITS)[[False] * 4], ValueError, "at least one row"),
    "short mask": (lambda: Predictions(LOGITS)[[True]], ValueError, "mask must have 4"),
    "float rows": (lambda: Predictions(LOGITS)[[0.5]], TypeError, "selected by"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_by_name(case):
    call, error, words = BAD[case]
    with pytest.raises(error, match=words):
        call()


LABELS = {
    "float": ([0.0, 1.0, 2.0, 0.0], TypeError, "labels must be integers"),
    "boolean": ([True, False, True, True], TypeError, "labels must be integers"),
    "too large": ([0, 1, 2, 3], ValueError, r"labels must lie in 0..2 for 3 classes, got 0..3"),
    "negative": ([-1, 1, 2, 0], ValueError, "labels must lie in"),
    "short": ([0, 1], ValueError, r"labels must have shape \(4,\)"),
    "two-dimensional": ([[0], [1], [2], [0]], ValueError, "labels must have shape"),
    "text": (["a", "b", "c", "d"], TypeError, "labels must be numbers"),
}


@pytest.mark.parametrize("case", LABELS)
def test_bad_labels_are_refused(case):
    labels, error, words = LABELS[case]
    with pytest.raises(error, match=words):
        Predictions(LOGITS).correct(labels)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.uint64])
def test_labels_of_any_integer_type_are_taken(dtype):
    labels = np.array([0, 1, 2, 2], dtype)
    assert Predictions(LOGITS).correct(labels).tolist() == [True, True, False, True]


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
