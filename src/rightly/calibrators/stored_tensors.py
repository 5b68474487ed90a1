"""What the tensors of a calibrator must be like: declared by each, checked where one is loaded.

A file may be damaged, or made by somebody else. Whatever passes here computes finite numbers.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from rightly.predictions import Predictions
from rightly.predictions.masking import MASKED

if TYPE_CHECKING:
    from rightly.calibrators.base import Calibrator

POSITIVE = 1e-300  # the least that counts as positive: its reciprocal is finite
MAX_PROBED = 2**28  # logits computed to try a calibrator out: no classifier has as many
PROBED = 4  # samples: the least from which three neighbours can be retrieved


@dataclass(frozen=True)
class Stored:
    """Shape and range of a tensor.

    Dimensions are numbers, c classes, d features, or any other letter, the same for all tensors of
    a calibrator; None allows any shape.
    """

    shape: str | None = ""
    low: float | int = -math.inf
    high: float | int = math.inf
    is_ascending: bool = False
    is_integer: bool = False
    is_optional: bool = False
    is_finite: bool = True


NETWORK = Stored(None)  # layers, of which `probe` finds whether they fit together
SCALE = Stored("k", low=POSITIVE)
UNDECLARED = Stored(None, is_optional=True)
FLOATS = (torch.float32, torch.float64)


def check_stored(calibrator: nn.Module, class_count: int, feature_count: int | None) -> None:
    """Refuses tensors that are missing, left over, misshapen, of another type or out of range."""
    for path, part in _find_calibrators(calibrator):
        tensors = dict(part.named_buffers(recurse=False))
        for name, tensor in tensors.items():
            _check_numbers(path + name, tensor, _find(part.stores, name, path))
        if part.stores is None:
            continue
        sizes = {"c": class_count} | ({} if feature_count is None else {"d": feature_count})
        for name, declared in part.stores.items():
            matching = [tensors[key] for key in tensors if fnmatchcase(key, name)]
            if not matching and not declared.is_optional:
                raise ValueError(f"the tensor {path}{name} is missing")
            for tensor in matching:
                _check_shape(path + name, tensor, declared.shape, sizes)


def probe(calibrator: "Calibrator") -> None:
    """Refuses tensors that fit together so badly that samples get no finite confidence."""
    assert calibrator.class_count is not None
    c, m, d = calibrator.class_count, len(calibrator.view_names), calibrator.feature_count or 0
    if PROBED * (c * (m + 1) + d) > MAX_PROBED:
        raise ValueError(f"{c} classes, {m} views and {d} features are more than any classifier's")
    logits = torch.linspace(-3, 5, PROBED * c).reshape(PROBED, c)
    logits[-1, 0] = 2 * MASKED  # what masked classes go through may differ
    sample = Predictions.unchecked(
        logits,
        view_logits=logits[:, None].repeat(1, m, 1) if m else None,
        view_names=calibrator.view_names,
        features=torch.linspace(-1, 2, PROBED * d).reshape(PROBED, d) if d else None,
    )
    try:
        for ask in (calibrator.confidence, calibrator.temperature, calibrator.probabilities):
            ask(sample)
    except (RuntimeError, LookupError, AttributeError, ValueError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"its tensors do not fit together: {reason}") from error


def _find_calibrators(calibrator: nn.Module) -> Iterator[tuple[str, Any]]:
    """A calibrator and those it is made of, with what their tensors' names begin with."""
    for path, part in calibrator.named_modules():
        if hasattr(part, "stores"):
            yield f"{path}." if path else "", part


def _find(stores: Mapping[str, Stored] | None, name: str, path: str) -> Stored:
    if stores is None:  # somebody else's calibrator, which declares nothing
        return UNDECLARED
    for pattern, declared in stores.items():
        if fnmatchcase(name, pattern):
            return declared
    raise ValueError(f"the tensor {path}{name} is left over: this method stores none")


def _check_numbers(name: str, tensor: Tensor, declared: Stored) -> None:
    is_integer = tensor.dtype == torch.int64
    is_right = is_integer if declared.is_integer else tensor.dtype in FLOATS
    if not is_right and not (declared is UNDECLARED and is_integer):
        kind = "int64" if declared.is_integer else "float32 or float64"
        raise ValueError(f"the tensor {name} must be of {kind}, got {tensor.dtype}")
    if not tensor.numel():
        return
    if tensor.isnan().any() or declared.is_finite and not torch.isfinite(tensor).all():
        raise ValueError(f"the tensor {name} must be finite, got NaN or infinity")
    low, high = float(tensor.min()), float(tensor.max())
    if low < declared.low or high > declared.high:
        raise ValueError(
            f"the tensor {name} must lie in {declared.low:g}..{declared.high:g}, "
            f"got {low:g}..{high:g}"
        )
    if declared.is_ascending and tensor.ndim and bool((tensor.diff() < 0).any()):
        raise ValueError(f"the tensor {name} must be ascending")


def _check_shape(name: str, tensor: Tensor, shape: str | None, sizes: dict[str, int]) -> None:
    """Binds the letters of a shape to sizes, and refuses what differs from those bound before."""
    if shape is None:
        return
    letters = shape.split()
    fits = tensor.ndim == len(letters) and all(
        size == (int(letter) if letter.isdigit() else sizes.setdefault(letter, size))
        for letter, size in zip(letters, tensor.shape, strict=True)
    )
    if not fits:
        spelled = [str(sizes.get(letter, letter)) for letter in letters]
        raise ValueError(
            f"the tensor {name} must have shape ({', '.join(spelled)}), got {tuple(tensor.shape)}"
        )
