"""HTTP connections that do not wait for ever: uvicorn's protocol with limits on slow and greedy clients.

uvicorn ends a connection that is idle between requests. What it lacks is here: a limit on the time and the size of a
request's head, on the number of connections, and on the time that a client takes to read its answer; and the end of
the work for a client that has left.
"""

import asyncio
from collections import deque
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from seqtool.serving.settings import ServeSettings

MAX_HEAD = 64 << 10  # bytes of a request line and its headers
TOO_SLOW, TOO_LARGE = "408 Request Timeout", "431 Request Header Fields Too Large"
TOO_MANY = "503 Service Unavailable"
TASK = "seqtool.task"  # in a request's scope: the task that answers it


def make_protocol(settings: ServeSettings) -> type[asyncio.Protocol]:
    """Return the class of connections with these settings."""
    return type("PatientProtocol", (LimitedProtocol,), {"settings": settings})


class LimitedProtocol(HttpToolsProtocol):
    """A connection to a client."""

    settings: ServeSettings

    def __init__(self, *args: Any, **others: Any) -> None:
        super().__init__(*args, **others)
        self._reading_head: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None
        self._head_size = 0  # of what has come of the head that is awaited; 0 too while a body is
        self._in_head = True
        self._unanswered: deque[Any] = deque()  # scopes of requests, first come first

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.settings.max_connections:
            self._refuse(TOO_MANY)
        else:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timers()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)
        for scope in self._unanswered:
            if (task := scope.get(TASK)) is not None:
                task.cancel()

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head_size += len(data)
        super().data_received(data)
        if self._in_head and self._head_size > MAX_HEAD and not self.transport.is_closing():
            self._refuse(TOO_LARGE)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        self._await_head()

    def on_headers_complete(self) -> None:
        self._in_head, self._head_size = False, 0
        self._reading_head = self._cancel(self._reading_head)
        if sum(len(name) + len(value) + 4 for name, value in self.headers) + len(self.url) > MAX_HEAD:
            self._refuse(TOO_LARGE)
        else:
            self._unanswered.append(self.scope)
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Read on after a large body, for else nobody notices that the client leaves."""
        super().on_message_complete()
        if not self.pipeline:
            self.flow.resume_reading()

    def on_response_complete(self) -> None:
        """Go on with the next request; a body that nobody asked for is not waited for."""
        self._unanswered.popleft()
        super().on_response_complete()
        if self.cycle is not None and self.cycle.more_body and not self.pipeline:
            self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._writing = self.loop.call_later(self.settings.body_timeout, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._writing = self._cancel(self._writing)

    def _await_head(self) -> None:
        self._reading_head = self._cancel(self._reading_head)
        self._reading_head = self.loop.call_later(self.settings.header_timeout, self._refuse, TOO_SLOW)

    def _refuse(self, status: str) -> None:
        """Answer outside of any request, and close."""
        self._stop_timers()
        if not self.transport.is_closing():
            if self.cycle is None or self.cycle.response_complete:
                self.transport.write(f"HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n".encode())
            self.transport.close()

    def _stop_timers(self) -> None:
        self._reading_head = self._cancel(self._reading_head)
        self._writing = self._cancel(self._writing)

    @staticmethod
    def _cancel(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()
