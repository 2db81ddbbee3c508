"""What goes wrong with a request, as a status and a sentence for the client."""

from collections.abc import Mapping


class ApiError(Exception):
    """An answer that is no success: its body is {"error": message}."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = dict(headers or {})


def bad_request(message: str) -> ApiError:
    """Return the error for a request that cannot be, in the words of LibreTranslate."""
    return ApiError(400, f"Invalid request: {message}")


NOT_UNDERSTOOD = "The browser (or proxy) sent a request that this server could not understand."
INTERNAL = (
    "The server encountered an internal error and was unable to complete your request. "
    "Either the server is overloaded or there is an error in the application."
)


def overloaded() -> ApiError:
    """Return the error for a request that comes while the queue is full."""
    return ApiError(503, "The server is overloaded; try again in a moment.", {"Retry-After": "1"})
