"""Wall time of work on a device."""

import time
from collections.abc import Callable

import torch


def time_call(work: Callable[[], object], device: str | torch.device = "cpu") -> float:
    """Seconds until work is done, on a GPU until its queue is empty."""
    start = time.perf_counter()
    work()
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start
