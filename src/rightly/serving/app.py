"""The routes of the server, and the answer to everything that goes wrong."""

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect

from rightly import __version__
from rightly.deployment.runtime import ExportedModel
from rightly.monitoring.drift import DriftWatch
from rightly.monitoring.logs import LogWriter
from rightly.monitoring.stream import ShiftStream
from rightly.serving.answers import encode_card
from rightly.serving.limits import Limits, RefusedRequest
from rightly.serving.openapi_examples import ANSWER, CURL, FORM
from rightly.serving.pages import Page, make_docs_page, make_front_page
from rightly.serving.prometheus import MetricsMiddleware
from rightly.serving.schemas import (
    Answer,
    Card,
    Drift,
    ErrorAnswer,
    ErrorDetail,
    Health,
    StreamStatus,
)
from rightly.serving.security_headers import SecurityHeadersMiddleware
from rightly.serving.service import ClientGone, Service
from rightly.serving.stream_adapter import StreamAdapter

GONE = 499  # nginx's status for a client that hung up; only metrics see it
REFUSALS = {
    400: "The form is malformed.",
    408: "The request took too long, from the first byte to the answer.",
    413: "Too many bytes, pixels or images.",
    415: "No form, or a file that is not an image in a known format.",
    422: "No image, an empty or damaged file, pixels without a known range, or an unknown field.",
    429: "Too much is waiting: come back after the seconds that Retry-After says.",
    500: "The model failed.",
}


def make_app(
    model: ExportedModel,
    limits: Limits | None = None,
    allow_origins: Sequence[str] = (),
    *,
    adapt: int | None = None,
    state: str | os.PathLike[str] | None = None,
    log: str | os.PathLike[str] | None = None,
) -> FastAPI:
    """The server as an ASGI app; it starts to work when its lifespan begins.

    The model makes one whole answer first: one that cannot is refused here. With `adapt` it
    answers at the shift estimate of so many images before, kept in the file `state`; `log` is
    a file to which every prediction is appended. Drift is watched where the file tells what images
    without it look like; an alarm voids guarantees.
    """
    if state is not None and adapt is None:
        raise ValueError("state must be left out where nothing adapts: give adapt too")
    adapter = None
    if adapt is not None:
        adapter = StreamAdapter(model, adapt, None if state is None else Path(state))
    entries = None if log is None else LogWriter(Path(log))
    service = Service(model, limits or Limits(), adapter, entries)
    service.check_model()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        service.stop()

    app = FastAPI(
        title="Rightly",
        description="Classifies images and says how likely each prediction is to be right.",
        version=__version__,
        docs_url=None,  # FastAPI's own pages fetch scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,  # its redirects would lead to whatever host the request names
        lifespan=lifespan,
    )
    app.state.service = service
    _add_api(app, service)
    if adapter is not None:
        _add_stream(app, adapter.stream)
    if service.drift is not None:
        _add_drift(app, service.drift)
    _add_pages(app, service)
    _add_errors(app)
    if allow_origins:
        app.add_middleware(CORSMiddleware, allow_origins=list(allow_origins))
    app.add_middleware(SecurityHeadersMiddleware)
    app.add_middleware(MetricsMiddleware, metrics=service.metrics)
    return app


