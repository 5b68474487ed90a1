"""Logits that are something else, or were rounded until they tell little."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from rightly.evaluation.examination.findings import ERROR, WARNING, Finding
from rightly.predictions import Predictions
from rightly.predictions.masking import MASKED
from rightly.predictions.validation import SUM_TOLERANCE, sum_to

ROUNDED = 0.1  # by which sums of rounded probabilities miss 1
LOGARITHMS = {"": 1.0, " to base 10": math.log(10), " to base 2": math.log(2)}
STEP = 0.5  # in log-odds: the next confidence after 0.5 is 0.62
MOST_TIED = 0.01  # share of rows; float16 alone ties fewer where logits are near 10
MOST_COARSE = 0.9  # share of rows whose largest logit is a multiple of STEP
FEWEST = 20  # rows


def find_no_logits(name: str, logits: Tensor, what: str = "logits") -> Finding | None:
    """Probabilities or percentages in the place of logits."""
    scores = logits.float()
    for total, kind, remedy in (
        (1, "probabilities", "store the scores before softmax"),
        (100, "percentages", "store the scores before softmax, or divide them by 100"),
    ):
        if sum_to(total, scores):
            low, high = (float(end) for end in torch.aminmax(scores))
            return Finding(
                name,
                kind,
                ERROR,
                f"{what} are {kind}: all {len(scores)} rows sum to {total} within "
                f"{SUM_TOLERANCE:.1%}, and no value is negative ({low:.3g} to {high:.3g})",
                f"{remedy}; where only {kind} are to be had, build the predictions with "
                "Predictions.from_probabilities and write them with rightly.save",
            )
    return None


def find_rounded(name: str, logits: Tensor, what: str = "logits") -> Finding | None:
    """Scores between 0 and 1 whose rows do not quite sum to 1, or percentages alike."""
    low, high = (float(end) for end in torch.aminmax(logits))
    if low < 0 or len(logits) < FEWEST or high == low:
        return None
    sums = logits.double().sum(-1)
    least, most = float(sums.min()), float(sums.max())
    for total, kind in ((1, "probabilities"), (100, "percentages")):
        is_within = high <= total * (1 + SUM_TOLERANCE)
        if is_within and total * (1 - ROUNDED) <= least <= most <= total * (1 + ROUNDED):
            return Finding(
                name,
                kind,
                ERROR,
                f"{what} are {kind} that were rounded: they lie in {low:.3g}..{high:.3g}, and "
                f"rows sum to {least:.4g} to {most:.4g}",
                "store the scores before softmax, in float32",
            )
    if high > 1 + SUM_TOLERANCE or logits.shape[1] == 2:
        return None
    surest = math.e / (math.e + logits.shape[1] - 1)
    return Finding(
        name,
        "scores_in_0_1",
        WARNING,
        f"{what} all lie in {low:.3g}..{high:.3g}, so that softmax is never surer than "
        f"{surest:.2f}: outputs of a sigmoid, rounded probabilities, or similarities without "
        "their scale",
        "store the scores before the sigmoid or softmax, or times the scale that the classifier "
        "was trained with",
    )


def find_log_probabilities(name: str, logits: Tensor) -> Finding | None:
    """Logarithms of probabilities, also to other bases."""
    if not bool((logits <= 0).all()):
        return None
    sums = {base: (logits.double() * unit).logsumexp(-1) for base, unit in LOGARITHMS.items()}
    bases = [base for base, one in sums.items() if bool((one.abs() <= SUM_TOLERANCE).all())]
    if not bases:
        return None
    base, unit = bases[0], LOGARITHMS[bases[0]]
    masked = float((logits <= MASKED).double().mean())
    lost = f"; {masked:.1%} of them are log(0), which softmax rounded away" if masked else ""
    remedy = "store the scores before log_softmax; if there are none, "
    remedy += "" if unit == 1 else f"multiply them by {unit:.4f}; "
    return Finding(
        name,
        "log_probabilities",
        WARNING,
        f"logits are log-probabilities{base}: none is positive, and in all {len(logits)} rows the "
        f"probabilities sum to 1 within {SUM_TOLERANCE:.1%}{lost}",
        f"{remedy}results stay valid as long as nothing was rounded to log(0)",
    )


def find_bad_scores(name: str, predictions: Predictions) -> Iterator[Finding]:
    """Log-probabilities, ties at the top, and steps as large as differences between classes."""
    logits = predictions.logits
    logarithms = find_log_probabilities(name, logits)
    finding = logarithms or find_rounded(name, logits)
    if finding is not None:
        yield finding
    if len(logits) < FEWEST or (finding is not None and finding.severity == ERROR):
        return
    top = logits.topk(2, dim=-1).values
    tied = int((top[:, 0] == top[:, 1]).sum())
    below = top[top[:, 0] < top[:, 0].max(), 0]  # at the maximum they may have been clipped
    steps = (below / STEP).round() * STEP == below
    coarse = float(steps.double().mean()) if len(below) >= FEWEST else 0.0
    advice = "collect again with logits in float32 (--dtype float32, --precision float32)"
    is_coarse, is_tied = coarse > MOST_COARSE, tied > MOST_TIED * len(logits)
    if is_tied and not is_coarse:
        yield Finding(
            name,
            "ties",
            WARNING,
            f"in {tied} of {len(logits)} rows ({tied / len(logits):.1%}) two classes share the "
            f"largest logit (up to {float(top.max()):.5g}), so that the predicted class is "
            "arbitrary: they were clipped or rounded",
            advice,
        )
    if is_coarse:
        yield Finding(
            name,
            "coarse_logits",
            ERROR,
            f"the largest logit of {coarse:.1%} of the rows is a multiple of {STEP}, "
            f"as float16 leaves of numbers from 512 on (the largest is {float(top.max()):.5g}), "
            f"and {tied} rows tie: there is no confidence between 0.5 and 0.62",
            f"{advice}; counts of votes are no logits: turn them into probabilities first",
        )
    largest = float(top.max())
    clipped = int((top[:, 0] == largest).sum())
    is_clipped = clipped > max(MOST_TIED * len(logits), FEWEST)
    if is_clipped and not (finding or is_coarse or is_tied):
        yield Finding(
            name,
            "clipped",
            WARNING,
            f"in {clipped} of {len(logits)} rows ({clipped / len(logits):.1%}) the largest logit "
            f"is {largest:.5g}, and in none is it larger: scores were clipped, and confidence too",
            "store the scores before they are clipped",
        )
