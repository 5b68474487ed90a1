"""What a classifier said, before anyone asks how sure it should have been."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rightly.shapes import (
    AnyArray,
    Features,
    Labels,
    Logits,
    PerSample,
    PerSampleBool,
    ViewLogits,
)

# Rows that sum to 1 this closely, all of them, are probabilities; float16 ones miss 1 by 1e-3.
SUM_TOLERANCE = 5e-3


@dataclass(frozen=True, eq=False)
class Predictions:
    """One classifier's outputs for n images. Holds no labels, so no calibrator can peek.

    `shift` marks rows that show the same images under a synthetic shift: 0 is the image as it
    is, s > 0 is the shift called `shift_names[s - 1]`.
    """

    logits: Logits
    view_logits: ViewLogits | None = None
    features: Features | None = None
    view_names: tuple[str, ...] = ()
    class_names: tuple[str, ...] | None = None
    shift: Labels | None = None
    shift_names: tuple[str, ...] = ()

    def __init__(
        self,
        logits: AnyArray,
        view_logits: AnyArray | None = None,
        features: AnyArray | None = None,
        view_names: Sequence[str] | None = None,
        class_names: Sequence[str] | None = None,
        shift: AnyArray | None = None,
        shift_names: Sequence[str] = (),
    ) -> None:
        checked = _checked_logits(logits)
        n, c = checked.shape
        views = None if view_logits is None else _checked_views(view_logits, checked)
        put = object.__setattr__  # the dataclass is frozen: this is the only place that sets
        put(self, "logits", checked)
        put(self, "view_logits", views)
        put(self, "features", None if features is None else _checked_features(features, checked))
        put(self, "view_names", _checked_view_names(view_names, views))
        put(self, "class_names", _checked_class_names(class_names, c))
        put(self, "shift_names", tuple(str(name) for name in shift_names))
        put(
            self,
            "shift",
            None if shift is None else _checked_shift(shift, checked, self.shift_names),
        )

    @classmethod
    def from_probabilities(
        cls, probabilities: AnyArray, view_probabilities: AnyArray | None = None, **others: Any
    ) -> "Predictions":
        """Predictions of a classifier that only gives probabilities."""
        views = None
        if view_probabilities is not None:
            views = _log_of_probabilities("view_probabilities", view_probabilities)
        return cls(_log_of_probabilities("probabilities", probabilities), views, **others)

    @classmethod
    def from_log_probabilities(
        cls,
        log_probabilities: AnyArray,
        view_log_probabilities: AnyArray | None = None,
        **others: Any,
    ) -> "Predictions":
        """Predictions of a classifier that gives log-probabilities, such as log_softmax."""
        views = None
        if view_log_probabilities is not None:
            views = _checked_log_probabilities("view_log_probabilities", view_log_probabilities)
        own = _checked_log_probabilities("log_probabilities", log_probabilities)
        return cls(own, views, **others)

    def __len__(self) -> int:
        return len(self.logits)

    def __getitem__(self, rows: slice | AnyArray) -> "Predictions":
        """The chosen rows: a slice, a boolean mask or row numbers."""
        index = rows if isinstance(rows, slice) else _row_index(rows, self.logits)

        def chosen(x: Tensor | None) -> Tensor | None:
            return None if x is None else x[index]

        return self._replaced(
            logits=self.logits[index],
            view_logits=chosen(self.view_logits),
            features=chosen(self.features),
            shift=chosen(self.shift),
        )

    @property
    def class_count(self) -> int:
        return self.logits.shape[1]

    @property
    def classes(self) -> Labels:
        """The predicted class of each sample, which no calibrator changes."""
        return self.logits.argmax(-1)

    @property
    def confidence(self) -> PerSample:
        """The classifier's own probability of its predicted class."""
        gaps = self.logits - self.logits.amax(-1, keepdim=True)
        return gaps.exp().sum(-1, dtype=torch.float64).reciprocal()

    def correct(self, labels: AnyArray) -> PerSampleBool:
        """Whether each predicted class is the true one."""
        return self.classes == checked_labels(labels, self)

    def unshifted(self) -> PerSampleBool:
        """Marks the rows that show images as they are."""
        if self.shift is None:
            return torch.ones(len(self), dtype=torch.bool, device=self.logits.device)
        return self.shift == 0

    def with_views(self, names: Sequence[str]) -> "Predictions":
        """The same predictions with these views only, in this order."""
        unknown = [name for name in names if name not in self.view_names]
        if unknown or self.view_logits is None or not names:
            raise ValueError(
                f"views must be some of those collected, {list(self.view_names)}, "
                f"got {list(names)}: collect the missing ones or leave them out"
            )
        order = [self.view_names.index(name) for name in names]
        return self._replaced(view_logits=self.view_logits[:, order], view_names=tuple(names))

    def to(self, device: str | torch.device) -> "Predictions":
        """The same predictions on another device."""
        tensors = {
            field.name: getattr(self, field.name).to(device)
            for field in fields(self)
            if isinstance(getattr(self, field.name), Tensor)
        }
        return self._replaced(**tensors)

    def _replaced(self, **changes: Any) -> "Predictions":
        """A copy with some fields changed; what was checked once is not checked again."""
        copy = object.__new__(Predictions)
        for field in fields(self):
            value = changes.get(field.name, getattr(self, field.name))
            object.__setattr__(copy, field.name, value)
        if not len(copy.logits):
            raise ValueError("predictions must keep at least one row, but none was selected")
        return copy


