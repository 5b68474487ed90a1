"""Time to fit, as a ratio to one softmax-and-max pass over the same logits.

    python -m benchmarks.speed.fitting [--samples 50000] [--classes 1000] [--views 3] \
        [--methods a,b,c]

The reference, `logits.softmax(-1).max(-1)`, and the fits run in one process on the same float32
tensor; the reference is the median of several passes, taken again before each fit, because the
machine may be shared. Extra memory is the peak above what was in use before the fit.
"""

import argparse
import resource
import threading
import time
from pathlib import Path

import torch

import rightly
from benchmarks.speed.timing import time_unit

TARGETS = {"temperature_scaling": 5, "ca_views": 25, "multi_isotonic": 40}


def build_predictions(
    n: int, c: int, m: int = 3, device: str | torch.device = "cpu"
) -> tuple[rightly.Predictions, torch.Tensor]:
    """Over-confident logits (67 % right at 1,000 classes), with m views that disagree a little."""
    generator = torch.Generator(device).manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, device=device)

    logits = draw(n, c)
    labels = torch.randint(c, (n,), generator=generator, device=device)
    strength = 2 + 1.5 * draw(n)
    logits[torch.arange(n, device=device), labels] += 2 + strength.clamp_min(0)
    logits *= 2.5
    views = torch.empty(n, m, c, device=device) if m else None
    for view in range(m):
        views[:, view] = logits + draw(n, c)
    return rightly.Predictions(logits, views), labels


class PeakMemory:
    """Highest resident size seen while inside, sampled every few milliseconds."""

    def __enter__(self) -> "PeakMemory":
        self.start = self.peak = _read_resident()
        self.done = threading.Event()
        self.watcher = threading.Thread(target=self._watch, daemon=True)
        self.watcher.start()
        return self

    def _watch(self) -> None:
        while not self.done.wait(0.005):
            self.peak = max(self.peak, _read_resident())

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.watcher.join()

    @property
    def extra(self) -> int:
        return self.peak - self.start


def _read_resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=50_000)
    parser.add_argument("--classes", type=int, default=1_000)
    parser.add_argument("--views", type=int, default=3)
    parser.add_argument("--methods", default=",".join(TARGETS))
    options = parser.parse_args()
    predictions, labels = build_predictions(options.samples, options.classes, options.views)
    print(
        f"{options.samples} x {options.classes} float32, {torch.get_num_threads()} threads, "
        f"accuracy {float(predictions.correct(labels).double().mean()):.1%}"
    )
    print(f"{'method':36} {'reference':>10} {'fit':>9} {'ratio':>7} {'target':>7} {'extra':>8}")
    for name in options.methods.split(","):
        reference = time_unit(predictions.logits)
        best, memory = float("inf"), 0
        for _ in range(3):
            with PeakMemory() as seen:
                start = time.perf_counter()
                rightly.calibrator(name).fit(predictions, labels)
                best = min(best, time.perf_counter() - start)
            memory = max(memory, seen.extra)
        target = TARGETS.get(name)
        print(
            f"{name:36} {reference * 1e3:7.0f} ms {best:7.2f} s {best / reference:7.1f} "
            f"{target if target else '-':>7} {memory / 1e6:5.0f} MB"
        )


if __name__ == "__main__":
    main()
