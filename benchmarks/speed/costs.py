"""What calibrators and metrics cost, in passes over the same data, beside peers and targets.

    python -m benchmarks.speed.costs [--device cuda] [--n 50000] [--c 1000] [--methods a,b]

The unit is one `softmax(-1).max(-1)` over the float32 logits, warm, in the same process on the same
device, timed before and after every run of a call; medians of all. For metrics it is one np.sort of
the confidences. On a processor more than half of the unit is to touch the 200 MB of new memory that
its result takes, so the units where that memory is at hand stand beside. Peers are those that are
installed (`pip install rightly[bench]`). On a GPU the number of times that the processor waited for
it stands there, and a table of 1,000,000 samples follows. Then comes how the cost grows with
samples and classes; `--only` chooses among the tables.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

import rightly
from benchmarks.speed import metrics, peers
from benchmarks.speed.fitting import build_predictions
from benchmarks.speed.timing import Paired, time_beside_unit, time_call, time_unit
from rightly.calibrators import CALIBRATORS

TABLES = ("metrics", "calibrators", "large", "growth")
CALLS = ("fit", "confidence", "probabilities")
VIEWS = 3
SIZE = 50_000, 1_000
LARGE = 1_000_000
RUNS = 9
FEW_RUNS_FROM = 2.0  # seconds: what takes longer is run twice


@dataclass(frozen=True)
class Setting:
    """A method, with or without views, and the units that its three calls may take."""

    method: str
    with_views: bool = False
    cpu: tuple[float | None, ...] = (None, None, None)
    cuda: tuple[float | None, ...] = (None, None, None)
    large: tuple[float | None, ...] = (None, None, None)

    @property
    def title(self) -> str:
        return self.method + (f" ({VIEWS} views)" if self.with_views else "")


SETTINGS = (
    Setting("temperature_scaling", False, (5, 0.5, 3), (30, 2, None), (20, 2, None)),
    Setting("ensemble_temperature_scaling", False, (15, 2, None)),
    Setting("multi_isotonic", False, (40, 3, 6)),
    Setting("spline", False, (None, None, 6)),
    Setting("correctness_logistic", False, (None, 2, 6), (300, 6, None)),
    Setting("correctness_logistic", True, cuda=(1000, 15, None)),
    Setting("ca_views", True, (25, None, None), (1500, None, None)),
)


@dataclass(frozen=True)
class Cost:
    """One row of the table."""

    call: str
    title: str
    paired: Paired
    target: float | None = None
    waits: int | None = None

    @property
    def units(self) -> float:
        return self.paired.seconds / self.paired.unit

    def format(self) -> str:
        seconds, unit, unit_at_hand = self.paired
        target = "" if self.target is None else f"{self.target:g}"
        missed = "MISSED" if self.target is not None and self.units > self.target else ""
        waits = "" if self.waits is None else f"{self.waits:,}"
        return (
            f"{self.call:14} {self.title:34} {1e3 * seconds:11.2f} {1e3 * unit:8.2f} "
            f"{self.units:8.2f} {target:>7} {seconds / unit_at_hand:8.2f} {waits:>6} {missed}"
        ).rstrip()


def print_header(title: str) -> None:
    print(f"\n{title}")
    print(
        f"{'call':14} {'':34} {'ms':>11} {'unit, ms':>8} {'units':>8} {'target':>7} "
        f"{'at hand':>8} {'waits':>6}",
        flush=True,
    )


def count_waits(work: Callable[[], object]) -> int:
    """How often the processor stood still until the GPU had caught up."""
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            work()
    finally:
        torch.cuda.set_sync_debug_mode(before)
    return sum("synchroniz" in str(warning.message) for warning in seen)


def time_adaptively(work: Callable[[], object], logits: torch.Tensor) -> Paired:
    """Fewer runs of what takes long."""
    first = time_call(work, logits.device)
    return time_beside_unit(work, logits, 2 if first > FEW_RUNS_FROM else RUNS)


def measure_setting(
    setting: Setting,
    predictions: rightly.Predictions,
    labels: torch.Tensor,
    targets: tuple[float | None, ...],
    calls: tuple[str, ...] = CALLS,
) -> Iterator[Cost]:
    device = predictions.logits.device
    if not setting.with_views and predictions.view_names:
        predictions = predictions.without_views()
    calibrator = rightly.calibrator(setting.method)
    calibrator.fit(predictions, labels)
    works: dict[str, Callable[[], object]] = {
        "fit": lambda: calibrator.fit(predictions, labels),
        "confidence": lambda: calibrator.confidence(predictions),
        "probabilities": lambda: calibrator.probabilities(predictions),
    }
    for call, target in zip(CALLS, targets, strict=True):
        if call in calls:
            paired = time_adaptively(works[call], predictions.logits)
            waits = count_waits(works[call]) if device.type == "cuda" else None
            yield Cost(call, setting.title, paired, target, waits)


def select_settings(methods: list[str] | None) -> list[Setting]:
    """Those with targets, or the named ones: of the whole registry, with targets where it has."""
    if methods is None:
        return list(SETTINGS)
    known = {setting.method for setting in SETTINGS}
    return [
        setting
        for name in methods
        for setting in (SETTINGS if name in known else (Setting(name),))
        if setting.method == name
    ]


def print_calibrators(n: int, c: int, device: torch.device, methods: list[str] | None) -> None:
    predictions, labels = build_predictions(n, c, VIEWS, device)
    accuracy = float(predictions.correct(labels).double().mean())
    unit = 1e3 * time_unit(predictions.logits)
    print_header(f"{n:,} x {c:,} on {device}, accuracy {accuracy:.1%}, unit {unit:.3f} ms")
    for setting in select_settings(methods):
        targets = setting.cuda if device.type == "cuda" else setting.cpu
        if (n, c) != SIZE:  # which the targets are for
            targets = (None, None, None)
        for cost in measure_setting(setting, predictions, labels, targets):
            print(cost.format(), flush=True)
    if methods is None and device.type == "cpu":
        for name, (fit, apply) in peers.build_scalers(predictions.logits, labels).items():
            for call, work in (("fit", fit), ("probabilities", apply)):
                paired = time_adaptively(work, predictions.logits)
                print(Cost(call, name, paired).format(), flush=True)


def print_large(n: int, c: int, device: torch.device) -> None:
    predictions, labels = build_predictions(n, c, 0, device)
    unit = 1e3 * time_unit(predictions.logits)
    print_header(f"{n:,} x {c:,} on {device}, unit {unit:.3f} ms")
    setting = SETTINGS[0]
    for cost in measure_setting(setting, predictions, labels, setting.large, CALLS[:2]):
        print(cost.format(), flush=True)


def print_metrics(n: int) -> None:
    for dtype in (np.float32, np.float64):
        metrics.print_speed(n, dtype, 3)


def print_growth(device: torch.device, most: int, method: str = "temperature_scaling") -> None:
    """Milliseconds, and in brackets units of the same size, which stay where growth is linear."""
    sizes = [n for n in (1_000, 10_000, 100_000, 1_000_000) if 10 * n <= most]
    classes = (10, 100, 1_000, 10_000)
    setting = Setting(method)
    grid: dict[tuple[str, int, int], Cost] = {}
    for n in sizes:
        for c in classes:
            if n * c <= most:
                data = build_predictions(n, c, 0, device)
                for cost in measure_setting(setting, *data, setting.cpu, CALLS[:2]):
                    grid[cost.call, n, c] = cost
    for call in CALLS[:2]:
        print(f"\n{call}, {method}, on {device}: ms (units of the same size)")
        print(f"{'n':>12}" + "".join(f"{f'c = {c:,}':>20}" for c in classes))
        for n in sizes:
            cells = [grid.get((call, n, c)) for c in classes]
            texts = [
                f"{1e3 * cost.paired.seconds:.1f} ({cost.units:.1f})" if cost else ""
                for cost in cells
            ]
            print(f"{n:>12,}" + "".join(f"{text:>20}" for text in texts), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--n", type=int, default=SIZE[0])
    parser.add_argument("--c", type=int, default=SIZE[1])
    parser.add_argument("--methods", help="names, joined by commas; all and peers without it")
    parser.add_argument("--pairs", type=int, default=10**7, help="that metrics are computed of")
    parser.add_argument("--most", type=int, help="logits in the table of growth")
    parser.add_argument("--only", choices=TABLES, nargs="+", default=TABLES)
    options = parser.parse_args()
    device = torch.device(options.device)
    is_gpu = device.type == "cuda"
    name = torch.cuda.get_device_name(device) if is_gpu else f"{torch.get_num_threads()} threads"
    print(f"torch {torch.__version__}, {name}")
    methods = None
    if options.methods:
        methods = [CALIBRATORS[each].name for each in options.methods.split(",")]
    if "metrics" in options.only and not is_gpu and methods is None:
        print_metrics(options.pairs)
    if "calibrators" in options.only:
        print_calibrators(options.n, options.c, device, methods)
    if "large" in options.only and is_gpu and methods is None:
        print_large(LARGE, options.c, device)
    if "growth" in options.only:
        most = options.most or (10**9 if is_gpu else 2 * 10**7)
        print_growth(device, most, methods[0] if methods else "temperature_scaling")


if __name__ == "__main__":
    main()
