"""What a request may ask for, and how it is refused."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import NoReturn

PILLOW_MAX_PIXELS = 178_956_970  # twice its MAX_IMAGE_PIXELS, beyond which it refuses by itself


@dataclass(frozen=True)
class Limits:
    """Bounds on a request, on a batch, and on what may wait."""

    max_body_mb: float = 20.0
    max_pixels: int = 50_000_000
    max_images: int = 32
    max_batch: int = 32
    max_wait_ms: float = 5.0
    timeout_s: float = 30.0
    queue: int = 256

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            is_enough = value > 0 or (field.name == "max_wait_ms" and value == 0)
            if not is_enough or not math.isfinite(value):
                raise ValueError(f"{field.name} must be positive and finite, got {value:g}")
        if not self.body_bytes:
            raise ValueError(f"max_body_mb must be at least one byte, got {self.max_body_mb:g}")
        if self.max_pixels > PILLOW_MAX_PIXELS:
            raise ValueError(
                f"max_pixels must be at most {PILLOW_MAX_PIXELS}, which Pillow itself accepts, "
                f"got {self.max_pixels}"
            )
        if self.max_images > self.queue:
            raise ValueError(
                f"queue must be at least max_images, {self.max_images}, the images of one request, "
                f"got {self.queue}: make it longer, or allow fewer images"
            )

    @property
    def body_bytes(self) -> int:
        return int(self.max_body_mb * 1e6)

    @property
    def wait_s(self) -> float:
        return self.max_wait_ms / 1000


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
