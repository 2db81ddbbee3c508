"""What every request passes through: counting, the access log, CORS, and the end of the server."""

import asyncio
import time
from collections.abc import MutableMapping
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seqtool.serving.access_log import write_entry
from seqtool.serving.connections import TASK
from seqtool.serving.metrics import Metrics
from seqtool.serving.settings import ServeSettings

ENDPOINTS = (  # what is counted by name; all else is "other"
    "/",
    "/translate",
    "/translate_file",
    "/detect",
    "/suggest",
    "/languages",
    "/frontend/settings",
    "/health",
    "/metrics",
    "/spec",
    "/seqtool/translate",
)
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
CORS_HEADERS = [
    (b"access-control-allow-headers", b"Authorization, Content-Type"),
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-max-age", b"86400"),
]


class Gate:
    """An ASGI application around another."""

    def __init__(self, app: ASGIApp, settings: ServeSettings, metrics: Metrics) -> None:
        self.app = app
        self.settings = settings
        self.metrics = metrics
        self.is_ending = False  # refuse what comes, and close each connection with its answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        started, status = time.perf_counter(), 0
        notes = scope["seqtool"] = dict[str, Any]()  # what the endpoint adds to the log
        scope[TASK] = asyncio.current_task()

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message["headers"], *self._headers(scope)]}
            await send(message)

        try:
            if self.is_ending:
                await refuse(send_on, 503, b'{"error":"The server is shutting down."}')
            elif self.settings.cors and scope["method"] == "OPTIONS":
                await refuse(send_on, 200, b"")
            else:
                await self.app(scope, receive, send_on)
        except Exception:
            status = status or 500  # it has been answered, and noted in the log
        except asyncio.CancelledError:
            if not status:  # the client has left
                self.metrics.cancelled.inc()
            status = status or 499
        finally:
            self._note(scope, status, time.perf_counter() - started, notes)

    def _headers(self, scope: Scope) -> list[tuple[bytes, bytes]]:
        headers = list(HEADERS)
        if self.is_ending:
            headers.append((b"connection", b"close"))
        if self.settings.cors:
            headers.append((b"vary", b"Origin"))
            origin = dict(scope["headers"]).get(b"origin", b"").decode("latin-1")
            if self.settings.cors in ("*", origin):
                headers += [(b"access-control-allow-origin", self.settings.cors.encode()), *CORS_HEADERS]
        return headers

    def _note(self, scope: Scope, status: int, seconds: float, notes: MutableMapping[str, Any]) -> None:
        path = scope["path"]
        endpoint = path if path in ENDPOINTS else "other"
        self.metrics.requests.labels(endpoint, str(status)).inc()
        self.metrics.seconds.labels(endpoint).observe(seconds)
        if self.settings.access_log:
            client = scope["client"][0] if scope["client"] else ""
            path = "/download_file/..." if path.startswith("/download_file/") else path[:200]  # it has a file's name
            write_entry(
                client=client,
                method=scope["method"],
                path=path,
                status=status,
                seconds=round(seconds, 4),
                **notes,
            )


async def refuse(send: Send, status: int, body: bytes) -> None:
    """Send an answer without asking the application."""
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 503:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
