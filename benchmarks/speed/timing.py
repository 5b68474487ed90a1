"""Wall time of work on a device, and the unit that it is given in."""

import time
from collections.abc import Callable

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


def time_unit(logits: torch.Tensor) -> float:
    """Seconds of one softmax-and-max pass over the logits as float32."""
    single = logits.float()
    single.softmax(-1).max(-1)  # the first may load a kernel
    return time_best(lambda: single.softmax(-1).max(-1), single.device, 7)
