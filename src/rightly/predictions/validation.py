"""What Predictions are made of, checked once at the door: every error names the argument."""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from rightly.predictions.masking import (
    MASKED,
    bound_half,
    bound_masked,
    check_possible,
    check_range,
)
from rightly.shapes import AnyArray
from rightly.tensor_shapes import Features, Labels, Logits, ViewLogits

if TYPE_CHECKING:
    from rightly.predictions.predictions import Predictions

# Rows that sum to 1 this closely, all of them, are probabilities; float16 ones miss 1 by 1e-3.
SUM_TOLERANCE = 5e-3
MAX_INT = np.iinfo(np.int64).max


def to_tensor(name: str, array: np.ndarray) -> Tensor:
    """A torch tensor of the numbers in an array, whatever its byte order or layout."""
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be numbers, got an array of {array.dtype}")
    if array.dtype.kind == "u":
        if array.dtype.itemsize == 8 and array.size and array.max() > MAX_INT:
            raise ValueError(f"{name} must be at most {MAX_INT}, got {array.max()}")
        array = array.astype(np.int64)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    if not native.flags.writeable or not native.flags.c_contiguous:
        native = native.copy()  # torch wants memory that it may own
    return torch.from_numpy(native)


def check_floats(name: str, values: AnyArray, dimensions: str) -> Tensor:
    """float32 or float64 with these dimensions; half precision is widened."""
    tensor = values.detach() if isinstance(values, Tensor) else to_tensor(name, np.asarray(values))
    if not tensor.is_floating_point():
        raise TypeError(f"{name} must be of a float type, got {tensor.dtype}")
    if tensor.ndim != len(dimensions.split()) or not tensor.numel():
        raise ValueError(
            f"{name} must have shape ({', '.join(dimensions.split())}) and not be empty, "
            f"got shape {tuple(tensor.shape)}"
        )
    if tensor.dtype not in (torch.float32, torch.float64):
        tensor = tensor.float()
    return tensor


def check_finite(name: str, tensor: Tensor) -> Tensor:
    # A finite sum proves that every entry is finite, at a fiftieth of the cost of asking each.
    if not torch.isfinite(tensor.sum()) and not torch.isfinite(tensor).all():
        bad = int((~torch.isfinite(tensor)).flatten(1).any(1).sum())
        raise ValueError(
            f"{name} must be finite, got NaN or infinity in {bad} of {len(tensor)} rows: "
            "drop those rows, or collect them in float32 if float16 overflowed"
        )
    return tensor


def _check_scores(name: str, values: AnyArray, dimensions: str) -> Tensor:
    """Logits with MASKED for the classes that a row cannot have; each row must have one left."""
    tensor = check_floats(name, values, dimensions)
    if str(getattr(values, "dtype", "")).removeprefix("torch.") == "float16":
        tensor = bound_half(tensor)
    low, high = (float(bound) for bound in torch.aminmax(tensor))
    if low > MASKED and high < -MASKED:  # not so for NaN
        return tensor
    tensor = check_finite(name, bound_masked(tensor))
    check_range(name, tensor)
    return tensor


def _refuse_probabilities(name: str, values: Tensor) -> None:
    """Refuses what is built as probabilities are: no negative entry, and every row sums to 1."""
    for total, kind, remedy in (
        (1, "probabilities", "use Predictions.from_probabilities if these are probabilities"),
        (100, "percentages", "divide them by 100 and use Predictions.from_probabilities"),
    ):
        # The first row settles nearly every case, so that large tensors are not read twice.
        if all(sum_to(total, some) for some in (values[:1], values)):
            raise ValueError(
                f"{name} must be scores before softmax, but every row is non-negative and sums to "
                f"{total}, as {kind} do: {remedy}"
            )


def sum_to(total: int, values: Tensor) -> bool:
    """Whether no value is negative and every row sums to this."""
    sums = values.sum(-1) / total
    return bool((values >= 0).all()) and bool(((sums - 1).abs() <= SUM_TOLERANCE).all())


def check_logits(values: AnyArray) -> Logits:
    """Logits, or an error that says what is off."""
    logits = _check_scores("logits", values, "n c")
    if logits.shape[1] < 2:
        raise ValueError(
            f"logits must cover at least 2 classes, got {logits.shape[1]}: "
            "use Predictions.from_binary if these are the log-odds of class 1"
        )
    _refuse_probabilities("logits", logits)
    return logits


def check_views(values: AnyArray, logits: Tensor) -> ViewLogits:
    """Logits of views that belong to these logits."""
    views = _check_scores("view_logits", values, "n m c")
    n, c = logits.shape
    if views.shape[::2] != (n, c):
        raise ValueError(
            f"view_logits must have shape ({n}, views, {c}) like logits, got {tuple(views.shape)}"
        )
    _refuse_probabilities("view_logits", views)
    return views.to(logits.device)


def check_features(values: AnyArray, logits: Tensor) -> Features:
    """Features that belong to these logits."""
    features = check_finite("features", check_floats("features", values, "n d"))
    if len(features) != len(logits):
        raise ValueError(f"features must have {len(logits)} rows like logits, got {len(features)}")
    return features.to(logits.device)


