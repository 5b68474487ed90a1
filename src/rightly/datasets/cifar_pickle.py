"""Reading the pickled batches of CIFAR-10 without ever running what a pickle may ask for.

A pickle is a program: loading one can do anything. Those of CIFAR-10 (Python version) call three
names of NumPy to rebuild one array. Stand-ins that only keep their arguments answer to these names
here; every other name is refused, and the array is built from the kept bytes afterwards.
"""

import io
import pickle
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8

WIDTH = 3 * 32 * 32


class _KeptType:
    """Stands in for numpy.dtype: keeps the name of the type."""

    def __init__(self, name: Any = None, *_: Any) -> None:
        self.name = name

    def __setstate__(self, state: Any) -> None:
        """Byte order and the like do not matter for single bytes."""


class _KeptArray:
    """Stands in for numpy.ndarray while it is rebuilt: keeps shape, type and bytes."""

    state: tuple[Any, ...] = ()

    def __setstate__(self, state: Any) -> None:
        self.state = state


def _rebuild(*_: Any) -> _KeptArray:
    return _KeptArray()


def _encode(text: str, _: str = "latin1") -> bytes:
    return text.encode("latin1")  # how Python 3 writes bytes into pickles that Python 2 reads


STAND_INS: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _rebuild,
    ("numpy._core.multiarray", "_reconstruct"): _rebuild,
    ("numpy", "ndarray"): _KeptArray,
    ("numpy", "dtype"): _KeptType,
    ("_codecs", "encode"): _encode,
}


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in STAND_INS:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is not plain data")
        return STAND_INS[module, name]


@lru_cache(6)
def read_batch(path: Path) -> tuple[UInt8[np.ndarray, "n 3072"], tuple[int, ...]]:
    """Pixels (n, 3072) and labels of one batch."""
    try:
        stored = _PlainUnpickler(io.BytesIO(path.read_bytes()), encoding="bytes").load()
    except Exception as error:  # a damaged pickle raises nearly anything
        raise ValueError(
            f"{path} must be a batch of CIFAR-10 (Python version): {error}; the binary version "
            "from https://www.cs.toronto.edu/~kriz/cifar.html needs no pickle"
        ) from error
    try:
        # Python 2 wrote bytes for keys, Python 3 text.
        data = {k.decode() if isinstance(k, bytes) else k: v for k, v in stored.items()}
        pixels, labels = _array(data["data"]), tuple(data["labels"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} must hold data and labels of CIFAR-10: {error!r}") from error
    if len(pixels) != len(labels) or not all(type(label) is int for label in labels):
        raise ValueError(
            f"{path} must hold one whole number an image, got {len(labels)} labels for "
            f"{len(pixels)} images"
        )
    return pixels, labels


def _array(kept: Any) -> UInt8[np.ndarray, "n 3072"]:
    _, shape, kind, by_column, raw = kept.state
    name = kind.name.decode() if isinstance(kind.name, bytes) else kind.name
    if name != "u1" or by_column or not isinstance(raw, bytes) or tuple(shape)[1:] != (WIDTH,):
        raise ValueError(f"data must be bytes of shape (n, {WIDTH}), got {name} {shape}")
    return np.frombuffer(raw, np.uint8).reshape(shape)
