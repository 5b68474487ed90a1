"""What an exported file can do, whatever is inside."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from rightly.models import Preprocessing


@dataclass(frozen=True)
class Verdicts:
    """What was said about n images; a view that was not run has class -1 and confidence nan."""

    classes: Int[np.ndarray, " n"]
    confidence: Float[np.ndarray, " n"]
    raw_confidence: Float[np.ndarray, " n"]
    temperature: Float[np.ndarray, " n"]
    accept: Bool[np.ndarray, " n"] | None
    probabilities: Float[np.ndarray, "n c"]
    view_classes: Int[np.ndarray, "n m"] | None
    view_confidence: Float[np.ndarray, "n m"] | None


class Deployed(ABC):
    """A classifier with its calibrator, ready to judge images."""

    identity: Mapping[str, Any]
    preprocessing: Preprocessing
    class_names: tuple[str, ...] | None
    view_names: tuple[str, ...]
    threshold: float | None

    @abstractmethod
    def predict(self, images: UInt8[np.ndarray, "n h w 3"]) -> Verdicts:
        """What is said about each image; blocks until it is known."""


def open_deployed(path: Path | str) -> Deployed:
    """The deployed model in a file."""
    raise ImportError(f"{path} cannot be opened: this build has no runtime for exported files")
