"""A log of predictions as JSON lines, which `rightly monitor` reads."""

import logging
import time
from collections.abc import Sequence
from pathlib import Path

from rightly.deployment.outputs import Outputs, view_agreement
from rightly.predictions.bounded_json import encode_json

log = logging.getLogger(__name__)


class PredictionLog:
    """Appends one line a prediction; several workers may write to one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            # Unbuffered, so that lines of several writers stay whole.
            self._file = path.open("ab", buffering=0)
        except OSError as error:
            raise ValueError(
                f"log must be a file that can be written, got {path} ({error.strerror or error})"
            ) from error

    def record(self, rows: Sequence[Outputs]) -> None:
        """Writes outputs of one row each; a failure is logged, and no more."""
        now = round(time.time(), 3)
        lines = []
        for row in rows:
            score, plain = row.context_score, row.unadapted_confidence
            entry = {
                "time": now,
                "class": int(row.classes[0]),
                "confidence": float(row.confidence[0]),
                "unadapted_confidence": None if plain is None else float(plain[0]),
                "context_score": None if score is None else float(score[0]),
                "agreement": view_agreement(row)[0],
            }
            lines.append(encode_json(entry) + "\n")
        try:
            self._file.write("".join(lines).encode())
        except OSError as error:
            log.warning("%s was not written to: %s", self.path, error)

    def close(self) -> None:
        self._file.close()
