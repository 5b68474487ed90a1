"""JSON from files that anybody may have written: no deep nesting, no NaN, no doubled keys."""

import json
import re
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
    return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_build_object)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"JSON must hold numbers, got {name}")


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("JSON must name each key once, but some are named twice")
    return values
