"""Answers: JSON as LibreTranslate writes it, and pages for what is wrong with an address."""

import json
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from seqtool.serving.access_log import write_error
from seqtool.serving.errors import INTERNAL, ApiError

TITLES = {404: "Not Found", 405: "Method Not Allowed"}
SENTENCES = {
    404: "The requested URL was not found on the server. If you entered the URL manually please check your spelling "
    "and try again.",
    405: "The method is not allowed for the requested URL.",
}


class Json(Response):
    """An answer in JSON."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the body."""
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


async def answer_error(request: Request, error: Exception) -> Response:
    """Answer with an error that was expected."""
    assert isinstance(error, ApiError)
    return Json({"error": error.message}, error.status, error.headers)


async def answer_http_error(request: Request, error: Exception) -> Response:
    """Answer that there is no such address, or not for that method, with LibreTranslate's page."""
    assert isinstance(error, HTTPException)
    title = TITLES.get(error.status_code, error.detail)
    sentence = SENTENCES.get(error.status_code, error.detail)
    page = f"<!doctype html>\n<html lang=en>\n<title>{error.status_code} {title}</title>\n<h1>{title}</h1>\n"
    return HTMLResponse(f"{page}<p>{sentence}</p>\n", error.status_code, error.headers)


async def answer_bug(request: Request, error: Exception) -> Response:
    """Answer with an error that was not expected; the log has where it came from."""
    write_error(error)
    return Json({"error": INTERNAL}, 500)
