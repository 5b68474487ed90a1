"""Wall time of work on a device, and the unit that it is given in."""

import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

import torch


def time_call(work: Callable[[], object], device: str | torch.device = "cpu") -> float:
    """Seconds until work is done, on a GPU from an empty queue to an empty queue."""
    is_gpu = torch.device(device).type == "cuda"
    if is_gpu:
        torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    if is_gpu:
        torch.cuda.synchronize()
    return time.perf_counter() - start


def time_best(
    work: Callable[[], object], device: str | torch.device = "cpu", runs: int = 5
) -> float:
    """The least of some runs, which other work on the machine disturbs least."""
    return min(time_call(work, device) for _ in range(runs))


def run_unit(single: torch.Tensor) -> object:
    """What all speeds are given in: one pass over float32 logits."""
    return single.softmax(-1).max(-1)


class Paired(NamedTuple):
    """Medians of some runs of a call, and of the units that were timed before and after each."""

    seconds: float
    unit: float
    unit_at_hand: float  # the unit where its result is written to memory that is there already


def time_beside_unit(work: Callable[[], object], logits: torch.Tensor, runs: int) -> Paired:
    """Alternates a call with its unit, because a shared machine is fast or slow for seconds."""
    single, device = logits.float(), logits.device
    buffer = torch.empty_like(single)

    def unit() -> object:
        return run_unit(single)

    def unit_at_hand() -> object:
        return torch.softmax(single, -1, out=buffer).max(-1)

    seconds, units, at_hand = [], [], []
    for each in (unit, unit_at_hand, work):  # the first of each may load or compile a kernel
        each()
    for _ in range(runs):
        units.append(time_call(unit, device))
        at_hand.append(time_call(unit_at_hand, device))
        seconds.append(time_call(work, device))
        at_hand.append(time_call(unit_at_hand, device))
        units.append(time_call(unit, device))
    return Paired(median(seconds), median(units), median(at_hand))


def time_unit(logits: torch.Tensor) -> float:
    """Seconds of one softmax-and-max pass over the logits as float32."""
    single = logits.float()
    run_unit(single)  # the first may load a kernel
    return time_best(lambda: run_unit(single), single.device, 7)
