"""How solvers run: on slices that fit the device, on one thread where results must repeat."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

from rightly.tensor_shapes import Features, Logits

CHUNK = 2**19  # entries worked on at a time: two megabytes stay in a processor's cache
GPU_CHUNK = 2**27  # fills a GPU; half a gigabyte, of which a few copies are held
BLOCK = 1024  # samples that are compared with all others at a time
NEGLIGIBLE = 1e-18  # beside a sum of at least 1; anything smaller would turn into slow subnormals


def iterate_chunks(logits: Logits) -> Iterator[slice]:
    """Slices of rows that fit a cache or fill a GPU; all rows at once in a graph being traced."""
    if torch.compiler.is_exporting():
        return iter([slice(None)])
    n, c = logits.shape
    rows = max(1, (GPU_CHUNK if logits.is_cuda else CHUNK) // c)
    return (slice(start, min(start + rows, n)) for start in range(0, n, rows))


def iterate_blocks(points: Features) -> Iterator[slice]:
    """Slices of rows that are compared with any number of others; all at once when traced."""
    if torch.compiler.is_exporting():
        return iter([slice(None)])
    return (slice(start, start + BLOCK) for start in range(0, len(points), BLOCK))


def is_unsynchronised(x: Tensor) -> bool:
    """Whether looking at values is impossible (in a graph) or makes a processor wait for a GPU."""
    return torch.compiler.is_exporting() or x.device.type != "cpu"


def exp_negligible(exponents: Tensor) -> Tensor:
    """exp in place, with what cannot matter beside a sum of at least 1 cut off."""
    return exponents.clamp_min_(math.log(NEGLIGIBLE)).exp_()


@contextmanager
def single_threaded() -> Iterator[None]:
    """One thread inside, in torch and in SciPy's BLAS; as many as before afterwards."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def deterministic() -> Iterator[None]:
    """Training that repeats to the bit: one thread, gradients on; both restored at the end."""
    with single_threaded(), torch.enable_grad():
        yield
