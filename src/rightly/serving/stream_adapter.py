"""An exported model on the stream of what is served, with its state in a file.

Workers may share the file: each adds its own batches and takes those of the others, so that all
come to the same window, also after restarts.
"""

import hashlib
import logging
import time
from pathlib import Path

import numpy as np

from rightly.checks import is_count
from rightly.decisions.expected_accuracy import ShiftConstants
from rightly.deployment.outputs import Outputs
from rightly.deployment.runtime import ExportedModel
from rightly.files import check_target, encode_json, write_atomically
from rightly.monitoring.stream import ShiftStream
from rightly.monitoring.window import Window

SAVE_EVERY_S = 1.0  # a worker that is killed loses what it saw since

log = logging.getLogger(__name__)


class StreamAdapter:
    """A model at the shift estimate of the last images that it was shown."""

    def __init__(self, model: ExportedModel, size: int, state: Path | None = None) -> None:
        constants = model.metadata.get("shift_adaptation")
        if constants is None:
            raise ValueError(
                "adapt needs a model that can be adapted: export it again, without --no-adaptable, "
                "from a calibrator that can be adapted"
            )
        if not is_count(size, 1):
            raise ValueError(f"adapt must be a number of images from 1 on, got {size}")
        self._model, self._state, self._saved_at = model, state, time.monotonic()
        self.stream = ShiftStream(ShiftConstants.of(constants), size, identify_model(model))
        if state is not None:
            check_target(state)
            self._merge_state(state)

    def predict(self, images: np.ndarray) -> Outputs:
        """Outputs at the shift estimate of the images before these, which are then counted too."""
        outputs = self._model.predict(images, self.stream.shift_estimate)
        assert outputs.shift_score is not None and outputs.unadapted_confidence is not None
        self.stream.observe(outputs.classes, outputs.unadapted_confidence, outputs.shift_score)
        if time.monotonic() - self._saved_at >= SAVE_EVERY_S:
            self.save()
        return outputs

    def save(self) -> None:
        """Write the window, with what other workers wrote; a failure is logged, and no more."""
        if self._state is None:
            return
        self._saved_at = time.monotonic()
        try:
            self._merge_state(self._state)
            text = self.stream.to_json()
            write_atomically(self._state, lambda part: part.write_text(text, encoding="utf-8"))
        except (OSError, ValueError) as error:
            log.warning("the state was not saved: %s", error)

    def _merge_state(self, state: Path) -> None:
        try:
            text = state.read_bytes()
        except FileNotFoundError:
            return
        try:
            source = Window.from_json(text).source
        except ValueError as error:
            raise ValueError(
                f"state must be a file that serve wrote, but {state} is not: {error}"
            ) from error
        if source != self.stream.window.source:
            raise ValueError(
                f"state must be of the model that is served, but {state} is of another: "
                "give another file"
            )
        self.stream.merge(text)


def identify_model(model: ExportedModel) -> str:
    """Equal for files whose shift scores mean the same."""
    names = ("method", "arguments", "classifier", "class_count", "views")
    constants = {k: v for k, v in model.metadata["shift_adaptation"].items() if k != "estimate"}
    parts = [constants, *(model.metadata.get(name) for name in names)]
    return hashlib.sha256(encode_json(parts).encode()).hexdigest()[:16]
