"""What a classifier said, before anyone asks how sure it should have been."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rightly.predictions.validation import (
    checked_class_names,
    checked_features,
    checked_log_probabilities,
    checked_logits,
    checked_shift,
    checked_view_names,
    checked_views,
    log_of_probabilities,
    row_index,
    tensor_of,
)
from rightly.shapes import AnyArray
from rightly.tensor_shapes import Features, Labels, Logits, PerSample, PerSampleBool, ViewLogits


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
        checked = checked_logits(logits)
        n, c = checked.shape
        views = None if view_logits is None else checked_views(view_logits, checked)
        put = object.__setattr__  # the dataclass is frozen: this is the only place that sets
        put(self, "logits", checked)
        put(self, "view_logits", views)
        put(self, "features", None if features is None else checked_features(features, checked))
        put(self, "view_names", checked_view_names(view_names, views))
        put(self, "class_names", checked_class_names(class_names, c))
        put(self, "shift_names", tuple(str(name) for name in shift_names))
        put(
            self,
            "shift",
            None if shift is None else checked_shift(shift, checked, self.shift_names),
        )

    @classmethod
    def from_probabilities(
        cls, probabilities: AnyArray, view_probabilities: AnyArray | None = None, **others: Any
    ) -> "Predictions":
        """Predictions of a classifier that only gives probabilities."""
        views = None
        if view_probabilities is not None:
            views = log_of_probabilities("view_probabilities", view_probabilities)
        return cls(log_of_probabilities("probabilities", probabilities), views, **others)

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
            views = checked_log_probabilities("view_log_probabilities", view_log_probabilities)
        own = checked_log_probabilities("log_probabilities", log_probabilities)
        return cls(own, views, **others)

    @classmethod
    def unchecked(cls, logits: Logits, **others: Any) -> "Predictions":
        """Predictions inside a graph that is being traced, where no value can be looked at."""
        made = object.__new__(cls)
        for field in fields(cls):
            value = logits if field.name == "logits" else others.get(field.name, field.default)
            object.__setattr__(made, field.name, value)
        return made

    def __len__(self) -> int:
        return len(self.logits)

    def __getitem__(self, rows: slice | AnyArray) -> "Predictions":
        """The chosen rows: a slice, a boolean mask or row numbers."""
        index = rows if isinstance(rows, slice) else row_index(rows, self.logits)

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

    def without_views(self) -> "Predictions":
        """The same predictions as if no view had been looked at."""
        kept = {field.name: getattr(self, field.name) for field in fields(self)}
        del kept["logits"], kept["view_logits"], kept["view_names"]
        return Predictions.unchecked(self.logits, **kept)

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
    tensor = given if isinstance(given, Tensor) else tensor_of("labels", given)
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
