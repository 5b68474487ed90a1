"""Metrics for Prometheus: requests, latencies, batches, queue, accepted share, confidences."""

import time
from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rightly.monitoring.drift import NAMES as DRIFTS
from rightly.monitoring.drift import DriftWatch
from rightly.monitoring.stream import ShiftStream
from rightly.serving.schemas import Prediction

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
IMAGES = (1, 2, 4, 8, 16, 32, 64, 128)
TENTHS = tuple(k / 10 for k in range(1, 11))
ACCEPTED = {True: "yes", False: "no", None: "unasked"}


class ServerMetrics:
    """The metrics of one app, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.requests = Counter(
            "rightly_requests", "Requests answered.", ["route", "status"], registry=registry
        )
        self.seconds = Histogram(
            "rightly_request_seconds",
            "Time to answer.",
            ["route"],
            buckets=SECONDS,
            registry=registry,
        )
        self.batches = Histogram(
            "rightly_batch_images", "Images in a batch.", buckets=IMAGES, registry=registry
        )
        self.model_seconds = Histogram(
            "rightly_model_seconds", "Time for a batch.", buckets=SECONDS, registry=registry
        )
        self.queue = Gauge("rightly_queue_images", "Images that wait.", registry=registry)
        self.predictions = Counter(
            "rightly_predictions", "Predictions made.", ["accepted"], registry=registry
        )
        self.confidence = Histogram(
            "rightly_confidence", "Calibrated confidence.", buckets=TENTHS, registry=registry
        )
        self.raw_confidence = Histogram(
            "rightly_raw_confidence", "Raw confidence.", buckets=TENTHS, registry=registry
        )
        for word in ACCEPTED.values():
            self.predictions.labels(word)  # so that a share can be had before the first of its kind

    def watch_queue(self, length: Callable[[], int]) -> None:
        self.queue.set_function(lambda: float(length()))

    def watch_stream(self, stream: ShiftStream) -> None:
        """What the server adapts to, where it does."""
        end = "End of the expected range of accuracy at 90 %."
        gauges: dict[str, tuple[str, Callable[[], float]]] = {
            "shift_estimate": ("Of the window; 0 as calibrated.", lambda: stream.shift_estimate),
            "expected_accuracy": (
                "Mean confidence of the window at its shift estimate.",
                lambda: stream.expected_accuracy.value,
            ),
            "expected_accuracy_low": (end, lambda: stream.expected_accuracy.low),
            "expected_accuracy_high": (end, lambda: stream.expected_accuracy.high),
            "window_images": ("Images in the window.", lambda: float(stream.samples)),
        }
        for name, (meaning, read) in gauges.items():
            Gauge(f"rightly_{name}", meaning, registry=self.registry).set_function(read)

    def watch_guarantee(self, find_void: Callable[[], str | None]) -> None:
        """Whether the guarantee is void: adapted data, or a drift alarm."""
        Gauge(
            "rightly_guarantee_void",
            "1 while the guarantee is known to be void; 0 does not mean that it holds.",
            registry=self.registry,
        ).set_function(lambda: float(find_void() is not None))

    def watch_drift(self, drift: DriftWatch) -> None:
        """How near each alarm is, and how many there were."""
        level = Gauge(
            "rightly_drift", "Sum by its limit: 1 alarms.", ["name"], registry=self.registry
        )
        alarms = Gauge(
            "rightly_drift_alarms", "Alarms since the start.", ["name"], registry=self.registry
        )
        for name in DRIFTS:
            level.labels(name).set_function(lambda name=name: drift.levels[name])  # type: ignore[misc]
            alarms.labels(name).set_function(lambda name=name: float(drift.alarms[name]))  # type: ignore[misc]

    def record_batch(self, images: int, seconds: float) -> None:
        self.batches.observe(images)
        self.model_seconds.observe(seconds)

    def record_prediction(self, prediction: Prediction) -> None:
        self.predictions.labels(ACCEPTED[prediction.accept]).inc()
        self.confidence.observe(prediction.confidence)
        self.raw_confidence.observe(prediction.raw_confidence)

    def render(self) -> bytes:
        """The text that Prometheus reads."""
        return generate_latest(self.registry)


class MetricsMiddleware:
    """Counts every answer of an app under its route; paths of requests never become labels."""

    def __init__(self, app: ASGIApp, metrics: ServerMetrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.monotonic(), 500  # where the app fails before it answers

        async def record_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, record_status)
        finally:
            route = getattr(scope.get("route"), "path", "unmatched")
            self._metrics.requests.labels(route, status).inc()
            self._metrics.seconds.labels(route).observe(time.monotonic() - started)
