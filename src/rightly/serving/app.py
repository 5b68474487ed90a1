"""The routes of the server, and how everything that goes wrong is said."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rightly import __version__
from rightly.deployment.runtime import Deployed
from rightly.serving.limits import Limits, RefusedRequest
from rightly.serving.openapi_examples import ANSWER, CURL, FORM
from rightly.serving.pages import NOTHING, Page, docs_page, front_page
from rightly.serving.prometheus import CountedApp
from rightly.serving.schemas import Answer, Card, ErrorAnswer, ErrorDetail, Health, card
from rightly.serving.service import ClientGone, Service

GONE = 499  # nginx's status for a client that hung up; only counters see it
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
    model: Deployed, limits: Limits | None = None, allow_origins: Sequence[str] = ()
) -> FastAPI:
    """The server as an ASGI app; it starts to work when its lifespan begins."""
    service = Service(model, limits or Limits())

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        service.stop()

    app = FastAPI(
        title="Rightly",
        description="Classifies pictures and says how likely each prediction is to be right.",
        version=__version__,
        docs_url=None,  # FastAPI's own pages fetch scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    _add_api(app, service)
    _add_pages(app, service.limits)
    _add_errors(app)
    if allow_origins:
        app.add_middleware(CORSMiddleware, allow_origins=list(allow_origins))
    app.add_middleware(_GuardedApp)
    app.add_middleware(CountedApp, counters=service.counters)
    return app


def _add_api(app: FastAPI, service: Service) -> None:
    described = card(service.model)

    @app.post(
        "/predict",
        summary="Classify pictures",
        responses={
            200: {"description": "One prediction for each picture.", **_example(ANSWER)},
            **{status: _refusal(status) for status in REFUSALS},
        },
        openapi_extra={"requestBody": FORM, **CURL["predict"]},
    )
    async def predict(request: Request) -> Answer:
        """Classifies the pictures of a form and says how likely each prediction is right.

        If one picture is refused, all are, and the message says which and why.
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
        works = service.batcher.works
        response.status_code = 200 if works else 503
        return Health(status="ok" if works else "stuck", waiting=service.batcher.waiting)

    @app.get(
        "/model",
        summary="What is served?",
        response_class=JSONResponse,
        responses={200: {"model": Card, "description": "The card of the model."}},
        openapi_extra=CURL["model"],
    )
    async def about() -> Response:
        """The card of the model: method, classes, preprocessing, calibration, threshold."""
        return Response(described, media_type="application/json")

    @app.get(
        "/metrics",
        summary="Counters for Prometheus",
        response_class=Response,
        responses={200: {"description": "Text for Prometheus.", "content": {"text/plain": {}}}},
        openapi_extra=CURL["metrics"],
    )
    async def metrics() -> Response:
        """Requests, latencies, batches, queue, accepted share and confidences, for Prometheus."""
        return Response(service.counters.text(), headers={"Content-Type": CONTENT_TYPE_LATEST})


def _add_pages(app: FastAPI, limits: Limits) -> None:
    front = front_page(limits)

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return _shown(front)

    @app.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> Response:
        return _shown(docs_page(app.openapi(), str(request.base_url).rstrip("/")))

    @app.get("/favicon.ico", include_in_schema=False)
    async def icon() -> Response:
        return Response(status_code=204)  # the pages bring their own; others stop asking


def _add_errors(app: FastAPI) -> None:
    def refused(request: Request, error: RefusedRequest) -> Response:
        return _error(error.status, error.code, error.message, error.headers)

    def failed_http(request: Request, error: HTTPException) -> Response:
        code = HTTPStatus(error.status_code).name.lower()
        told = f"{request.method} {request.url.path}: {error.detail}"
        return _error(error.status_code, code, told, error.headers)

    def invalid(request: Request, error: RequestValidationError) -> Response:
        return _error(422, "invalid_request", "; ".join(str(each) for each in error.errors()))

    def gone(request: Request, error: Exception) -> Response:
        return _error(GONE, "gone", "the client hung up")

    def failed(request: Request, error: Exception) -> Response:
        # What went wrong is for the log: it may tell more than a client should know.
        return _error(500, "model_failed", "the server failed at this request; its log says why")

    handlers: dict[type[Exception], Callable[..., Response]] = {
        RefusedRequest: refused,
        HTTPException: failed_http,
        RequestValidationError: invalid,
        ClientGone: gone,
        ClientDisconnect: gone,
        Exception: failed,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)


class _GuardedApp:
    """Headers by which browsers keep to what the server meant."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarding(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message["headers"]
                headers += [(b"x-content-type-options", b"nosniff")]
                headers += [(b"referrer-policy", b"no-referrer")]
                if not any(name == b"content-security-policy" for name, _ in headers):
                    headers += [(b"content-security-policy", NOTHING.encode())]
            await send(message)

        await self._app(scope, receive, guarding)


def _shown(page: Page) -> Response:
    return HTMLResponse(
        page.text,
        headers={"Content-Security-Policy": page.policy, "Cache-Control": "no-cache"},
    )


def _error(
    status: int, code: str, message: str, headers: Mapping[str, str] | None = None
) -> Response:
    body = ErrorAnswer(error=ErrorDetail(code=code, message=message))
    return JSONResponse(body.model_dump(), status, headers=dict(headers or {}))


def _refusal(status: int) -> dict[str, Any]:
    return {"model": ErrorAnswer, "description": REFUSALS[status]}


def _example(example: Mapping[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"example": example}}}
