"""Raw outputs of one classifier on n samples, and which images these show."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any
from uuid import uuid4

import torch
from torch import Tensor

from rightly.predictions.binary import stack_probabilities, stack_scores
from rightly.predictions.masking import has_masked
from rightly.predictions.validation import (
    check_class_names,
    check_features,
    check_image,
    check_integers,
    check_labels,
    check_log_probabilities,
    check_logits,
    check_rows,
    check_shift,
    check_view_names,
    check_views,
    compute_logits,
    derive_images,
)
from rightly.shapes import AnyArray
from rightly.tensor_shapes import Features, Labels, Logits, PerSample, PerSampleBool, ViewLogits

HASH = "a hash of each image's bytes"


@dataclass(frozen=True)
class Source:
    """Where predictions come from; slices and copies keep it.

    `path` is the file or folder that was loaded, `classifier` what collect recorded of the model:
    name, fingerprint and preprocessing. `numbering` tells who numbered the images: a file, a
    derivation by position, or None for the caller. Equal numbers mean the same image only where
    it is equal too.
    """

    path: str | None = None
    classifier: Mapping[str, Any] | None = None
    probabilities: bool = False  # read from probabilities, not logits
    numbering: str | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Predictions:
    """Raw outputs of one classifier on n samples. Holds no labels, so no calibrator can peek.

    `shift` marks rows that show the same images under a synthetic shift: 0 is the image as it
    is, s > 0 is the shift called `shift_names[s - 1]`. `image` is a number for each image, equal
    for all rows that show it; where there are shifted rows and it is left out, it is derived by
    position, if every shift has exactly as many rows as there are unshifted ones. `image_hash`
    tells which images two data sets share (`rows.py`), `fingerprint` their classifiers.
    Logits of -inf, or of -1e9 or less, are masked: classes that cannot be (see `masking.py`).
    """

    logits: Logits
    view_logits: ViewLogits | None = None
    features: Features | None = None
    view_names: tuple[str, ...] = ()
    class_names: tuple[str, ...] | None = None
    shift: Labels | None = None
    shift_names: tuple[str, ...] = ()
    image: Labels | None = None
    image_hash: Labels | None = None  # of the decoded image, before any shift
    fingerprint: str | None = None  # of the classifier
    source: Source = Source()

    def __init__(
        self,
        logits: AnyArray,
        view_logits: AnyArray | None = None,
        features: AnyArray | None = None,
        view_names: Sequence[str] | None = None,
        class_names: Sequence[str] | None = None,
        shift: AnyArray | None = None,
        shift_names: Sequence[str] = (),
        image: AnyArray | None = None,
        image_hash: AnyArray | None = None,
        fingerprint: str | None = None,
        source: Source | None = None,
    ) -> None:
        raw = check_logits(logits)
        views = None if view_logits is None else check_views(view_logits, raw)
        names = tuple(str(name) for name in shift_names)
        shifts = None if shift is None else check_shift(shift, raw, names)
        derived = derive_images(shifts) if image is None else None
        put = object.__setattr__  # frozen: this is the only place that sets
        put(self, "logits", raw)
        put(self, "view_logits", views)
        put(self, "features", None if features is None else check_features(features, raw))
        put(self, "view_names", check_view_names(view_names, views))
        put(self, "class_names", check_class_names(class_names, raw.shape[1]))
        put(self, "shift", shifts)
        put(self, "shift_names", names)
        put(self, "image", derived if image is None else check_image(image, raw))
        hashes = None if image_hash is None else check_integers("image_hash", HASH, image_hash, raw)
        put(self, "image_hash", hashes)
        put(self, "fingerprint", None if fingerprint is None else str(fingerprint))
        if source is None:
            source = Source(numbering=None if derived is None else uuid4().hex)
        put(self, "source", source)

    @classmethod
    def from_probabilities(
        cls, probabilities: AnyArray, view_probabilities: AnyArray | None = None, **others: Any
    ) -> "Predictions":
        """Predictions of a classifier that only gives probabilities."""
        views = None
        if view_probabilities is not None:
            views = compute_logits("view_probabilities", view_probabilities)
        return cls(compute_logits("probabilities", probabilities), views, **others)

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
            views = check_log_probabilities("view_log_probabilities", view_log_probabilities)
        own = check_log_probabilities("log_probabilities", log_probabilities)
        return cls(own, views, **others)

    @classmethod
    def from_binary(cls, scores: AnyArray, **others: Any) -> "Predictions":
        """Predictions of a classifier with one output, (n,) or (n, 1): the log-odds of class 1."""
        return cls(stack_scores(scores), **others)

    @classmethod
    def from_binary_probabilities(cls, probabilities: AnyArray, **others: Any) -> "Predictions":
        """Predictions of a classifier with one output, (n,) or (n, 1): P(class 1)."""
        return cls.from_probabilities(stack_probabilities(probabilities), **others)

    @classmethod
    def unchecked(cls, logits: Logits, **others: Any) -> "Predictions":
        """Predictions inside a graph that is being traced, where no value can be looked at."""
        predictions = object.__new__(cls)
        for field in fields(cls):
            value = logits if field.name == "logits" else others.get(field.name, field.default)
            object.__setattr__(predictions, field.name, value)
        return predictions

    def __len__(self) -> int:
        return len(self.logits)

    def __repr__(self) -> str:
        parts = [_count(len(self), "sample"), f"{self.class_count:,} classes"]
        if self.view_names:
            parts.append(f"{_count(len(self.view_names), 'view')} ({', '.join(self.view_names)})")
        if self.features is not None:
            parts.append(_count(self.features.shape[1], "feature"))
        if self.shift is not None and self.shift.any():
            parts.append(_count(len(self.shift[self.shift > 0].unique()), "shift"))
        return f"<Predictions: {', '.join(parts)}>"

    def __getitem__(self, rows: slice | AnyArray) -> "Predictions":
        """Some of the rows: a slice, a boolean mask or row numbers."""
        index = rows if isinstance(rows, slice) else check_rows(rows, self.logits)
        return self._map_tensors(lambda tensor: tensor[index])

    @property
    def class_count(self) -> int:
        return self.logits.shape[1]

    @cached_property
    def has_masked(self) -> bool:
        """Whether any class of any sample is masked; always so in a graph being traced."""
        return has_masked(self.logits)

    @cached_property
    def classes(self) -> Labels:
        """The class to which the classifier gives the largest logit, for each sample."""
        return self.logits.argmax(-1)

    @property
    def confidence(self) -> PerSample:
        """The classifier's own probability of its predicted class."""
        gaps = self.logits - self.logits.amax(-1, keepdim=True)
        return gaps.exp().sum(-1, dtype=torch.float64).reciprocal()

    def correct(self, labels: AnyArray) -> PerSampleBool:
        """Whether each predicted class is the true one."""
        return self.classes == check_labels(labels, self)

    def unshifted(self) -> PerSampleBool:
        """Marks the rows that show images as they are."""
        if self.shift is None:
            return torch.ones(len(self), dtype=torch.bool, device=self.logits.device)
        return self.shift == 0

    def images(self) -> Labels:
        """A number for each image, equal for all rows that show it; of any size, in any order."""
        if self.image is not None:
            return self.image
        if not self.unshifted().all():
            raise ValueError(
                "image is needed where rows are shifted, and it can only be derived if every shift "
                "has exactly as many rows as there are unshifted ones: store image, one number an "
                "image, equal for shifted copies"
            )
        return torch.arange(len(self), device=self.logits.device)

    def image_ranks(self) -> Labels:
        """The images counted from 0 to k - 1, in the order of their numbers: indices, folds."""
        ranks: Labels = self.images().unique(return_inverse=True)[1]
        return ranks

    def shift_kinds(self) -> Labels:
        """A number for the kind of each row's shift, its name before ":"; 0 for unshifted rows."""
        if self.shift is None:
            return torch.zeros_like(self.classes)
        names = [name.partition(":")[0] for name in self.shift_names]
        last = int(self.shift.max())
        kinds = [names[i] if i < len(names) else f"shift {i + 1}" for i in range(last)]
        numbers = {name: k for k, name in enumerate(dict.fromkeys(kinds), start=1)}
        table = torch.tensor([0, *(numbers[name] for name in kinds)], device=self.shift.device)
        return table[self.shift]

    def with_views(self, names: Sequence[str]) -> "Predictions":
        """The same predictions with these views only, in this order."""
        unknown = [name for name in names if name not in self.view_names]
        if unknown or self.view_logits is None or not names:
            raise ValueError(
                f"views must be some of those collected, {list(self.view_names)}, "
                f"got {list(names)}: collect the missing ones or leave them out"
            )
        order = [self.view_names.index(name) for name in names]
        return self._replace(view_logits=self.view_logits[:, order], view_names=tuple(names))

    def without_views(self) -> "Predictions":
        """The same predictions as if no view had been looked at."""
        kept = {field.name: getattr(self, field.name) for field in fields(self)}
        del kept["logits"], kept["view_logits"], kept["view_names"]
        return Predictions.unchecked(self.logits, **kept)

    def to(self, device: str | torch.device) -> "Predictions":
        """The same predictions on another device."""
        return self._map_tensors(lambda tensor: tensor.to(device))

    def _map_tensors(self, change: Callable[[Tensor], Tensor]) -> "Predictions":
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        tensors = {name: value for name, value in values.items() if isinstance(value, Tensor)}
        return self._replace(**{name: change(tensor) for name, tensor in tensors.items()})

    def _replace(self, **changes: Any) -> "Predictions":
        """A copy with these fields changed; what was checked once is not checked again."""
        copy = object.__new__(Predictions)
        for field in fields(self):
            object.__setattr__(copy, field.name, changes.get(field.name, getattr(self, field.name)))
        if not len(copy.logits):
            raise ValueError("predictions must keep at least one row, but none was selected")
        return copy


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
