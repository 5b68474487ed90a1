"""Triton kernels that read each row of logits once and write nothing of its size.

In torch the same takes a kernel for every operation, and each of them reads and writes all of the
logits. Only `fused` imports this package: Triton comes with torch where there are NVIDIA GPUs.
"""

from rightly.calibrators.solvers.triton_kernels.inverse import (
    solve_inverse_temperatures as solve_inverse_temperatures,
)
from rightly.calibrators.solvers.triton_kernels.rows import log_odds as log_odds
from rightly.calibrators.solvers.triton_kernels.rows import top_probability as top_probability
from rightly.calibrators.solvers.triton_kernels.search import (
    search_inverse_temperature as search_inverse_temperature,
)