def _add_api(app: FastAPI, service: Service) -> None:
    @app.post(
        "/predict",
        summary="Classify images",
        response_model_exclude_unset=True,  # what only a server that adapts answers
        responses={
            200: {"description": "One prediction for each image.", **_describe_example(ANSWER)},
            **{status: _describe_refusal(status) for status in REFUSALS},
        },
        openapi_extra={"requestBody": FORM, **CURL["predict"]},
    )
    async def predict(request: Request) -> Answer:
        """Classifies the images of a form and says how likely each prediction is right.

        If one image is refused, all are, and the message says which and why.
        """
        return await service.answer(request)

    @app.get(
        "/healthz",
        summary="Is the server well?",
        responses={200: {"description": "It is."}, 503: {"model": Health, "description": "Not."}},
        openapi_extra=CURL["healthz"],
    )
    async def healthz(response: Response) -> Health:
        """Whether the server can answer: 503 if the model hangs."""
        is_healthy = service.batcher.is_healthy
        response.status_code = 200 if is_healthy else 503
        return Health(status="ok" if is_healthy else "stuck", waiting=service.batcher.waiting)

    @app.get(
        "/model",
        summary="What is served?",
        response_class=JSONResponse,
        responses={200: {"model": Card, "description": "The card of the model."}},
        openapi_extra=CURL["model"],
    )
    async def about() -> Response:
        """The card of the model: method, classes, preprocessing, calibration, decision."""
        card = encode_card(service.model, service.find_void())
        return Response(card, media_type="application/json")

    @app.get(
        "/metrics",
        summary="Metrics for Prometheus",
        response_class=Response,
        responses={200: {"description": "Text for Prometheus.", "content": {"text/plain": {}}}},
        openapi_extra=CURL["metrics"],
    )
    async def metrics() -> Response:
        """Requests, latencies, batches, queue, accepted share and confidences, for Prometheus."""
        return Response(service.metrics.render(), headers={"Content-Type": CONTENT_TYPE_LATEST})


def _add_stream(app: FastAPI, stream: ShiftStream) -> None:
    @app.get("/shift", summary="Shift estimate", openapi_extra=CURL["shift"])
    async def shift() -> StreamStatus:
        """The shift estimate of the last images, and the accuracy that is expected there."""
        return StreamStatus(**stream.describe())


def _add_drift(app: FastAPI, drift: DriftWatch) -> None:
    @app.get("/drift", summary="Drift status", openapi_extra=CURL["drift"])
    async def watch() -> Drift:
        """The sequential test for drift, since this worker started."""
        return Drift(**drift.describe())


def _add_pages(app: FastAPI, service: Service) -> None:
    front = make_front_page(
        service.limits,
        adapts=service.adapter is not None,
        watches=service.drift is not None,
    )

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return _send_page(front)

    @app.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> Response:
        return _send_page(make_docs_page(app.openapi(), str(request.base_url).rstrip("/")))

    @app.get("/favicon.ico", include_in_schema=False)
    async def icon() -> Response:
        return Response(status_code=204)  # the pages bring their own; others stop asking


def _add_errors(app: FastAPI) -> None:
    def answer_refused(request: Request, error: RefusedRequest) -> Response:
        return _make_error(error.status, error.code, error.message, error.headers)

    def answer_http(request: Request, error: HTTPException) -> Response:
        code = HTTPStatus(error.status_code).name.lower()
        message = f"{request.method} {request.url.path}: {error.detail}"
        return _make_error(error.status_code, code, message, error.headers)

    def answer_gone(request: Request, error: Exception) -> Response:
        return _make_error(GONE, "gone", "the client hung up")

    def answer_failed(request: Request, error: Exception) -> Response:
        # What went wrong is for the log: it may tell more than a client should know.
        return _make_error(
            500, "model_failed", "the server failed at this request; its log says why"
        )

    handlers: dict[type[Exception], Callable[..., Response]] = {
        RefusedRequest: answer_refused,
        HTTPException: answer_http,
        ClientGone: answer_gone,
        ClientDisconnect: answer_gone,
        Exception: answer_failed,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)


def _send_page(page: Page) -> Response:
    return HTMLResponse(
        page.text,
        headers={"Content-Security-Policy": page.policy, "Cache-Control": "no-cache"},
    )


def _make_error(
    status: int, code: str, message: str, headers: Mapping[str, str] | None = None
) -> Response:
    body = ErrorAnswer(error=ErrorDetail(code=code, message=message))
    return JSONResponse(body.model_dump(), status, headers=dict(headers or {}))


def _describe_refusal(status: int) -> dict[str, Any]:
    return {"model": ErrorAnswer, "description": REFUSALS[status]}


def _describe_example(example: Mapping[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"example": example}}}
