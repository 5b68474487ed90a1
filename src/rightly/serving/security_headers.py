"""What every answer tells browsers."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rightly.serving.pages import NOTHING


class SecurityHeadersMiddleware:
    """Headers by which browsers keep to what the server meant."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def add_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message["headers"]
                headers += [(b"x-content-type-options", b"nosniff")]
                headers += [(b"referrer-policy", b"no-referrer")]
                if not any(name == b"content-security-policy" for name, _ in headers):
                    headers += [(b"content-security-policy", NOTHING.encode())]
            await send(message)

        await self._app(scope, receive, add_headers)
