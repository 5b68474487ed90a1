"""What Predictions are made of, checked once at the door: every error names the argument."""

import warnings
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from rightly.shapes import AnyArray
from rightly.tensor_shapes import Features, Labels, Logits, ViewLogits

# Rows that sum to 1 this closely, all of them, are probabilities; float16 ones miss 1 by 1e-3.
SUM_TOLERANCE = 5e-3


def tensor_of(name: str, array: np.ndarray) -> Tensor:
    """A torch tensor of the numbers in an array, whatever its byte order or layout."""
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be numbers, got an array of {array.dtype}")
    if array.dtype.kind == "u":
        array = array.astype(np.int64)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    if not native.flags.writeable or not native.flags.c_contiguous:
        native = native.copy()  # torch wants memory that it may own
    return torch.from_numpy(native)


def _floats(name: str, values: AnyArray, dimensions: str) -> Tensor:
    """Finite float32 or float64 with the given dimensions; half precision is widened."""
    tensor = values.detach() if isinstance(values, Tensor) else tensor_of(name, np.asarray(values))
    if not tensor.is_floating_point():
        raise TypeError(f"{name} must be of a float type, got {tensor.dtype}")
    if tensor.ndim != len(dimensions.split()) or not tensor.numel():
        raise ValueError(
            f"{name} must have shape ({', '.join(dimensions.split())}) and not be empty, "
            f"got shape {tuple(tensor.shape)}"
        )
    if tensor.dtype not in (torch.float32, torch.float64):
        tensor = tensor.float()
    # A finite sum proves that every entry is finite, at a fiftieth of the cost of asking each.
    if not torch.isfinite(tensor.sum()) and not torch.isfinite(tensor).all():
        bad = int((~torch.isfinite(tensor)).flatten(1).any(1).sum())
        raise ValueError(
            f"{name} must be finite, got NaN or infinity in {bad} of {len(tensor)} rows: "
            "drop those rows, or collect them in float32 if float16 overflowed"
        )
    return tensor


def _look_like_probabilities(values: Tensor) -> bool:
    # The first row settles nearly every case, so that large tensors are not read twice.
    first = values[:1]
    if bool((first < 0).any()) or abs(float(first.sum(-1).flatten()[0]) - 1) > SUM_TOLERANCE:
        return False
    return bool((values >= 0).all()) and bool(((values.sum(-1) - 1).abs() <= SUM_TOLERANCE).all())


def checked_logits(values: AnyArray) -> Logits:
    """Logits, or an error that says what is off."""
    logits = _floats("logits", values, "n c")
    if logits.shape[1] < 2:
        raise ValueError(f"logits must cover at least 2 classes, got {logits.shape[1]}")
    if _look_like_probabilities(logits):
        raise ValueError(
            "logits must be scores before softmax, but every row is non-negative and sums to 1: "
            "use Predictions.from_probabilities if these are probabilities"
        )
    return logits


def checked_views(values: AnyArray, logits: Tensor) -> ViewLogits:
    """Logits of views that belong to these logits."""
    views = _floats("view_logits", values, "n m c")
    n, c = logits.shape
    if views.shape[::2] != (n, c):
        raise ValueError(
            f"view_logits must have shape ({n}, views, {c}) like logits, got {tuple(views.shape)}"
        )
    if _look_like_probabilities(views):
        raise ValueError(
            "view_logits must be scores before softmax, but every row is non-negative and sums to "
            "1: use Predictions.from_probabilities if these are probabilities"
        )
    return views.to(logits.device)


def checked_features(values: AnyArray, logits: Tensor) -> Features:
    """Features that belong to these logits."""
    features = _floats("features", values, "n d")
    if len(features) != len(logits):
        raise ValueError(f"features must have {len(logits)} rows like logits, got {len(features)}")
    return features.to(logits.device)


