"""Changes to bytes, to JSON and to arrays, which know nothing of the formats they are used in."""

import json
import math
import struct
from contextlib import suppress
from copy import deepcopy
from random import Random
from typing import Any

import numpy as np

INTEGERS = (0, 1, 2, 7, 127, 128, 255, 256, 32_767, 65_535, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1)
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-320, 1e-45, 1e19, 1e300, 3.4e38, math.inf, math.nan)
WORDS = (
    "",
    "a",
    "logits",
    "0",
    "-1",
    "nan",
    "\x00",
    "é",
    "\ud7ff",
    "=1+1",
    "[b]",
    "../x",
    "x" * 999,
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    3,
    0.5,
    -0.5,
    1e308,
    10**30,
    [],
    {},
    [[]],
    [1, 2],
    {"a": 1},
    *WORDS,
)
LITERALS = ("NaN", "-Infinity", "1e999", "[" * 5000, '{"a":' * 40 + "1" + "}" * 40, "9" * 5000)


def mutate_bytes(random: Random, data: bytes, other: bytes = b"", changes: int = 4) -> bytes:
    """One to `changes` changes at random places; `other` is what is spliced in."""
    content = bytearray(data)
    for _ in range(random.randint(1, changes)):
        change = random.choice(
            (_flip, _flip, _set_integer, _set_integer, _insert, _delete, _repeat, _cut, _splice)
        )
        change(random, content, other)
    return bytes(content)


def _flip(random: Random, content: bytearray, other: bytes) -> None:
    if content:
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)


def _set_integer(random: Random, content: bytearray, other: bytes) -> None:
    width = random.choice((1, 2, 4, 8))
    order = random.choice("<>")
    value = random.choice(INTEGERS) * random.choice((1, 1, -1)) % 2 ** (8 * width)
    packed = struct.pack(order + {1: "B", 2: "H", 4: "I", 8: "Q"}[width], value)
    at = _place(random, content)
    content[at : at + width] = packed


def _insert(random: Random, content: bytearray, other: bytes) -> None:
    at = _place(random, content)
    content[at:at] = random.randbytes(random.choice((1, 2, 4, 16, 300)))


def _delete(random: Random, content: bytearray, other: bytes) -> None:
    at = _place(random, content)
    del content[at : at + random.choice((1, 2, 4, 16, 300))]


def _repeat(random: Random, content: bytearray, other: bytes) -> None:
    at, length = _place(random, content), random.choice((1, 4, 16, 300))
    content[at:at] = content[at : at + length] * random.choice((1, 2, 20))


def _cut(random: Random, content: bytearray, other: bytes) -> None:
    if random.random() < 0.3:  # a truncated file hides all else that was changed
        del content[_place(random, content) :]


def _splice(random: Random, content: bytearray, other: bytes) -> None:
    at, start = _place(random, content), random.randrange(len(other) + 1)
    length = random.choice((4, 32, 500))
    content[at : at + length] = other[start : start + length]


def _place(random: Random, content: bytearray) -> int:
    """Beginnings and ends hold what describes the rest, so half of all changes happen there."""
    edge = min(len(content), 200)
    return random.choice(
        (
            random.randint(0, len(content)),
            random.randint(0, len(content)),
            random.randint(0, edge),
            len(content) - random.randint(0, edge),
        )
    )


def mutate_value(random: Random, value: Any, changes: int = 3) -> Any:
    """A plain value, as JSON has them, with other values at random places inside it."""
    copy = json.loads(json.dumps(value))
    for _ in range(random.randint(1, changes)):
        copy = _change_inside(random, copy)
    return copy


def _change_inside(random: Random, value: Any) -> Any:
    if not isinstance(value, dict | list) or not value or random.random() < 0.1:
        return _change_leaf(random, value)
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = random.choice(keys)
    action = random.random()
    if action < 0.12:
        del value[key]
    elif action < 0.2 and isinstance(value, dict):
        value[random.choice(WORDS)] = value.pop(key)
    elif action < 0.2 and isinstance(value, list):
        value.insert(key, deepcopy(value[random.choice(keys)]))
    elif action < 0.3:
        value[key] = deepcopy(value[random.choice(keys)])
    else:
        value[key] = _change_inside(random, value[key])
    return value


def _change_leaf(random: Random, value: Any) -> Any:
    kind = random.random()
    if isinstance(value, str) and kind < 0.3:
        return mutate_text(random, value)
    if isinstance(value, int | float) and not isinstance(value, bool) and kind < 0.4:
        return random.choice((value + 1, value - 1, -value, value * 1000, float(value), str(value)))
    if kind < 0.45:
        return [value, value]
    return deepcopy(random.choice(VALUES))  # or a case would change those that follow


def mutate_text(random: Random, text: str) -> str:
    """Text with characters taken out, put in or doubled."""
    at = random.randint(0, len(text))
    end = at + random.randint(0, 4)
    return text[:at] + random.choice(("", text[at:end] * 2, *WORDS)) + text[end:]


def mutate_json(random: Random, value: Any) -> bytes:
    """JSON of a changed value, or text that no value has: NaN, numbers too large, depth."""
    text = json.dumps(mutate_value(random, value) if random.random() < 0.7 else value)
    if random.random() < 0.15:
        colons = [i for i, c in enumerate(text) if c in ":,["]
        if colons:
            at = random.choice(colons) + 1
            text = text[:at] + random.choice(LITERALS) + text[at:].partition(",")[2]
    data = text.encode("utf-8", "surrogatepass")
    return mutate_bytes(random, data, data) if random.random() < 0.25 else data


def mutate_array(random: Random, array: np.ndarray) -> np.ndarray:
    """An array with other values, another type, shape, or order in memory."""
    values = array.copy()
    action = random.randrange(7)
    if action == 0 and values.size:
        with np.errstate(all="ignore"):
            one = random.choice(FLOATS if values.dtype.kind == "f" else INTEGERS)
            if values.dtype.kind in "iu":
                one = int(np.array(one % 2**63, np.int64).astype(values.dtype))
            if values.dtype.kind in "fiub":
                values.flat[random.randrange(values.size)] = one
    elif action == 1:
        kinds = ("<f2", ">f4", "<f8", ">i8", "<u8", "|b1", "<i2", "<c8", "<U3", "|S2", "<m8[s]")
        with np.errstate(all="ignore"), suppress(ValueError):  # names are no numbers
            values = values.astype(random.choice(kinds), casting="unsafe")
    elif action == 2:
        values = values.reshape(-1) if random.random() < 0.5 else values[..., None]
    elif action == 3:
        at = random.randint(0, len(values)) if values.ndim else 0
        values = values[:at] if values.ndim else values
    elif action == 4 and values.ndim > 1:
        values = values[:, : random.randint(0, values.shape[1])]
    elif action == 5:
        values = np.asfortranarray(values)
    elif values.size and values.dtype.kind == "f":
        values = (values * np.float64(random.choice((0, -1, 1e10, 1e30)))).astype(values.dtype)
    return np.asarray(values)
