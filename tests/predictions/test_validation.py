"""What is refused at the door, by the name of the argument."""

import numpy as np
import pytest

import rightly
from rightly import Predictions

LOGITS = np.array([[2.0, 1.0, 0.5], [0.1, 3.0, -1.0], [5.0, 4.9, 4.8], [0.0, 0.2, 1.0]])


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
    "float image": (lambda: Predictions(LOGITS, image=[0.0] * 4), TypeError, "image must be int"),
    "boolean image": (
        lambda: Predictions(LOGITS, image=[True] * 4),
        TypeError,
        "image must be int",
    ),
    "text image": (
        lambda: Predictions(LOGITS, image=["a"] * 4),
        TypeError,
        "image must be numbers",
    ),
    "short image": (
        lambda: Predictions(LOGITS, image=[0]),
        ValueError,
        r"image must have shape \(4,\)",
    ),
    "no image at all": (
        lambda: Predictions(LOGITS, image=[0, 1, -1, 2]),
        ValueError,
        "image must not be negative, got -1: give every row",
    ),
    "image beyond int64": (
        lambda: Predictions(LOGITS, image=np.full(4, 2**63, np.uint64)),
        ValueError,
        "image must be at most 9223372036854775807, got 9223372036854775808",
    ),
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


@pytest.mark.parametrize("label", [-1, 3, 4])
def test_a_label_outside_the_classes_is_refused(label):
    labels = np.array([0, 1, label, 2])
    with pytest.raises(ValueError, match=r"labels must lie in 0\.\.2 for 3 classes"):
        Predictions(LOGITS).correct(labels)


def test_a_negative_shift_is_refused():
    with pytest.raises(ValueError, match=r"shift must lie in 0\.\.1, .* got -1\.\.1"):
        Predictions(LOGITS, shift=[0, 1, -1, 0], shift_names=["blur"])


def test_percentages_are_no_logits():
    percent = 100 * np.random.default_rng(0).dirichlet(np.ones(4), 20)
    for wrong in (percent, percent.astype(np.float16)):
        with pytest.raises(ValueError, match="every row .* sums to 100, as percentages do: divide"):
            rightly.Predictions(wrong)
    rightly.Predictions(percent + [[0.0], [7.0]] * 10)  # half of the rows do not
