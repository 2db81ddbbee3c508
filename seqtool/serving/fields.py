"""A request's body, within its limits, and the fields in it: JSON, a form or a query string."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request

from seqtool.serving.errors import NOT_UNDERSTOOD, ApiError
from seqtool.serving.settings import ServeSettings

MAX_FIELDS = 100


@dataclass(frozen=True)
class Fields:
    """What a request asks for."""

    values: Mapping[str, Any]
    is_json: bool

    def text(self, name: str) -> str:
        """Return a field that has to be a text, "" if it is missing."""
        value = self.values.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise ApiError(400, f"Invalid request: {name} parameter is not a text")
        return value


async def read_body(request: Request, settings: ServeSettings) -> bytes:
    """Return the body; raise if it is too large, or comes too slowly."""
    too_large = ApiError(413, f"The request is larger than {settings.max_body:,} bytes.", {"Connection": "close"})
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > settings.max_body:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(settings.body_timeout):
            async for chunk in request.stream():
                body += chunk
                if len(body) > settings.max_body:
                    raise too_large
    except TimeoutError:
        raise ApiError(408, "The request did not come to its end in time.", {"Connection": "close"}) from None
    except ClientDisconnect:
        raise asyncio.CancelledError from None
    return bytes(body)


async def read_fields(request: Request, settings: ServeSettings) -> Fields:
    """Return the fields of a request."""
    body = await read_body(request, settings)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json")):
        return Fields(parse_json(body), is_json=True)
    values = parse_pairs(request.url.query)
    if kind in ("application/x-www-form-urlencoded", ""):
        values |= parse_pairs(body.decode("utf-8", "replace"))
    return Fields(values, is_json=False)


def parse_json(body: bytes) -> dict[str, Any]:
    """Return the object that a body holds."""
    try:
        values = json.loads(body)
    except (ValueError, RecursionError):
        raise ApiError(400, NOT_UNDERSTOOD) from None
    if not isinstance(values, dict):
        raise ApiError(400, "Invalid JSON format")
    return values


def parse_pairs(text: str) -> dict[str, str]:
    """Return the fields of a form or query string; of several with one name the first."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise ApiError(400, NOT_UNDERSTOOD) from None
    return dict(reversed(pairs))
