"""Confidence on a stream, at the context that its last samples show."""

import hashlib
import math
import uuid

import torch

from rightly.calibrators import AnyCalibrator, Calibrator, as_fitted
from rightly.calibrators.adaptation.adapting import find_context
from rightly.calibrators.adaptation.context import BatchContext, ExpectedAccuracy, score
from rightly.calibrators.checks import bound_confidence
from rightly.decisions.context_window import SCALE, Block, ContextWindow
from rightly.predictions import Predictions
from rightly.tensor_shapes import PerSample

LEVEL = 0.9  # of the expected range
BINS = 8  # of scores, a unit of log-odds: half a bin moves a mean confidence by 0.0002 at most
BIN = "scores from "  # what the quantity of a bin is called


class Stream:
    """Confidences at the context of the last `window` samples, in memory that does not grow.

    Each call of `observe` adds a block of sums. `to_json` writes them all; `merge` adds those of
    other workers, in any order to the same state.
    """

    def __init__(self, calibrator: AnyCalibrator, window: int = 512) -> None:
        self.calibrator: Calibrator = as_fitted(calibrator).calibrator
        self._context = find_context(self.calibrator)
        self._window = ContextWindow(window, self._identify())
        self._worker = uuid.uuid4().hex[:12]
        self._observed = 0  # blocks, so that their ids differ

    @property
    def window(self) -> int:
        return self._window.size

    @property
    def samples(self) -> int:
        """How many samples the window holds: `window`, and what the oldest block has beyond."""
        return self._window.samples

    @property
    def context(self) -> BatchContext:
        """The context of the window; its `value` is 0 before anything was observed."""
        if not self.samples:
            return self._context.shrink(0.0, 0)
        return self._context.shrink(self._window.mean("shift_score"), self.samples)

    @property
    def expected_accuracy(self) -> ExpectedAccuracy:
        """How often the classifier is right in the window: value, and an expected range at 0.9."""
        if not self.samples:
            raise ValueError("the stream must hold samples to expect an accuracy: observe some")
        return self._context.expected_accuracy(self._list_confidences(), self.context, LEVEL)

    @torch.no_grad()
    def observe(self, predictions: Predictions, at: int | float | None = None) -> PerSample:
        """Adds predictions to the window and gives their confidence at its context.

        `at` is their time or sequence number, by which blocks are ordered; by default they come
        after all others.
        """
        if at is not None and not math.isfinite(at):
            raise ValueError(f"at must be a finite number, a time or a sequence number, got {at!r}")
        predictions = self.calibrator.select_views(predictions)
        self.calibrator.check(predictions)
        confidence = self.calibrator.compute_confidence(predictions)
        confidence = bound_confidence(confidence, predictions)
        classes = self.calibrator.compute_classes(predictions)
        if at is not None:
            at = at if isinstance(at, int) else float(at)  # plain, because snapshots are JSON
        else:
            at = max((int(block.at) for block in self._window.blocks), default=-1) + 1
        values = {"shift_score": self._context.residuals(confidence, classes)}
        bins = (score(confidence) * BINS).floor().int()
        values |= {f"{BIN}{k}": (bins == k).double() for k in bins.unique().tolist()}
        arrays = {name: value.cpu().numpy() for name, value in values.items()}
        block_id = f"{self._worker}:{self._observed}"
        self._window = self._window.add(Block.of(block_id, at, classes.cpu().numpy(), **arrays))
        self._observed += 1
        value = self._context.value.new_tensor(self.context.value)
        return bound_confidence(self._context.adjust(confidence, value), predictions)

    def merge(self, snapshot: str | bytes) -> None:
        """Adds the blocks of another stream's snapshot; refuses those that are there already.

        Snapshots of several workers give the same state in any order.
        """
        self._window = self._window.merge(ContextWindow.from_json(snapshot))

    def to_json(self) -> str:
        """The state as JSON text, for `from_json` and `merge`."""
        return self._window.to_json()

    @classmethod
    def from_json(cls, calibrator: AnyCalibrator, snapshot: str | bytes) -> "Stream":
        """A stream that goes on from a snapshot."""
        window = ContextWindow.from_json(snapshot)
        stream = cls(calibrator, window.size)
        stream.merge(snapshot)
        return stream

    def _identify(self) -> str:
        """A hash of what residuals are counted from: other calibrators' blocks do not fit."""
        reference = self._context.reference.cpu().numpy().astype("<f8")
        return f"{self.calibrator.title} {hashlib.sha256(reference.tobytes()).hexdigest()[:16]}"

    def _list_confidences(self) -> PerSample:
        """Unadapted confidences of the window, to the middle of their bins."""
        totals: dict[int, int] = {}
        for block in self._window.blocks:
            for name, steps in block.sums.items():
                if name.startswith(BIN):
                    k = int(name.removeprefix(BIN))
                    totals[k] = totals.get(k, 0) + steps // SCALE
        middles = (torch.tensor(sorted(totals), dtype=torch.float64) + 0.5) / BINS
        counts = torch.tensor([totals[k] for k in sorted(totals)])
        confidence = middles.sigmoid().repeat_interleave(counts)
        return confidence.to(self._context.reference.device)
