"""JSON from files that anybody may have written: no deep nesting, no NaN, no doubled keys.

And the values in it: what they must be, and how they are written.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

MAX_NESTING = 32  # Python's parser fails at a depth that depends on the stack it happens to have

# Strings are skipped whole, so that brackets in them do not count.
TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


def parse_json(text: str | bytes) -> Any:
    """The value of JSON text; a ValueError says what is wrong with it."""
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    depth = 0
    for token in TOKENS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if depth > MAX_NESTING:
            raise ValueError(f"JSON must be nested at most {MAX_NESTING} deep, but it is deeper")
    return json.loads(
        text,
        parse_constant=_refuse_constant,
        parse_float=_parse_number,
        object_pairs_hook=_build_object,
    )


def encode_json(value: Any, indent: int | None = None) -> str:
    """The value as JSON text that `parse_json` reads; what is not finite is null."""
    return json.dumps(_replace_infinite(value), indent=indent, allow_nan=False)


def is_count(value: object, least: int = 0) -> bool:
    """Whether a value is a whole number from `least` on."""
    return type(value) is int and value >= least


def is_share(value: object) -> bool:
    """Whether a value is a number from 0 to 1."""
    return type(value) in (int, float) and 0 <= value <= 1  # type: ignore[operator]


def is_text(value: object) -> bool:
    """Whether a value is text or null."""
    return value is None or isinstance(value, str)


def are_names(value: object) -> bool:
    """Whether a value is a list of names."""
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def are_distinct_names(value: object) -> bool:
    """Whether a value is a list of names, none of them twice."""
    return are_names(value) and len(set(value)) == len(value)  # type: ignore[arg-type, call-overload]


def _refuse_constant(name: str) -> None:
    raise ValueError(f"JSON must hold numbers, got {name}")


def _parse_number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"JSON must hold numbers that fit into 64 bits, got {text[:60]}")
    return number


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("JSON must name each key once, but some are named twice")
    return values


def _replace_infinite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _replace_infinite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_infinite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