def concatenate(parts: Sequence[Predictions]) -> Predictions:
    """Joins predictions of one classifier, row after row."""
    if not parts:
        raise ValueError("concatenate needs at least one Predictions, got none")
    first = parts[0]
    for part in parts[1:]:
        for name in ("class_count", "view_names", "class_names"):
            if getattr(part, name) != getattr(first, name):
                raise ValueError(
                    f"all parts must have the same {name}: "
                    f"got {getattr(first, name)} and {getattr(part, name)}"
                )
        for name in ("view_logits", "features"):
            if (getattr(part, name) is None) != (getattr(first, name) is None):
                raise ValueError(f"either all parts must have {name} or none: some have, some not")
    shift_names = max((part.shift_names for part in parts), key=len)
    for part in parts:
        if part.shift_names != shift_names[: len(part.shift_names)]:
            raise ValueError(
                "all parts must number their shifts alike: "
                f"got shift_names {shift_names} and {part.shift_names}"
            )

    def joined(name: str) -> Tensor | None:
        if getattr(first, name) is None:
            return None
        return torch.cat([getattr(part, name) for part in parts])

    shift = None
    if any(part.shift is not None for part in parts):
        as_they_are = [torch.zeros(len(part), dtype=torch.int64) for part in parts]
        shift = torch.cat(
            [
                part.shift if part.shift is not None else zeros.to(part.logits.device)
                for part, zeros in zip(parts, as_they_are, strict=True)
            ]
        )
    return Predictions(
        torch.cat([part.logits for part in parts]),
        joined("view_logits"),
        joined("features"),
        first.view_names or None,
        first.class_names,
        shift,
        shift_names,
    )


def checked_labels(labels: AnyArray, predictions: Predictions) -> Labels:
    """True classes as int64 on the device of the predictions, or an error that says what is off."""
    given = labels if isinstance(labels, Tensor) else np.asarray(labels)
    tensor = given if isinstance(given, Tensor) else _tensor_of("labels", given)
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise TypeError(
            f"labels must be integers, the true class of each sample, got {tensor.dtype}: "
            "use labels.astype(int) if they are whole numbers"
        )
    n, c = predictions.logits.shape
    if tuple(tensor.shape) != (n,):
        raise ValueError(f"labels must have shape ({n},) like logits, got {tuple(tensor.shape)}")
    tensor = tensor.to(predictions.logits.device, torch.int64)
    low, high = int(tensor.min()), int(tensor.max())
    if low < 0 or high >= c:
        raise ValueError(
            f"labels must lie in 0..{c - 1} for {c} classes, got {low}..{high}: "
            "do the labels count from 1, or belong to another class list?"
        )
    return tensor


def _tensor_of(name: str, array: np.ndarray) -> Tensor:
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
    tensor = values.detach() if isinstance(values, Tensor) else _tensor_of(name, np.asarray(values))
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


def _checked_logits(values: AnyArray) -> Logits:
    logits = _floats("logits", values, "n c")
    if logits.shape[1] < 2:
        raise ValueError(f"logits must cover at least 2 classes, got {logits.shape[1]}")
    if _look_like_probabilities(logits):
        raise ValueError(
            "logits must be scores before softmax, but every row is non-negative and sums to 1: "
            "use Predictions.from_probabilities if these are probabilities"
        )
    return logits


def _checked_views(values: AnyArray, logits: Tensor) -> ViewLogits:
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


def _checked_features(values: AnyArray, logits: Tensor) -> Features:
    features = _floats("features", values, "n d")
    if len(features) != len(logits):
        raise ValueError(f"features must have {len(logits)} rows like logits, got {len(features)}")
    return features.to(logits.device)


def _checked_view_names(names: Sequence[str] | None, views: Tensor | None) -> tuple[str, ...]:
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


def _checked_class_names(names: Sequence[str] | None, c: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, str):
        raise TypeError(f"class_names must be a sequence of names, got the string {names!r}")
    chosen = tuple(str(name) for name in names)
    if len(chosen) != c:
        raise ValueError(f"class_names must have {c} names, one a class, got {len(chosen)}")
    return chosen


def _checked_shift(values: AnyArray, logits: Tensor, names: tuple[str, ...]) -> Labels:
    given = values if isinstance(values, Tensor) else _tensor_of("shift", np.asarray(values))
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


def _row_index(rows: AnyArray, logits: Tensor) -> Tensor:
    index = rows if isinstance(rows, Tensor) else _tensor_of("rows", np.asarray(rows))
    if index.ndim != 1 or index.is_floating_point():
        raise TypeError(
            "predictions are selected by a slice, a boolean mask or a vector of row numbers, "
            f"got {index.dtype} of shape {tuple(index.shape)}"
        )
    if index.dtype == torch.bool and len(index) != len(logits):
        raise ValueError(f"a mask must have {len(logits)} entries like logits, got {len(index)}")
    return index.to(logits.device)


def _log_of_probabilities(name: str, values: AnyArray) -> Tensor:
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


def _checked_log_probabilities(name: str, values: AnyArray) -> Tensor:
    given = _floats(name, values, "n m c" if name.startswith("view") else "n c")
    off = given.logsumexp(-1).abs() > SUM_TOLERANCE
    if bool(off.any()):
        raise ValueError(
            f"{name} must be rows whose exponentials sum to 1, but {int(off.sum())} rows are not: "
            "use Predictions(logits=...) if these are logits"
        )
    return given
