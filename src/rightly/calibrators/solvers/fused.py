"""Whether kernels that read all logits once can be used (`triton_kernels`)."""

from functools import lru_cache
from types import ModuleType

import torch

from rightly.tensor_shapes import Logits

MAX_CLASSES = 2**14  # a row of more does not fit the registers that a kernel works in


def kernels_for(logits: Logits) -> ModuleType | None:
    """The kernels, for float32 logits on a GPU where Triton works; None elsewhere."""
    if not logits.is_cuda or logits.dtype != torch.float32 or torch.compiler.is_exporting():
        return None
    if logits.shape[1] > MAX_CLASSES or logits.stride(1) != 1 or logits.requires_grad:
        return None
    return load_kernels(logits.device)


@lru_cache
def load_kernels(device: torch.device) -> ModuleType | None:
    """The kernels, once one of them has run: Triton may be missing, or have no compiler."""
    try:
        from rightly.calibrators.solvers import triton_kernels

        one = torch.ones(1, dtype=torch.float64, device=device)
        triton_kernels.top_probability(torch.zeros(1, 2, device=device), one.long(), one)
    except Exception:  # whatever a compiler may say: torch's own kernels do the same, slower
        return None
    return triton_kernels
