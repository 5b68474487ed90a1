"""Logits that are something else, or were rounded until they tell little."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rightly.evaluation.examination.findings import ERROR, WARNING, Finding
from rightly.predictions import Predictions
from rightly.predictions.masking import MASKED
from rightly.predictions.validation import SUM_TOLERANCE, sum_to

STEP = 0.5  # in log-odds: the next confidence after 0.5 is 0.62
MOST_TIED = 0.01  # share of rows; float16 alone ties fewer where logits are near 10
MOST_COARSE = 0.9  # share of rows whose largest logit is a multiple of STEP
FEWEST = 20  # rows


def find_no_logits(name: str, logits: Tensor) -> Finding | None:
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
                f"logits are {kind}: all {len(scores)} rows sum to {total} within "
                f"{SUM_TOLERANCE:.1%}, and no value is negative ({low:.3g} to {high:.3g})",
                f"{remedy}; where only {kind} are to be had, build the predictions with "
                "Predictions.from_probabilities and write them with rightly.save",
            )
    return None


def find_bad_scores(name: str, predictions: Predictions) -> Iterator[Finding]:
    """Log-probabilities, ties at the top, and steps as large as differences between classes."""
    logits = predictions.logits
    if bool((logits.logsumexp(-1).abs() <= SUM_TOLERANCE).all()) and bool((logits <= 0).all()):
        masked = float((logits <= MASKED).double().mean())
        lost = f"; {masked:.1%} of them are log(0), which softmax rounded away" if masked else ""
        yield Finding(
            name,
            "log_probabilities",
            WARNING,
            f"logits are log-probabilities: none is positive, and in all {len(logits)} rows their "
            f"exponentials sum to 1 within {SUM_TOLERANCE:.1%}{lost}",
            "store the scores before log_softmax; if there are none, results stay valid as long "
            "as nothing was rounded to log(0)",
        )
    if len(logits) < FEWEST:
        return
    top = logits.topk(2, dim=-1).values
    tied = int((top[:, 0] == top[:, 1]).sum())
    below = top[top[:, 0] < top[:, 0].max(), 0]  # at the maximum they may have been clipped
    steps = (below / STEP).round() * STEP == below
    coarse = float(steps.double().mean()) if len(below) >= FEWEST else 0.0
    advice = "collect again with logits in float32 (--dtype float32, --precision float32)"
    if tied > MOST_TIED * len(logits) and not coarse > MOST_COARSE:
        yield Finding(
            name,
            "ties",
            WARNING,
            f"in {tied} of {len(logits)} rows ({tied / len(logits):.1%}) two classes share the "
            f"largest logit (up to {float(top.max()):.5g}), so that the predicted class is "
            "arbitrary: they were clipped or rounded",
            advice,
        )
    if coarse > MOST_COARSE:
        yield Finding(
            name,
            "coarse_logits",
            ERROR,
            f"the largest logit of {coarse:.1%} of the rows is a multiple of {STEP}, "
            f"as float16 leaves of numbers from 512 on (the largest is {float(top.max()):.5g}), "
            f"and {tied} rows tie: there is no confidence between 0.5 and 0.62",
            f"{advice}; counts of votes are no logits: turn them into probabilities first",
        )
