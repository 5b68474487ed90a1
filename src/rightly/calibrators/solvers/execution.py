"""How solvers run: on slices that fit the device, on one thread where results must repeat."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

import numpy as np
import torch
from threadpoolctl import ThreadpoolController
from torch import Tensor

from rightly.tensor_shapes import Features, Logits

CHUNK = 2**20  # entries worked on at a time: a few such arrays fit a processor's cache
GPU_CHUNK = 2**27  # fills a GPU; half a gigabyte, of which a few copies are held
BLOCK = 1024  # samples that are compared with all others at a time
LEAST_EXPONENT = -80.0  # smaller ones count as nothing; float32 holds exp of it in all its digits
MANY_CLASSES = 64  # from here on softmax takes less time than exp; below 16, ten times more


def iterate_chunks(logits: Logits) -> Iterator[slice]:
    """Slices of rows that fit a cache or fill a GPU; all rows at once in a graph being traced."""
    if torch.compiler.is_exporting():
        return iter([slice(None)])
    n, c = logits.shape
    rows = max(1, (GPU_CHUNK if logits.is_cuda else CHUNK) // c)
    return (slice(start, min(start + rows, n)) for start in range(0, n, rows))


def allocate_like(logits: Logits) -> Logits:
    """An array of float64 to be filled, of the shape and on the device of the logits.

    On a processor it is NumPy's, which asks for huge pages: to touch a large array for the first
    time takes four times as long in small ones, and as long again as to compute its contents.
    """
    if logits.device.type != "cpu":
        return torch.empty_like(logits, dtype=torch.float64)
    return torch.from_numpy(np.empty(logits.shape))


class Scratch:
    """Memory for one chunk under each name, used again for the next chunk.

    Memory that is freed and asked for anew for every chunk goes back to the system each time or
    not, by what the process freed before: the same work then takes up to twice as long.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, Tensor] = {}

    def take(self, name: str, chunk: Tensor, dtype: torch.dtype | None = None) -> Tensor | None:
        """An array like the chunk to be written to; None where nothing can be written in place."""
        if torch.compiler.is_exporting() or chunk.requires_grad:
            return None
        if name not in self._arrays or len(self._arrays[name]) < len(chunk):
            self._arrays[name] = torch.empty(
                chunk.shape, dtype=dtype or chunk.dtype, device=chunk.device
            )
        return self._arrays[name][: len(chunk)]

    def copy(self, name: str, chunk: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """The chunk as this type, in memory that may be written to."""
        buffer = self.take(name, chunk, dtype)
        return chunk.to(dtype or chunk.dtype, copy=True) if buffer is None else buffer.copy_(chunk)


def iterate_blocks(points: Features) -> Iterator[slice]:
    """Slices of rows that are compared with any number of others; all at once when traced."""
    if torch.compiler.is_exporting():
        return iter([slice(None)])
    return (slice(start, start + BLOCK) for start in range(0, len(points), BLOCK))


def is_unsynchronised(x: Tensor) -> bool:
    """Whether looking at values is impossible (in a graph) or makes a processor wait for a GPU."""
    return torch.compiler.is_exporting() or x.device.type != "cpu"


def scale_gaps(
    logits: Logits, reference: Tensor, inverse: Tensor, out: Tensor | None = None
) -> Logits:
    """b (z - reference), each row at its b, up to a number that is the same for all of a row.

    That number is rounding on a GPU, where one kernel multiplies and subtracts; it is none on a
    processor. Ratios of the exponentials in a row are exact on both.
    """
    if torch.compiler.is_exporting() or not logits.is_cuda:
        return torch.sub(logits, reference, out=out).mul_(inverse)
    inverse = inverse.to(logits)
    return torch.addcmul(-reference * inverse, logits, inverse, out=out)


def record_launches(
    function: Callable[[Tensor], Tensor], example: Tensor
) -> Callable[[Tensor], Tensor]:
    """The same function of tensors like the example; on a GPU all its kernels are one launch.

    A small network is a hundred kernels of some microseconds, and to start each of them takes
    longer than it runs. A function that looks at values cannot be recorded and stays as it is.
    An answer holds until the next call.
    """
    if not example.is_cuda:
        return function
    place, graph, stream = example.clone(), torch.cuda.CUDAGraph(), torch.cuda.Stream()
    try:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # libraries set themselves up at a first call
            function(place)
        torch.cuda.current_stream().wait_stream(stream)
        with torch.cuda.graph(graph, stream=stream):
            answer = function(place)
    except RuntimeError:
        return function

    def replay(x: Tensor) -> Tensor:
        place.copy_(x)
        graph.replay()
        return answer

    return replay


def exp_up_to_scale(exponents: Logits) -> Logits:
    """exp in place, up to a factor that all of a row share; the largest exponent of a row is 0.

    For many classes on a processor this is torch's softmax: one pass, in three quarters of the
    time of exp, to a relative error of 2e-6, and subnormal results do not slow it down.
    """
    if exponents.shape[1] < MANY_CLASSES or is_unsynchronised(exponents):
        return exponents.clamp_min_(LEAST_EXPONENT).exp_()
    return torch.softmax(exponents, -1, out=exponents)


@contextmanager
def single_threaded() -> Iterator[None]:
    """One thread inside, in torch and in SciPy's BLAS; as many as before afterwards."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with _find_thread_pools().limit(limits=1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(threads)


@lru_cache
def _find_thread_pools() -> ThreadpoolController:
    """Those of the libraries that are loaded; to look for them takes longer than a small fit."""
    import scipy.linalg  # noqa: F401  it has a pool of its own, which is found once it is loaded

    return ThreadpoolController()


@contextmanager
def deterministic() -> Iterator[None]:
    """Training that repeats to the bit: one thread, gradients on; both restored at the end."""
    with single_threaded(), torch.enable_grad():
        yield
