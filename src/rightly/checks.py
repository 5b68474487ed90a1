"""Checks of arguments: each returns the checked value or names what was expected and what came."""

from typing import Any

import numpy as np

from rightly.shapes import AnyArray, Confidence, Correct, Probabilities, TrueClasses


def check_confidence(confidence: AnyArray, correct: AnyArray) -> tuple[Confidence, Correct]:
    """Refuse swapped, mis-shaped or out-of-range vectors; return float64 and boolean ones."""
    c, a = check_outcomes(confidence, correct)
    return c.astype(np.float64, copy=False), a


def check_outcomes(confidence: AnyArray, correct: AnyArray) -> tuple[np.ndarray, Correct]:
    """The same, but float32 stays as it is."""
    c, a = _convert_to_numpy("confidence", confidence), _convert_to_numpy("correct", correct)
    if a.size and a.dtype != bool:
        raise TypeError(
            f"correct must be boolean, got {a.dtype}: are the arguments swapped? "
            "Pass predictions == labels, or 0/1 numbers as correct.astype(bool)"
        )
    _check_vector("confidence", c)
    if a.shape != c.shape:
        raise ValueError(
            f"correct must have shape {c.shape} like confidence, got {a.shape}: "
            "pass both for the same samples"
        )
    return _check_range("confidence", c), a.astype(bool, copy=False)


def check_unlabelled(name: str, confidence: AnyArray) -> Confidence:
    """Refuse confidences that are mis-shaped or out of range; these come without labels."""
    c = _convert_to_numpy(name, confidence)
    _check_vector(name, c)
    return _check_range(name, c).astype(np.float64, copy=False)


def _check_vector(name: str, c: np.ndarray) -> None:
    if c.ndim != 1 or not c.size:
        raise ValueError(
            f"{name} must be a non-empty vector, one number per sample, got shape {c.shape}: "
            "pass the predicted class's probability, e.g. probabilities.max(-1)"
        )


def _check_range(name: str, c: np.ndarray) -> np.ndarray:
    c = _check_real(name, c)
    low, high = c.min(), c.max()
    # One part in 1e9 above 1 is what adding a tie-breaking epsilon or renormalising leaves.
    if low < 0 or high > 1 + 1e-9:
        raise ValueError(
            f"{name} must lie in [0, 1], got values from {low:g} to {high:g}: "
            "pass probabilities, not logits or percentages"
        )
    return np.minimum(c, 1.0) if high > 1 else c


def check_probabilities(
    probabilities: AnyArray, labels: AnyArray
) -> tuple[Probabilities, TrueClasses]:
    """Refuse swapped or mis-shaped arrays, rows that are no distribution, unknown classes."""
    p, y = _convert_to_numpy("probabilities", probabilities), _convert_to_numpy("labels", labels)
    if y.size and y.dtype.kind not in "iu":
        raise TypeError(
            f"labels must be integers, got {y.dtype}: are the arguments swapped? "
            "Pass class indices, e.g. labels.astype(int)"
        )
    if p.ndim != 2 or not p.size:
        raise ValueError(
            f"probabilities must have shape (n, c), one row per sample, got {p.shape}: "
            "for two classes pass both columns, 1 - p and p"
        )
    if y.shape != p.shape[:1]:
        raise ValueError(
            f"labels must have shape {p.shape[:1]} like the rows of probabilities, got {y.shape}: "
            "pass both for the same samples"
        )
    p = _check_real("probabilities", p).astype(np.float64, copy=False)
    total = p.sum(-1)
    if p.min() < 0 or abs(total - 1).max() > 1e-3:  # what a softmax in float16 leaves
        raise ValueError(
            f"probabilities must be non-negative with rows that sum to 1, got a minimum of "
            f"{p.min():g} and sums from {total.min():g} to {total.max():g}: "
            "pass logits through softmax, in float32 or better"
        )
    if y.min() < 0 or y.max() >= p.shape[1]:
        raise ValueError(
            f"labels must lie in [0, {p.shape[1] - 1}] as probabilities have {p.shape[1]} columns, "
            f"got {y.min()} to {y.max()}: count classes from 0, in the order of the columns"
        )
    return p, y.astype(np.int64)


def check_groups(groups: AnyArray, count: int) -> tuple[list[Any], np.ndarray]:
    """The different groups in order, and the place of each sample's group among them."""
    g = _convert_to_numpy("groups", groups)
    if g.shape != (count,):
        raise ValueError(
            f"groups must have shape ({count},) like confidence, got {g.shape}: name the group of "
            "each sample"
        )
    if g.dtype.kind not in "biuUS":
        raise TypeError(
            f"groups must be whole numbers or text, got {g.dtype}: pass for instance predicted "
            "classes, or names as groups.astype(str)"
        )
    names, number = np.unique(g, return_inverse=True)
    return names.tolist(), number


def _convert_to_numpy(name: str, value: AnyArray) -> np.ndarray:
    if hasattr(value, "detach"):  # a torch tensor, recognised by its method so that torch stays out
        tensor = value.detach().cpu()
        # NumPy has no bfloat16.
        return (tensor.double() if tensor.is_floating_point() else tensor).numpy()
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be an array, got {value!r:.40}: make rows equally long"
        ) from error


def _check_real(name: str, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must hold real numbers, got {array.dtype}: convert with {name}.astype(float)"
        )
    # A minimum or maximum tells, and takes no memory: either is nan if any number is.
    if not np.isfinite([array.min(), array.max()]).all():
        non_finite = array.size - np.isfinite(array).sum()
        raise ValueError(
            f"{name} must be finite, got {non_finite} of {array.size} nan or infinite: "
            "drop those samples or repair the model that gave them"
        )
    return array if array.dtype == np.float32 else array.astype(np.float64, copy=False)


def check_bins(bins: object) -> int:
    """A positive whole number of bins."""
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer):
        raise TypeError(f"bins must be a whole number, got {bins!r}: pass for instance 25")
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins}: pass for instance 25")
    return int(bins)


def check_share(name: str, value: object) -> None:
    """Refuse a value that is not a number in [0, 1]."""
    if not (_is_number(value) and 0 <= value <= 1):  # type: ignore[operator]
        raise ValueError(f"{name} must be a fraction in [0, 1], got {value!r}: {_advise(value)}")


def check_fraction(name: str, value: object) -> None:
    """Refuse a value that is not a number in (0, 1)."""
    if not (_is_number(value) and 0 < value < 1):  # type: ignore[operator]
        raise ValueError(f"{name} must be a fraction in (0, 1), got {value!r}: {_advise(value)}")


def _is_number(value: object) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool)


def _advise(value: object) -> str:
    """What to pass instead: the fraction of a percentage, for a number that may be one."""
    if _is_number(value) and 1 < value < 100:  # type: ignore[operator]
        return f"for {value:g} % pass {value / 100:g}"  # type: ignore[operator]
    return "pass for instance 0.95"


def is_count(value: object, least: int = 0) -> bool:
    """Whether a value is a whole number from `least` on."""
    return type(value) is int and value >= least


def is_share(value: object) -> bool:
    """Whether a value is a number from 0 to 1."""
    return type(value) in (int, float) and 0 <= value <= 1  # type: ignore[operator]


def is_text(value: object) -> bool:
    """Whether a value is text or null."""
    return value is None or isinstance(value, str)


def are_names(value: object) -> bool:
    """Whether a value is a list of names."""
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def are_distinct_names(value: object) -> bool:
    """Whether a value is a list of names, none of them twice."""
    return are_names(value) and len(set(value)) == len(value)  # type: ignore[arg-type, call-overload]
