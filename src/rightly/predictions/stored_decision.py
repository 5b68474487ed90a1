"""What files store of a decision: checked when a file is read, without torch."""

from collections.abc import Callable, Mapping
from typing import Any

from rightly.checks import is_count, is_share

KINDS = ("guaranteed", "approximate", "least_cost", "chosen")


def _is_amount(value: object) -> bool:
    return type(value) in (int, float)


def _are_costs(value: object) -> bool:
    names = ("error", "review", "gain", "per_1000", "low", "high")
    return isinstance(value, Mapping) and all(_is_amount(value.get(name)) for name in names)


# What each entry must be, where it is there and not null.
ENTRIES: dict[str, tuple[str, Callable[[Any], bool]]] = {
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
    "reason": ("text", lambda value: isinstance(value, str)),
    "measured_on": ("text", lambda value: isinstance(value, str)),
    "asked": ("a table", lambda value: isinstance(value, Mapping)),
}
PROMISE = ("max_error", "assurance", "error_high", "samples", "coverage")


def check_decision(values: Any, name: str = "threshold") -> None:
    """Refuses what is no record of a decision."""
    if not isinstance(values, Mapping):
        raise ValueError(f"{name} must be a table, got {str(values)[:60]}")
    for key, (expected, is_right) in ENTRIES.items():
        value = values.get(key)
        if value is not None and not is_right(value):
            raise ValueError(f"{name}.{key} must be {expected}, got {str(value)[:60]}")
    if values.get("kind") == "guaranteed" and values.get("threshold") is not None:
        missing = [key for key in PROMISE if values.get(key) is None]
        if missing:
            raise ValueError(f"{name} must have {', '.join(missing)} where it is guaranteed")
        if values["error_high"] > values["max_error"]:
            raise ValueError(
                f"{name}.error_high must be at most max_error, {values['max_error']}, where it is "
                f"guaranteed, got {values['error_high']}"
            )
