"""Options that say what errors and reviews cost."""

from typing import Annotated

import typer

CostError = Annotated[
    float | None,
    typer.Option("--cost-error", help="What an accepted wrong prediction costs."),
]
CostReview = Annotated[
    float | None,
    typer.Option("--cost-review", help="What leaving a prediction to a person costs."),
]
CostGain = Annotated[
    float, typer.Option("--cost-gain", help="What an accepted right prediction earns.")
]


def read_costs(error: float | None, review: float | None, gain: float) -> dict[str, float] | None:
    """The costs that options name; None where they name none."""
    if error is None and review is None and not gain:
        return None
    if error is None or review is None:
        raise ValueError(
            "--cost-error and --cost-review must come together, as what is cheapest depends on both"
        )
    return {"error": error, "review": review, "gain": gain}
