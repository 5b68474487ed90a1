"""Checks of arguments: each returns the checked value or names what was expected and what came."""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from rightly.registry import unknown_name
from rightly.shapes import AnyArray, Confidence, Correct, Probabilities, TrueClasses

MAX_FLOAT = sys.float_info.max


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


def check_count(
    name: str, value: Any, low: int = 1, high: int | None = None, remedy: str = ""
) -> int:
    """The value as an integer; refuse what is no whole number in this range."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number, got {value!r}{_add(remedy)}")
    _check_bounds(name, value, low, high, remedy)
    return int(value)


def check_number(
    name: str, value: Any, low: float | int, high: float | int | None = None, remedy: str = ""
) -> None:
    """Refuse what is no finite number in this range."""
    if not is_number(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}{_add(remedy)}")
    _check_bounds(name, value, low, high, remedy)


def _check_bounds(name: str, value: Any, low: Any, high: Any, remedy: str) -> None:
    if value < low or (high is not None and value > high):
        bounds = f"be at least {low:g}" if high is None else f"lie between {low:g} and {high:g}"
        raise ValueError(f"{name} must {bounds}, got {value!r}{_add(remedy)}")


def check_positive(name: str, value: object, remedy: str = "") -> None:
    """Refuse what is no finite number above 0."""
    if not (is_number(value) and value > 0):  # type: ignore[operator]
        raise ValueError(f"{name} must be a positive number, got {value!r}{_add(remedy)}")


def check_choice(name: str, value: object, choices: Iterable[object], listed: str = "") -> None:
    """Refuse what is none of the choices; name the one that is spelled alike, or what lists all."""
    known = list(choices)
    if value not in known:
        raise unknown_name(name, value, map(str, known), listed=listed)


def check_names(name: str, given: Iterable[str], choices: Iterable[str], remedy: str) -> None:
    """Refuse names of which some are none of the choices."""
    known = list(choices)
    if unknown := [item for item in given if item not in known]:
        raise ValueError(
            f"{name} must be of {abbreviate(known)}, got {abbreviate(unknown)}: {remedy}"
        )


def check_type(name: str, value: object, kinds: Any, expected: str, remedy: str = "") -> None:
    """Refuse a value of none of these types."""
    if not isinstance(value, kinds):
        found = type(value).__name__
        raise TypeError(f"{name} must be {expected}, got {found}{_add(remedy)}")


def check_shape(name: str, array: Any, shape: tuple[Any, ...], remedy: str = "") -> None:
    """Refuse an array of another shape; sizes that are text, such as "n", may be any."""
    found = tuple(array.shape)
    sizes = zip(found, shape, strict=True) if len(found) == len(shape) else [(0, 1)]
    if any(size != wanted and not isinstance(wanted, str) for size, wanted in sizes):
        listed = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
        raise ValueError(f"{name} must have shape ({listed}), got {found}{_add(remedy)}")


def check_length(name: str, count: int, expected: int, of: str, remedy: str = "") -> None:
    """Refuse another number of entries than there must be."""
    if count != expected:
        raise ValueError(f"{name} must have {expected} {of}, got {count}{_add(remedy)}")


def check_classes(name: str, low: int, high: int, count: int, remedy: str) -> None:
    """Refuse the range of class numbers that are not 0 to count - 1."""
    if low < 0 or high >= count:
        raise ValueError(
            f"{name} must lie in 0..{count - 1} for {count} classes, got {low}..{high}: {remedy}"
        )


def check_file(path: Path, what: str) -> Path:
    """The path; refuse one at which there is no file."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no {what} {path}")
    return path


@contextmanager
def refuse(*kinds: type[Exception], what: object, remedy: str = "") -> Iterator[None]:
    """Raise errors of these kinds as a ValueError that begins with what is wrong."""
    try:
        yield
    except kinds as error:
        raise ValueError(f"{what}: {error}{_add(remedy, '; ')}") from error


def abbreviate(items: Sequence[object]) -> str:
    """The first three of many, for messages."""
    shown = ", ".join(str(item) for item in items[:3])
    return shown if len(items) <= 3 else f"{shown} and {len(items) - 3} more"


def _add(remedy: str, mark: str = ": ") -> str:
    return f"{mark}{remedy}" if remedy else ""


