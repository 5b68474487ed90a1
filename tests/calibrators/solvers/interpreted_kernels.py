"""Checks of the Triton kernels against plain torch in float64, on a processor.

    TRITON_INTERPRET=1 python -m tests.calibrators.solvers.interpreted_kernels NAME

`test_triton_kernels` runs each of them in a process of its own: whether kernels are compiled or
interpreted is settled when they are imported.
"""

import sys

import torch

from rightly.calibrators.solvers import triton_kernels
from rightly.calibrators.solvers.confidence_inverse import (
    CLOSE,
    FLAT,
    MAX_CONFIDENCE,
    MAX_STEPS,
    inverse_temperature_for,
)
from rightly.calibrators.solvers.log_odds import MAX_LOG_ODDS, compute_log_odds
from rightly.calibrators.solvers.temperature import (
    MAX_SCALE_RATIO,
    ROUGH_MOVE,
    SMALL_MOVE,
    nll_inverse_temperature,
    top_probability,
)
from rightly.calibrators.solvers.triton_kernels import rows, search
from rightly.predictions.masking import MASKED

SHAPES = ((1, 2), (7, 3), (130, 10), (21, 1025))


def draw_logits(n: int, c: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits in rows that are not contiguous, some of them masked, and classes that are not."""
    generator = torch.Generator().manual_seed(n * c)
    logits = 6 * torch.randn(n, c + 3, generator=generator)[:, :c]
    if c > 2:
        logits[::3, -1] = MASKED
    return logits, torch.randint(max(2, c - 1), (n,), generator=generator)


def check_confidence() -> None:
    assert rows.MASKED.value == MASKED
    for shape in SHAPES:
        logits, _ = draw_logits(*shape)
        inverse = torch.linspace(0.05, 3, len(logits), dtype=torch.float64)
        found = triton_kernels.top_probability(logits, logits.argmax(-1), inverse)
        wanted = top_probability(logits.double(), inverse)
        torch.testing.assert_close(found, wanted, rtol=0, atol=2e-7)
        # What is left to the other classes keeps its digits however little it is.
        torch.testing.assert_close(1 - found, 1 - wanted, rtol=2e-5, atol=1e-15)


def check_shared_memory() -> None:
    """Classes and temperatures that stand in memory once for all rows, and every other row."""
    logits, classes = draw_logits(130, 10)
    inverse = torch.tensor([0.6], dtype=torch.float64)
    logits[:, 3] = 40.0
    for z, chosen in (
        (logits, torch.tensor([3]).expand(130)),
        (logits[::2], (0 * classes + 3)[::2]),
    ):
        found = triton_kernels.top_probability(z, chosen, inverse.expand(len(z)))
        wanted = top_probability(z.double(), inverse.expand(len(z)), chosen)
        torch.testing.assert_close(found, wanted, rtol=0, atol=2e-7)
        found = triton_kernels.log_odds(z, chosen, inverse[0], MAX_LOG_ODDS)
        wanted = compute_log_odds(z.double(), chosen, inverse[0].reciprocal())
        torch.testing.assert_close(found, wanted, rtol=0, atol=5e-6)


def check_log_odds() -> None:
    for shape in SHAPES:
        logits, classes = draw_logits(*shape)
        inverse = torch.tensor(0.6, dtype=torch.float64)
        for chosen in (classes, logits.argmax(-1)):
            found = triton_kernels.log_odds(logits, chosen, inverse, MAX_LOG_ODDS)
            wanted = compute_log_odds(logits.double(), chosen, inverse.reciprocal())
            torch.testing.assert_close(found, wanted, rtol=0, atol=5e-6)


def check_inverse() -> None:
    """Temperatures for confidences from below uniform to 1, with ties and constant rows."""
    precision = FLAT, CLOSE[torch.float32], MAX_STEPS
    for n, c in ((3, 2), (90, 10), (12, 1025)):
        logits, _ = draw_logits(n, c)
        confidence = torch.linspace(0.5 / c, 1 - 1e-9, n, dtype=torch.float64)
        target = torch.logit(confidence.clamp(0.5 / c, MAX_CONFIDENCE))
        found = triton_kernels.solve_inverse_temperatures(
            logits, logits.argmax(-1), target, *precision
        )
        wanted = inverse_temperature_for(logits.double(), confidence)
        reached = top_probability(logits.double(), found)
        torch.testing.assert_close(
            reached, top_probability(logits.double(), wanted), rtol=0, atol=6e-7
        )
        likely = confidence > 1.5 / c
        torch.testing.assert_close(found[likely], wanted[likely], rtol=1e-5, atol=0)
    odd = torch.tensor([[2.0, 2.0, 0.0], [3.0, 3.0, 3.0], [1.0, MASKED, MASKED]])
    target = torch.logit(torch.tensor([0.9, 0.9, 0.9], dtype=torch.float64))
    found = triton_kernels.solve_inverse_temperatures(odd, odd.argmax(-1), target, *precision)
    assert torch.isfinite(found).all() and (found > 0).all()
    assert found[1:].tolist() == [1.0, 1.0]


def check_search() -> None:
    search.PROGRAMS = 8
    for n, c in ((40, 2), (700, 10), (60, 300)):
        logits, labels = draw_logits(n, c)
        labels = torch.where(torch.arange(n) % 3 > 0, logits.argmax(-1), labels)
        wanted = nll_inverse_temperature(logits.double(), labels)
        for subsample in (n, n // 4):  # without and with a first guess
            found = triton_kernels.search_inverse_temperature(
                logits, labels, subsample, ROUGH_MOVE, SMALL_MOVE, MAX_SCALE_RATIO
            )
            assert abs(found / wanted - 1) < 1e-6, (n, c, subsample, found, wanted)


def check_extremes() -> None:
    """Constant rows, and labels that are all right or all wrong: as without the kernels."""
    search.PROGRAMS = 8
    logits, _ = draw_logits(50, 5)
    for z, labels in (
        (torch.ones(6, 4), torch.zeros(6, dtype=torch.int64)),
        (logits, logits.argmax(-1)),
        (logits, logits[:, :4].argmin(-1)),
    ):
        wanted = nll_inverse_temperature(z.double(), labels)
        found = triton_kernels.search_inverse_temperature(
            z, labels, len(z), ROUGH_MOVE, SMALL_MOVE, MAX_SCALE_RATIO
        )
        assert abs(found / wanted - 1) < 1e-3, (found, wanted)


if __name__ == "__main__":
    globals()[f"check_{sys.argv[1]}"]()
