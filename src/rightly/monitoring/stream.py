"""A stream of predictions, each answered at the shift estimate of those before it."""

import hashlib
import math
import time
import uuid
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from rightly.checks import is_number
from rightly.decisions.expected_accuracy import ExpectedAccuracy, ShiftConstants, log_odds
from rightly.monitoring.window import MAX_AHEAD_S, Window, WindowBatch
from rightly.shapes import AnyArray

if TYPE_CHECKING:
    from rightly.calibrators import Calibrator
    from rightly.predictions import Predictions
    from rightly.tensor_shapes import PerSample

RANGE_LEVEL = 0.9  # of the expected range of the accuracy
PARTS, MIN_PART = 32, 8  # of a described window: at most so many, of at least so many samples


class ShiftStream:
    """The shift estimate of the last `window` samples, in memory that does not grow.

    Each call of `observe` adds a batch of sums. Batches count in the order in which they arrive:
    one whose time lies before the newest counts as just as new, and a time more than an hour ahead
    of the present clock is ignored. `to_json` writes them all; `merge` adds those of other workers,
    in any order to the same state.
    """

    def __init__(
        self,
        constants: ShiftConstants,
        window: int = 512,
        source: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.constants, self.window = constants, Window(window, source)
        self._worker, self._clock = uuid.uuid4().hex[:12], clock

    @property
    def samples(self) -> int:
        """Samples in the window: its size, and what the oldest batch has beyond."""
        return self.window.samples

    @property
    def shift_estimate(self) -> float:
        """Of the window; 0 before anything was observed."""
        return self.constants.estimate(self.window.mean_shift_score, self.samples)

    @property
    def expected_accuracy(self) -> ExpectedAccuracy:
        """Mean confidence of the window at its present shift estimate, and a range at 0.9."""
        return self._expect_accuracy(self.window, self.shift_estimate)

    def observe(
        self,
        classes: AnyArray,
        confidence: AnyArray,
        shift_score: AnyArray,
        at: int | float | None = None,
    ) -> Float[np.ndarray, " n"]:
        """Return unadapted confidence adapted to earlier samples; then add these to the window.

        `at` is their time in seconds since 1970 or a sequence number, by default the present time.
        """
        now = self._clock()
        at = now if at is None else _check_time(at, now)
        confidence = np.asarray(confidence, np.float64)
        window = self.window.ignore_times_ahead(now)
        at, number = window.place(at)
        batch = WindowBatch.of(self._worker, number, at, classes, log_odds(confidence), shift_score)
        adapted = self.constants.adjust(confidence, self.shift_estimate)
        self.window = window.add(batch)
        return adapted

    def merge(self, snapshot: str | bytes) -> None:
        """Add the batches of another stream's snapshot; those that are there already count once."""
        other = Window.from_json(snapshot).ignore_times_ahead(self._clock())
        self.window = self.window.merge(other)

    def to_json(self) -> str:
        """The state as JSON text, for `merge`."""
        return self.window.to_json()

    def describe(self) -> dict[str, Any]:
        """The window in numbers: as a whole, and part by part from its oldest samples on."""
        return {
            "window": self.window.size,
            "shift_estimate": self.shift_estimate,
            **self._describe_part(self.window),
            "parts": [self._describe_part(part) for part in self.window.divide(PARTS, MIN_PART)],
        }

    def _describe_part(self, part: Window) -> dict[str, Any]:
        expected = self._expect_accuracy(part, self.shift_estimate)
        unadapted = self._expect_accuracy(part, 0.0).value
        names = ("expected_accuracy", "expected_low", "expected_high", "unadapted_confidence")
        values = (x if math.isfinite(x) else None for x in (*expected, unadapted))
        return {"images": part.samples, **dict(zip(names, values, strict=True))}

    def _expect_accuracy(self, part: Window, estimate: float) -> ExpectedAccuracy:
        scores, counts = part.scores()
        confidence = self.constants.adjust(1 / (1 + np.exp(-scores)), estimate)
        return self.constants.expect_accuracy(confidence, estimate, counts)


class Stream(ShiftStream):
    """Confidence of a calibrator on a stream, adapted to the last `window` samples."""

    def __init__(
        self,
        calibrator: "Calibrator",
        window: int = 512,
        clock: Callable[[], float] = time.time,
    ) -> None:
        from rightly.calibrators import check_calibrator
        from rightly.calibrators.shift_adaptation import require_shift

        self.calibrator = check_calibrator(calibrator)
        shift = require_shift(self.calibrator)
        # Shift scores of other calibrators are counted from something else.
        reference = hashlib.sha256(shift.reference.cpu().numpy().astype("<f8").tobytes())
        source = f"{self.calibrator.title} {reference.hexdigest()[:16]}"
        super().__init__(shift.constants(RANGE_LEVEL), window, source, clock)

    def observe(  # type: ignore[override]
        self, predictions: "Predictions", at: int | float | None = None
    ) -> "PerSample":
        """Return confidence at the shift estimate of earlier predictions; then add these.

        `at` is their time in seconds since 1970 or a sequence number, by default the present time.
        """
        from rightly.calibrators.checks import bound_confidence
        from rightly.calibrators.shift_adaptation import score_shift

        predictions = self.calibrator.select_views(predictions)
        classes = self.calibrator.classes(predictions)
        scores, confidence = score_shift(self.calibrator, predictions)
        arrays = [each.cpu().numpy() for each in (classes, confidence, scores)]
        adapted = confidence.new_tensor(super().observe(arrays[0], arrays[1], arrays[2], at))
        return bound_confidence(adapted, predictions)

    @classmethod
    def from_json(cls, calibrator: "Calibrator", snapshot: str | bytes) -> "Stream":
        """A stream that goes on from a snapshot."""
        stream = cls(calibrator, Window.from_json(snapshot).size)
        stream.merge(snapshot)
        return stream


def _check_time(at: object, now: float) -> float:
    """A time or a sequence number; the present time instead of one far ahead of it."""
    if not is_number(at):
        raise ValueError(f"at must be a finite number, a time or a sequence number, got {at!r}")
    if at > now + MAX_AHEAD_S:  # type: ignore[operator]
        warnings.warn(
            f"at must not lie more than an hour ahead of the present clock, got {at}: it is "
            "ignored, and the predictions count as arriving now; pass seconds since 1970",
            UserWarning,
            stacklevel=4,
        )
        return now
    return float(at)  # type: ignore[arg-type]