def checked_view_names(names: Sequence[str] | None, views: Tensor | None) -> tuple[str, ...]:
    """One name for each view; numbered where none are given."""
    count = 0 if views is None else views.shape[1]
    if names is None:
        return tuple(f"view_{i}" for i in range(count))
    if isinstance(names, str):
        raise TypeError(f"view_names must be a sequence of names, got the string {names!r}")
    chosen = tuple(str(name) for name in names)
    if len(chosen) != count or len(set(chosen)) != count:
        raise ValueError(
            f"view_names must be {count} different names, one a view, got {list(chosen)}"
        )
    return chosen


def checked_class_names(names: Sequence[str] | None, c: int) -> tuple[str, ...] | None:
    """One name for each class."""
    if names is None:
        return None
    if isinstance(names, str):
        raise TypeError(f"class_names must be a sequence of names, got the string {names!r}")
    chosen = tuple(str(name) for name in names)
    if len(chosen) != c:
        raise ValueError(f"class_names must have {c} names, one a class, got {len(chosen)}")
    return chosen


def checked_shift(values: AnyArray, logits: Tensor, names: tuple[str, ...]) -> Labels:
    """Which shift each row shows."""
    given = values if isinstance(values, Tensor) else tensor_of("shift", np.asarray(values))
    if given.is_floating_point() or given.dtype == torch.bool:
        raise TypeError(f"shift must be integers, 0 for images as they are, got {given.dtype}")
    if tuple(given.shape) != (len(logits),):
        raise ValueError(
            f"shift must have shape ({len(logits)},) like logits, got {tuple(given.shape)}"
        )
    low, high = int(given.min()), int(given.max())
    if low < 0 or (names and high > len(names)):
        raise ValueError(
            f"shift must lie in 0..{len(names)}, 0 for images as they are and s for "
            f"shift_names[s - 1], got {low}..{high}"
        )
    return given.to(logits.device, torch.int64)


def row_index(rows: AnyArray, logits: Tensor) -> Tensor:
    """A mask or row numbers on the device of the logits."""
    index = rows if isinstance(rows, Tensor) else tensor_of("rows", np.asarray(rows))
    if index.ndim != 1 or index.is_floating_point():
        raise TypeError(
            "predictions are selected by a slice, a boolean mask or a vector of row numbers, "
            f"got {index.dtype} of shape {tuple(index.shape)}"
        )
    if index.dtype == torch.bool and len(index) != len(logits):
        raise ValueError(f"a mask must have {len(logits)} entries like logits, got {len(index)}")
    return index.to(logits.device)


def log_of_probabilities(name: str, values: AnyArray) -> Tensor:
    """Logits of a classifier that gives probabilities, with a warning where they saturate."""
    raw = values if isinstance(values, Tensor) else np.asarray(values)
    halves = str(raw.dtype).endswith(("float16", "bfloat16"))
    probabilities = _floats(name, values, "n m c" if name.startswith("view") else "n c")
    off = (probabilities.sum(-1) - 1).abs() > SUM_TOLERANCE
    if bool((probabilities < 0).any()) or bool(off.any()):
        raise ValueError(
            f"{name} must be non-negative rows that sum to 1, but {int(off.sum())} rows do not: "
            "use Predictions(logits=...) if these are logits"
        )
    if halves or bool((probabilities == 0).any()):
        warnings.warn(
            f"{name} hold exact zeros or are in half precision: what softmax rounded away cannot "
            "be restored, so a temperature fitted on them is unreliable; prefer logits",
            UserWarning,
            stacklevel=3,
        )
    return probabilities.clamp_min(torch.finfo(torch.float32).tiny).log()


def checked_log_probabilities(name: str, values: AnyArray) -> Tensor:
    """Log-probabilities, which are logits already."""
    given = _floats(name, values, "n m c" if name.startswith("view") else "n c")
    off = given.logsumexp(-1).abs() > SUM_TOLERANCE
    if bool(off.any()):
        raise ValueError(
            f"{name} must be rows whose exponentials sum to 1, but {int(off.sum())} rows are not: "
            "use Predictions(logits=...) if these are logits"
        )
    return given
