"""A log of predictions as JSON lines, which `rightly monitor` reads."""

import logging
import time
from collections.abc import Sequence
from pathlib import Path

from rightly.deployment.outputs import Outputs, describe_row
from rightly.files import encode_json

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

    def record(self, rows: Sequence[Outputs], void: str | None = None) -> None:
        """Write outputs of one row each, and why the guarantee is void; log a failure."""
        shared = {"time": round(time.time(), 3), "void": void}
        lines = [encode_json({**shared, **describe_row(row)}) + "\n" for row in rows]
        try:
            self._file.write("".join(lines).encode())
        except OSError as error:
            log.warning("%s was not written to: %s", self.path, error)

    def close(self) -> None:
        self._file.close()
