"""What a request may ask for, and how it is refused."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import NoReturn

PILLOW_MAX_PIXELS = 178_956_970  # twice its MAX_IMAGE_PIXELS, beyond which it refuses by itself


@dataclass(frozen=True)
class Limits:
    """Bounds on a request, on a batch, and on what may wait."""

    body_bytes: int = 20_000_000
    pixels: int = 50_000_000
    images: int = 32
    batch: int = 32
    wait_s: float = 0.005
    timeout_s: float = 30.0
    queue: int = 256

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            is_enough = value > 0 or (field.name == "wait_s" and value == 0)
            if not is_enough or not math.isfinite(value):
                raise ValueError(f"the limit {field.name} must be positive and finite, got {value}")
        if self.pixels > PILLOW_MAX_PIXELS:
            raise ValueError(
                f"the limit on pixels must be at most {PILLOW_MAX_PIXELS}, which Pillow itself "
                f"accepts, got {self.pixels}"
            )
        if self.images > self.queue:
            raise ValueError(
                f"the queue must have room for the images of one request, {self.images}, got "
                f"{self.queue}: make it longer, or allow fewer images"
            )


class RefusedRequest(Exception):  # noqa: N818 (named for what it tells)
    """A request that gets no prediction, with the status and the words that say why."""

    def __init__(
        self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, code, message)
        self.status, self.code, self.message = status, code, message
        self.headers = dict(headers or {})


def refuse_busy(reason: str) -> NoReturn:
    """Refuses for now: the client may come back."""
    raise RefusedRequest(429, "busy", f"{reason}: try again in a second", {"Retry-After": "1"})
