"""What is known of held-out images: scores, as they are taken and as they are stored."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from rightly.calibrators.conformal.quantiles import check_coverage
from rightly.calibrators.conformal.scores import RankPenalty, check_score
from rightly.calibrators.stored_tensors import Stored
from rightly.checks import is_count, is_share

HEADER = ("coverage", "score", "class_conditional", "mean_size", "penalty")


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
    if not isinstance(header, dict) or set(header) != set(HEADER):
        raise ValueError(f"sets must be a table of {', '.join(HEADER)}, got {str(header)[:60]}")
    check_coverage(header["coverage"])
    check_score(header["score"])
    size, penalty = header["mean_size"], header["penalty"]
    if not isinstance(header["class_conditional"], bool):
        raise ValueError(f"class_conditional must be true or false, got {str(header)[:60]}")
    if type(size) not in (int, float) or not size >= 0:
        raise ValueError(f"mean_size must be a number of classes, got {str(size)[:60]}")
    is_penalty = (
        isinstance(penalty, dict)
        and set(penalty) == set(RankPenalty._fields)
        and is_share(penalty["size"])
        and is_count(penalty["free_ranks"], 1)
    )
    if not (is_penalty if has_penalty else penalty is None):
        raise ValueError(f"penalty must go with the scores of raps, got {str(penalty)[:60]}")
