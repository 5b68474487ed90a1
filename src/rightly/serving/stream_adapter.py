"""Adapting to what is served: the window of the last images, and the context that it shows.

The window is kept in a file, if there is one, that several workers may share: each adds its own
blocks and takes those of the others, so that all come to the same window, also after restarts.
"""

import hashlib
import itertools
import logging
import time
import uuid
from pathlib import Path
from typing import Any

import numpy as np

from rightly.checks import is_count
from rightly.decisions.context_window import Block, ContextWindow, shrink_context
from rightly.deployment.outputs import Outputs
from rightly.deployment.runtime import ExportedModel
from rightly.files import check_target, encode_json, write_atomically
from rightly.predictions.expected_range import find_miss, find_range

SAVE_EVERY_S = 1.0  # a worker that is killed loses what it saw since
POINTS, IMAGES = 32, 8  # of the chart: at most so many, each the mean of at least so many

log = logging.getLogger(__name__)


class StreamAdapter:
    """A model at the context of the last images that it was shown."""

    def __init__(self, model: ExportedModel, size: int, state: Path | None = None) -> None:
        constants = model.metadata.get("shift_adaptation")
        if constants is None:
            raise ValueError(
                "adapt needs a model that can be adapted: export it again, without --no-adaptable, "
                "from a calibrator that can be adapted"
            )
        if not is_count(size, 1):
            raise ValueError(f"adapt must be a number of images from 1 on, got {size}")
        self._model, self._constants = model, constants
        self._worker, self._numbers = uuid.uuid4().hex[:12], itertools.count()
        self._state, self._saved_at = state, time.monotonic()
        self.window = ContextWindow(size, identify_model(model))
        if state is not None:
            check_target(state)
            self.window = self._add_stored()

    def predict(self, images: np.ndarray) -> Outputs:
        """Outputs at the context of the images before these, which are then counted too."""
        outputs = self._model.predict(images, self.context)
        assert outputs.shift_score is not None and outputs.unadapted_confidence is not None
        block = Block.of(
            f"{self._worker}-{next(self._numbers)}",
            time.time(),
            outputs.classes,
            shift_score=outputs.shift_score,
            confidence=outputs.confidence,
            variance=outputs.confidence * (1 - outputs.confidence),
            unadapted_confidence=outputs.unadapted_confidence,
        )
        self.window = self.window.add(block)
        if time.monotonic() - self._saved_at >= SAVE_EVERY_S:
            self.save()
        return outputs

    @property
    def context(self) -> float:
        window = self.window
        return shrink_context(window.mean("shift_score"), window.samples, self._constants)

    @property
    def expected_accuracy(self) -> float:
        """Mean confidence of the window, as it was answered; nan where it is empty."""
        return self.window.mean("confidence")

    @property
    def expected_range(self) -> tuple[float, float] | None:
        """Of the expected accuracy at 90 %; None where none was learned, or nothing seen."""
        return self._find_range(self.window)

    def _find_range(self, window: ContextWindow) -> tuple[float, float] | None:
        constants = self._constants
        if constants.get("quantile") is None or not window.samples:
            return None
        miss = find_miss(self.context, constants["misses"], constants["kind_contexts"])
        sampling = window.mean("variance") / window.samples
        return find_range(window.mean("confidence"), sampling, miss, constants["quantile"])

    def save(self) -> None:
        """Writes the window, with what other workers wrote; a failure is logged, and no more."""
        if self._state is None:
            return
        self._saved_at = time.monotonic()
        try:
            self.window = window = self._add_stored()
            write_atomically(
                self._state, lambda part: part.write_text(window.to_json(), encoding="utf-8")
            )
        except (OSError, ValueError) as error:
            log.warning("the state was not saved: %s", error)

    def describe(self) -> dict[str, Any]:
        """The window in numbers: as a whole, and part by part from its oldest images on."""
        window = self.window
        count = len(window.blocks)
        low, high = self.expected_range or (None, None)
        return {
            "images": window.samples,
            "window": window.size,
            "context": self.context,
            "expected_accuracy": window.mean("confidence") if count else None,
            "expected_low": low,
            "expected_high": high,
            "unadapted": window.mean("unadapted_confidence") if count else None,
            "parts": [self._describe_part(part) for part in _divide(window)],
        }

    def _describe_part(self, part: ContextWindow) -> dict[str, Any]:
        low, high = self._find_range(part) or (None, None)
        names = ("confidence", "unadapted_confidence")
        means = {name: part.mean(name) for name in names}
        return {"images": part.samples, **means, "expected_low": low, "expected_high": high}

    def _add_stored(self) -> ContextWindow:
        """The window with the blocks in the file that it lacks."""
        assert self._state is not None
        try:
            stored = ContextWindow.from_json(self._state.read_bytes())
        except FileNotFoundError:
            return self.window
        except ValueError as error:
            raise ValueError(
                f"state must be a file that serve wrote, but {self._state} is not: {error}"
            ) from error
        if stored.source != self.window.source:
            raise ValueError(
                f"state must be of the model that is served, but {self._state} is of another: "
                "give another file"
            )
        known = {block.id for block in self.window.blocks}
        return self.window.add(*(block for block in stored.blocks if block.id not in known))


def _divide(window: ContextWindow) -> list[ContextWindow]:
    """Parts of whole blocks, oldest first: not too many, nor of so few images that chance shows."""
    samples = window.samples
    least = max(-(-samples // POINTS), min(IMAGES, samples // 3))
    parts: list[list[Block]] = []
    images = least
    for block in window.blocks:
        if images >= least:
            parts.append([])
            images = 0
        parts[-1].append(block)
        images += block.samples
    if len(parts) > 1 and images < least:  # the newest join those before
        last = parts.pop()
        parts[-1] += last
    return [ContextWindow(window.size, blocks=tuple(part)) for part in parts]


def identify_model(model: ExportedModel) -> str:
    """Equal for files whose scores of the context mean the same."""
    names = ("method", "arguments", "classifier", "class_count", "views")
    constants = {k: v for k, v in model.metadata["shift_adaptation"].items() if k != "value"}
    parts = [constants, *(model.metadata.get(name) for name in names)]
    return hashlib.sha256(encode_json(parts).encode()).hexdigest()[:16]