def check_share(name: str, value: object) -> None:
    """Refuse a value that is not a number in [0, 1]."""
    if not (is_number(value) and 0 <= value <= 1):  # type: ignore[operator]
        raise ValueError(f"{name} must be a fraction in [0, 1], got {value!r}: {_advise(value)}")


def check_fraction(name: str, value: object) -> None:
    """Refuse a value that is not a number in (0, 1)."""
    if not (is_number(value) and 0 < value < 1):  # type: ignore[operator]
        raise ValueError(f"{name} must be a fraction in (0, 1), got {value!r}: {_advise(value)}")


def _advise(value: object) -> str:
    """What to pass instead: the fraction of a percentage, for a number that may be one."""
    if is_number(value) and 1 < value < 100:  # type: ignore[operator]
        return f"for {value:g} % pass {value / 100:g}"  # type: ignore[operator]
    return "pass for instance 0.95"


# What entries of tables in files must be: in words, and a function that tells.
Schema = Mapping[str, tuple[str, Callable[[Any], bool]]]


def check_table(
    values: Any,
    schema: Schema,
    what: str = "",
    *,
    required: Collection[str] = (),
    only: bool = False,
) -> Mapping[str, Any]:
    """Refuse what is no table, or has entries that are not as the schema says.

    Entries that are not `required` may be missing; with `only`, there may be no others.
    """
    name = what or "it"
    if not isinstance(values, Mapping):
        raise ValueError(f"{name} must be a table, got {str(values)[:60]}")
    if only and (unknown := sorted(map(str, values.keys() - schema.keys()))):
        raise ValueError(f"{name} must have entries of {', '.join(schema)}, got {unknown[0][:60]}")
    for key, (expected, is_right) in schema.items():
        value = values.get(key)
        if (key in values or key in required) and not is_right(value):
            place = f"{what}.{key}" if what else key
            raise ValueError(f"{place} must be {expected}, got {str(value)[:60]}")
    return values


def check_version(found: object, version: object, what: object, remedy: str) -> None:
    """Refuse what another version wrote."""
    if found != version:
        is_later = is_number(found) and is_number(version) and found > version  # type: ignore[operator]
        first = "update rightly" if is_later else "use the rightly that wrote it"
        raise ValueError(
            f"{what} has format version {found}, but this rightly reads {version}: {first}, "
            f"or {remedy}"
        )


def is_number(value: object) -> bool:
    """Whether a value is a finite number, and not true or false."""
    is_real = isinstance(value, Real) and not isinstance(value, bool)
    return is_real and -MAX_FLOAT <= value <= MAX_FLOAT  # type: ignore[operator]


def is_count(value: object, least: int = 0) -> bool:
    """Whether a value is a whole number from `least` on."""
    return type(value) is int and value >= least


def is_share(value: object) -> bool:
    """Whether a value is a number from 0 to 1."""
    return type(value) in (int, float) and 0 <= value <= 1  # type: ignore[operator]


def is_flag(value: object) -> bool:
    """Whether a value is true or false."""
    return isinstance(value, bool)


def is_text(value: object) -> bool:
    """Whether a value is text."""
    return isinstance(value, str)


def is_table(value: object) -> bool:
    """Whether a value is a table."""
    return isinstance(value, Mapping)


def are_names(value: object) -> bool:
    """Whether a value is a list of names."""
    return isinstance(value, list) and all(map(is_text, value))


def are_distinct_names(value: object) -> bool:
    """Whether a value is a list of names, none of them twice."""
    return are_names(value) and len(set(value)) == len(value)  # type: ignore[arg-type, call-overload]


def are_numbers(value: object, count: int | None = None) -> bool:
    """Whether a value is a list of numbers, so many of them."""
    return isinstance(value, list) and count in (None, len(value)) and all(map(is_number, value))


def is_interval(value: Any) -> bool:
    """Whether a value is two numbers from 0 to 1 in order."""
    is_pair = isinstance(value, list | tuple) and len(value) == 2
    return is_pair and all(map(is_share, value)) and value[0] <= value[1]


def or_null(is_right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """The same test, which null passes too."""
    return lambda value: value is None or is_right(value)


def table_of(**entries: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Whether a value is a table whose entries of these names pass their tests."""
    return lambda value: (
        isinstance(value, Mapping)
        and all(is_right(value.get(name)) for name, is_right in entries.items())
    )
