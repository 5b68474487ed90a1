"""What is known of held-out images: scores, as they are taken and as they are stored."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from rightly.calibrators.conformal.scores import SET_SCORES, RankPenalty
from rightly.calibrators.stored_tensors import Stored
from rightly.checks import (
    Schema,
    check_table,
    is_count,
    is_flag,
    is_number,
    is_share,
    or_null,
    table_of,
)


def _is_penalty(value: Any) -> bool:
    is_right = table_of(size=is_share, free_ranks=lambda value: is_count(value, 1))
    return is_right(value) and set(value) == set(RankPenalty._fields)


HEADER: Schema = {
    "coverage": ("a fraction in (0, 1)", lambda value: is_share(value) and 0 < value < 1),
    "score": (f"one of {', '.join(SET_SCORES)}", SET_SCORES.__contains__),
    "class_conditional": ("true or false", is_flag),
    "mean_size": ("a number of classes", lambda value: is_number(value) and value >= 0),
    "penalty": (f"null, or a table of {', '.join(RankPenalty._fields)}", or_null(_is_penalty)),
}


class HeldOutScores(nn.Module):
    """Scores of the true classes of images that the calibrator was not fitted on."""

    stores = {
        "lac": Stored("r", low=0, high=1),
        "aps": Stored("r", low=0, high=1.001),
        "raps": Stored("r", low=0, is_optional=True),
        "labels": Stored("r", low=0, is_integer=True),
    }

    lac: Tensor  # (r,)
    aps: Tensor
    raps: Tensor | None
    labels: Tensor  # (r,): the true classes

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.register_buffer("raps", None)
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor)


def check_header(header: Any, has_penalty: bool) -> None:
    """Refuses values of another type or range than `to_saved` gives."""
    check_table(header, HEADER, "sets", required=HEADER, only=True)
    if has_penalty != (header["penalty"] is not None):
        penalty = str(header["penalty"])[:60]
        raise ValueError(f"sets.penalty must go with the scores of raps, got {penalty}")
