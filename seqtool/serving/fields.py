"""A request's body, within its limits, and the fields in it: JSON, a form, a form with a file, or a query string."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from seqtool.serving.errors import NOT_UNDERSTOOD, ApiError, overloaded
from seqtool.serving.settings import ServeSettings

MAX_FIELDS = 100
DRAINED = 4  # bodies up to so many times the limit are read to their end, so that the client sees the answer
BODIES_AT_ONCE = 32  # bodies of the largest size that may be held at the same time


@dataclass(frozen=True)
class SentFile:
    """A file in a form."""

    name: str
    content: bytes


@dataclass(frozen=True)
class Fields:
    """What a request asks for."""

    values: Mapping[str, Any]
    is_json: bool
    files: Mapping[str, SentFile]

    def text(self, name: str) -> str:
        """Return a field that has to be a text, "" if it is missing."""
        value = self.values.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise ApiError(400, f"Invalid request: {name} parameter is not a text")
        return value


class BodyReader:
    """Reads the bodies of requests; all that are being read together are bounded too."""

    def __init__(self, settings: ServeSettings) -> None:
        self._largest = settings.max_body
        self._timeout = settings.body_timeout
        self._held = 0

    async def read(self, request: Request) -> bytes:
        """Return the body; raise if it is too large, or comes too slowly."""
        declared = request.headers.get("content-length", "")
        if declared.isdecimal() and int(declared[:20]) > DRAINED * self._largest:
            raise self._too_large()
        body = bytearray()
        size = 0
        try:
            async with asyncio.timeout(self._timeout):
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > self._largest:
                        self._held -= len(body)
                        body.clear()
                        if size > DRAINED * self._largest:
                            break
                        continue
                    if self._held + len(chunk) > BODIES_AT_ONCE * self._largest:
                        raise overloaded()
                    body += chunk
                    self._held += len(chunk)
        except TimeoutError:
            raise ApiError(408, "The request did not come to its end in time.", {"Connection": "close"}) from None
        except ClientDisconnect:
            raise asyncio.CancelledError from None
        finally:
            self._held -= len(body)
        if size > self._largest:
            raise self._too_large()
        return bytes(body)

    def _too_large(self) -> ApiError:
        return ApiError(413, f"The request is larger than {self._largest:,} bytes.", {"Connection": "close"})


async def read_fields(request: Request, reader: BodyReader) -> Fields:
    """Return the fields of a request."""
    body = await reader.read(request)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json")):
        return Fields(parse_json(body), is_json=True, files={})
    values = parse_pairs(request.scope["query_string"].decode("latin-1"))
    files: dict[str, SentFile] = {}
    if kind == "multipart/form-data":
        form, files = await parse_multipart(request.headers, body)
        values |= form
    elif kind in ("application/x-www-form-urlencoded", ""):
        values |= parse_pairs(body.decode("utf-8", "replace"))
    return Fields(values, is_json=False, files=files)


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


async def parse_multipart(headers: Headers, body: bytes) -> tuple[dict[str, str], dict[str, SentFile]]:
    """Return the fields and the files of a form."""

    async def stream() -> AsyncGenerator[bytes, None]:
        yield body

    parser = MultiPartParser(
        headers,
        stream(),
        max_files=1,
        max_fields=MAX_FIELDS,
        max_part_size=len(body),  # type: ignore[arg-type]
    )
    try:
        form = await parser.parse()
    except (MultiPartException, ValueError, KeyError, LookupError):
        raise ApiError(400, NOT_UNDERSTOOD) from None
    values: dict[str, str] = {}
    files: dict[str, SentFile] = {}
    for name, value in form.multi_items():
        if isinstance(value, UploadFile):
            files.setdefault(name, SentFile(value.filename or "", await value.read()))
        else:
            values.setdefault(name, value)
    await form.close()
    return values, files
