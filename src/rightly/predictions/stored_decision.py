"""What files store of a decision: checked when a file is read, without torch."""

from typing import Any

from rightly.checks import (
    Schema,
    check_table,
    is_count,
    is_number,
    is_share,
    is_table,
    is_text,
    table_of,
)

KINDS = ("guaranteed", "approximate", "least_cost", "chosen")


_are_costs = table_of(
    **dict.fromkeys(("error", "review", "gain", "per_1000", "low", "high"), is_number)
)

# What each entry must be, where it is there and not null.
ENTRIES: Schema = {
    "kind": (f"one of {', '.join(KINDS)}", lambda value: value in KINDS),
    "samples": ("a number of samples", is_count),
    "accepted": ("a number of samples", is_count),
    **{
        name: ("a number from 0 to 1", is_share)
        for name in (
            *("threshold", "coverage", "accuracy", "accuracy_low", "accuracy_high"),
            *("max_error", "assurance", "error", "error_high", "broken"),
        )
    },
    "costs": ("amounts of error, review, gain, per_1000, low and high", _are_costs),
    "needed": ("a number of samples", is_count),
    "reason": ("text", is_text),
    "measured_on": ("text", is_text),
    "asked": ("a table", is_table),
}
PROMISE = ("max_error", "assurance", "error_high", "samples", "coverage")


def check_decision(values: Any, name: str = "threshold") -> None:
    """Refuses what is no record of a decision."""
    check_table(values, {}, name)
    check_table({key: value for key, value in values.items() if value is not None}, ENTRIES, name)
    if values.get("kind") == "guaranteed" and values.get("threshold") is not None:
        missing = [key for key in PROMISE if values.get(key) is None]
        if missing:
            raise ValueError(f"{name} must have {', '.join(missing)} where it is guaranteed")
        if values["error_high"] > values["max_error"]:
            raise ValueError(
                f"{name}.error_high must be at most max_error, {values['max_error']}, where it is "
                f"guaranteed, got {values['error_high']}"
            )
