"""What a request may ask for, and how it is refused."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

PIXELS_OF_PILLOW = 178_956_970  # twice its MAX_IMAGE_PIXELS, beyond which it refuses by itself


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
        for each in fields(self):
            value = getattr(self, each.name)
            if not (value > 0 or (each.name == "wait_s" and value == 0)):
                raise ValueError(f"the limit {each.name} must be positive, got {value}")
        if self.pixels > PIXELS_OF_PILLOW:
            raise ValueError(
                f"the limit on pixels must be at most {PIXELS_OF_PILLOW}, which Pillow itself "
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


def busy(what: str) -> RefusedRequest:
    """Too much at once: the client may come back."""
    return RefusedRequest(429, "busy", f"{what}: try again in a second", {"Retry-After": "1"})