def check_view_names(names: Sequence[str] | None, views: Tensor | None) -> tuple[str, ...]:
    """One name for each view; numbered where there are none."""
    count = 0 if views is None else views.shape[1]
    if names is None:
        return tuple(f"view_{i}" for i in range(count))
    if isinstance(names, str):
        raise TypeError(f"view_names must be a sequence of names, got the string {names!r}")
    titles = tuple(str(name) for name in names)
    if len(titles) != count or len(set(titles)) != count:
        raise ValueError(
            f"view_names must be {count} different names, one a view, got {list(titles)}"
        )
    return titles


def check_class_names(names: Sequence[str] | None, c: int) -> tuple[str, ...] | None:
    """One name for each class."""
    if names is None:
        return None
    if isinstance(names, str):
        raise TypeError(f"class_names must be a sequence of names, got the string {names!r}")
    titles = tuple(str(name) for name in names)
    if len(titles) != c:
        raise ValueError(f"class_names must have {c} names, one per class, got {len(titles)}")
    return titles


def check_shift(values: AnyArray, logits: Tensor, names: tuple[str, ...]) -> Labels:
    """Which shift each row shows."""
    shift = check_integers("shift", "0 for images as they are", values, logits)
    low, high = int(shift.min()), int(shift.max())
    if low < 0 or (names and high > len(names)):
        raise ValueError(
            f"shift must lie in 0..{len(names)}, 0 for images as they are and s for "
            f"shift_names[s - 1], got {low}..{high}"
        )
    return shift


def check_image(values: AnyArray, logits: Tensor) -> Labels:
    """Which image each row shows."""
    image = check_integers("image", "a number for each image", values, logits)
    if int(image.min()) < 0:
        raise ValueError(
            f"image must not be negative, got {int(image.min())}: give every row the number of "
            "its image, from 0 on and the same for shifted copies, or leave image out"
        )
    return image


def derive_images(shift: Labels | None) -> Labels | None:
    """Numbers of images by position among the rows of each shift; None where that is a guess."""
    if shift is None or not shift.any():
        return None
    values, counts = shift.unique(return_counts=True)
    if int(values[0]) != 0 or not (counts == counts[0]).all():
        return None
    numbers = torch.zeros_like(shift)
    for value in values.tolist():
        numbers[shift == value] = torch.arange(int(counts[0]), device=shift.device)
    return numbers


def check_integers(name: str, meaning: str, values: AnyArray, logits: Tensor) -> Labels:
    """One int64 a row, on the device of the logits."""
    tensor = values.detach() if isinstance(values, Tensor) else to_tensor(name, np.asarray(values))
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise TypeError(
            f"{name} must be integers, {meaning}, got {tensor.dtype}: "
            f"use {name}.astype(int) if they are whole numbers"
        )
    if tuple(tensor.shape) != (len(logits),):
        raise ValueError(
            f"{name} must have shape ({len(logits)},) like logits, got {tuple(tensor.shape)}"
        )
    return tensor.to(logits.device, torch.int64)


def check_labels(
    labels: AnyArray | None, predictions: "Predictions", argument: str = "predictions"
) -> Labels:
    """Validate true classes: int64 on the device of the predictions.

    `argument` is what an error calls the predictions of which there are no labels.
    """
    if labels is None:  # what `load` returns for data without them
        raise ValueError(
            f"{argument} must hold labels to fit or measure with, but "
            f"{predictions.source.path or 'it'} has none: save it with "
            "rightly.save(path, predictions, labels), or load it with labels='FILE'"
        )
    tensor = check_integers("labels", "the true class of each sample", labels, predictions.logits)
    low, high, c = int(tensor.min()), int(tensor.max()), predictions.class_count
    if low < 0 or high >= c:
        raise ValueError(
            f"labels must lie in 0..{c - 1} for {c} classes, got {low}..{high}: "
            "do the labels count from 1, or belong to another class list?"
        )
    check_possible(tensor, predictions.logits)
    return tensor


def check_rows(rows: AnyArray, logits: Tensor) -> Tensor:
    """A mask or row numbers on the device of the logits."""
    index = rows if isinstance(rows, Tensor) else to_tensor("rows", np.asarray(rows))
    if index.ndim != 1 or index.is_floating_point():
        raise TypeError(
            "predictions are selected by a slice, a boolean mask or a vector of row numbers, "
            f"got {index.dtype} of shape {tuple(index.shape)}"
        )
    if index.dtype == torch.bool and len(index) != len(logits):
        raise ValueError(f"a mask must have {len(logits)} entries like logits, got {len(index)}")
    return index.to(logits.device)


def compute_logits(name: str, values: AnyArray) -> Tensor:
    """Logits of a classifier that gives probabilities, with a warning where they saturate."""
    raw = values if isinstance(values, Tensor) else np.asarray(values)
    halves = str(raw.dtype).endswith(("float16", "bfloat16"))
    dimensions = "n m c" if name.startswith("view") else "n c"
    probabilities = check_finite(name, check_floats(name, values, dimensions))
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


def check_log_probabilities(name: str, values: AnyArray) -> Tensor:
    """Log-probabilities, which are logits already."""
    logits = _check_scores(name, values, "n m c" if name.startswith("view") else "n c")
    off = logits.logsumexp(-1).abs() > SUM_TOLERANCE
    if bool(off.any()):
        raise ValueError(
            f"{name} must be rows whose exponentials sum to 1, but {int(off.sum())} rows are not: "
            "use Predictions(logits=...) if these are logits"
        )
    return logits
