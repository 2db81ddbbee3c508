"""Requests that no server should stumble over: from random bytes to well-formed ones, whole, in pieces, broken off."""

import contextlib
import json
import random
import re
import socket
import struct
import time
from dataclasses import dataclass
from typing import NamedTuple

from tiny_run import make_lines

PATHS = ["/translate", "/detect", "/seqtool/translate", "/translate_file", "/suggest"]
OTHER_PATHS = [
    "/",
    "/languages",
    "/frontend/settings",
    "/health",
    "/spec",
    "/metrics",
    "/page/app.js",
    "/nope",
    "*",
    "//",
    "/%00",
    "/page/..%2f..%2fapp.py",
    "/download_file/" + "x" * 5000,
    "/page/" + "%f0%9f%98%80" * 50,
    "http://[/",
    "/translate/",
    "/translate?q=a&source=en&target=de",
    "/translate?" + "a=b&" * 3000,
    "/%",
    "/\xff",
    "?",
    "/translate#a",
    "/..",
]
METHODS = ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "BREW", "post", "PRI"]
KINDS = [
    "application/json",
    "application/json; charset=utf-16",
    "application/problem+json",
    "APPLICATION/JSON",
    "text/plain",
    "application/x-www-form-urlencoded",
    "application/x-www-form-urlencoded; charset=x",
    "",
    ";",
    "\xff",
    "a/b" * 2000,
    "multipart/form-data",
    "multipart/form-data; boundary=x",
    'multipart/form-data; boundary="',
    "multipart/mixed",
    "multipart/form-data; boundary=" + "y" * 5000,
    "multipart/form-data; boundary=\xe9",
    "image/png",
]
HEADERS = [
    "Expect: 100-continue",
    "Content-Encoding: gzip",
    "Content-Type: a",
    "Host: a",
    "Host: \xff",
    "Upgrade: websocket",
    "Connection: upgrade\r\nUpgrade: h2c",
    "Connection: close",
    "Transfer-Encoding: chunked",
    "Content-Length: 5",
    "Content-Length: -1",
    "Content-Length: 99999999999999999999999",
    "Authorization: Bearer",
    "Authorization: \xff",
    "no colon",
    ": no name",
    " folded: yes",
    "x: a\0b",
    "Accept-Encoding: " + "gzip," * 500,
    "Origin: null",
    "Range: bytes=5-",
    "X-Forwarded-For: 1.2.3.4",
    "x: " + "y" * 70_000,
    "\r\n".join(f"x{n}: y" for n in range(300)),
    "Cookie: " + "a=b; " * 900,
]
OPENINGS = [
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"SSH-2.0-x\r\n",
    b"GET /\r\n",
    b"GET / HTTP/0.9\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"\r\n\r\n\r\n",
    b"\0" * 100,
    b"GET  / HTTP/1.1\r\n\r\n",
    b"{}",
]
VALUES = [
    None,
    True,
    0,
    -1,
    1e308,
    10**30,
    "",
    " ",
    "\0",
    "\ud800",
    "\u2028a",
    "a\r\nb",
    [],
    [[]],
    {},
    {"a": 1},
    [None],
    ["a", 1],
    "auto",
    "en",
    "de",
    "EN",
    "en-de",
    "zz",
    "html",
    "text",
    "3",
    "9" * 5000,
    "１",
    "é" * 3000,
    ["two dogs"] * 5,
    [""] * 1200,
    "😀" * 200,
    "字" * 400,
    "\u202eabc",
    "e\u0301" * 50,
    "a" * 25_000,
    "<b>" * 400,
    "<p>two <i>dogs</b> play",
    "&" * 300,
]
NAMES = [
    "q",
    "source",
    "target",
    "format",
    "alternatives",
    "api_key",
    "n_best",
    "token_scores",
    "file",
    "",
    "\0",
    "a" * 300,
]
PAGES = [
    "<p>",
    "</p>",
    "<b>",
    "</b>",
    "two dogs",
    "<",
    ">",
    "&amp",
    "<!--",
    "-->",
    "<script>",
    "</script",
    "\0",
    "<br/>",
    "é ",
]
SUBTITLES = [
    "1\n",
    "00:00:01,000 --> 00:00:02,000\n",
    "two dogs\n",
    "\n",
    "-->",
    "{\\an8}",
    "<i>",
    "99:99",
    "\ufeff",
    "\r\n",
]


class Hostile(NamedTuple):
    """What a client sends, and how it behaves."""

    parts: list[bytes]
    pause: float  # seconds between the parts
    ending: str  # "read" the answer, "half-close" before that, "leave", or "reset" the connection


def hostile(draw: random.Random) -> Hostile:
    """Return a request."""
    data = draw.choice([_json_request, _json_request, _form_request, _multipart_request, _odd_head, _garbage])(draw)
    if draw.random() < 0.15:
        data = _damaged(draw, data)
    if draw.random() < 0.05:
        data += b"".join(_json_request(draw) for _ in range(draw.randint(1, 5)))  # without waiting for an answer
    parts = [data]
    if draw.random() < 0.15:
        cuts = sorted(draw.randrange(len(data) + 1) for _ in range(draw.randint(1, 6)))
        parts = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    endings = ["read"] * 12 + ["half-close", "leave", "reset"]
    return Hostile(parts, draw.choice([0, 0, 0.001, 0.02]), draw.choice(endings))


def _head(draw: random.Random, path: str, kind: str, length: int | None) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "host: a", f"content-type: {kind}"]
    if length is not None:
        lines.append(f"content-length: {length}")
    if draw.random() < 0.1:
        lines.append(draw.choice(HEADERS))
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _chunked(draw: random.Random, body: bytes) -> bytes:
    size = draw.randint(1, 5000)
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    broken = draw.random() < 0.2
    ends = (
        draw.choice([b"zz\r\n", b"-1\r\n", b"ffffffffffffffffff\r\n", b"5\r\nab", b"0\r\nx\r\n"])
        if broken
        else b"0\r\n\r\n"
    )
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + ends


def _send(draw: random.Random, path: str, kind: str, body: bytes) -> bytes:
    if draw.random() < 0.1:
        head = _head(draw, path, kind, None).removesuffix(b"\r\n") + b"transfer-encoding: chunked\r\n\r\n"
        return head + _chunked(draw, body)
    length = len(body)
    if draw.random() < 0.05:
        length += draw.choice([-5, 5, 1000, 5_000_000, 100_000_000])
    return _head(draw, path, kind, max(0, length)) + body


def _fields(draw: random.Random) -> dict[str, object]:
    fields: dict[str, object] = {"q": make_lines(1, seed=draw.randrange(50))[0], "source": "en", "target": "de"}
    for _ in range(draw.choice([0, 1, 1, 2, 4])):
        fields[draw.choice(NAMES)] = draw.choice(VALUES)
    for name in list(fields):
        if draw.random() < 0.05:
            del fields[name]
    return fields


def _json_request(draw: random.Random) -> bytes:
    text = json.dumps(_fields(draw), ensure_ascii=draw.random() < 0.5)
    body = text.encode(draw.choice(["utf-8"] * 12 + ["utf-16", "utf-32", "latin-1", "utf-8-sig"]), "replace")
    kind = "application/json" if draw.random() < 0.9 else draw.choice(KINDS)
    if draw.random() < 0.1:
        deep = draw.choice([10, 1000, 50_000])
        body = draw.choice(
            [b"[" * deep, b'{"q":' * deep, b"[" * deep + b"]" * deep, b"1" * deep, b"-", b"NaN", b"null", b""]
        )
    return _send(draw, draw.choice(PATHS), kind, body)


def _form_request(draw: random.Random) -> bytes:
    pairs = [f"{name}={value}" for name, value in _fields(draw).items()]
    pairs += draw.choice([[], ["%zz=%"], ["=" * 50], ["a=b"] * 300, ["q=%ff%00%f0"], ["q=two+dogs;source=de"]])
    kind = "application/x-www-form-urlencoded" if draw.random() < 0.8 else draw.choice(KINDS)
    return _send(draw, draw.choice(PATHS), kind, "&".join(pairs).encode("utf-8", "replace"))


def _multipart_request(draw: random.Random) -> bytes:
    parts = [_part(f'name="{name}"', str(value)) for name, value in _fields(draw).items() if name != "file"]
    name = draw.choice(
        ["a.txt", "a.html", "a.srt", "a.SRT", "a.pdf", "", "../a.txt", "a\0.txt", "é.html", ".txt", "x" * 3000 + ".txt"]
    )
    pieces = draw.choice([PAGES, SUBTITLES, ["two dogs\n"], ["\0", "é", "\x85"]])
    content = "".join(draw.choices(pieces, k=draw.randint(0, 60)))
    disposition = draw.choice(
        [f'name="file"; filename="{name}"', "name=file; filename*=utf-8''%ff", 'name="file"', "name=", ""]
    )
    parts.insert(draw.randint(0, len(parts)), _part(disposition, content))
    if draw.random() < 0.1:
        parts *= draw.choice([2, 60])
    end = draw.choice(["--x--\r\n"] * 8 + ["", "--x", "--y--", "\r\n--x--"])
    kind = "multipart/form-data; boundary=x" if draw.random() < 0.9 else draw.choice(KINDS)
    body = ("".join(parts) + end).encode(draw.choice(["utf-8"] * 8 + ["utf-16", "cp500"]), "replace")
    return _send(draw, draw.choice(["/translate_file", "/translate_file", "/translate"]), kind, body)


def _part(disposition: str, content: str) -> str:
    return f"--x\r\ncontent-disposition: form-data; {disposition}\r\n\r\n{content}\r\n"


def _odd_head(draw: random.Random) -> bytes:
    method = draw.choice(METHODS) if draw.random() < 0.5 else "GET"
    path = draw.choice([*PATHS, *OTHER_PATHS])
    headers = [draw.choice(HEADERS) for _ in range(draw.randint(0, 3))]
    version = draw.choice(["HTTP/1.1"] * 8 + ["HTTP/1.0", "HTTP/2", ""])
    return "\r\n".join([f"{method} {path} {version}", "host: a", *headers, "", ""]).encode("latin-1")


def _garbage(draw: random.Random) -> bytes:
    if draw.random() < 0.5:
        return draw.choice(OPENINGS)
    return draw.randbytes(draw.choice([1, 10, 1000, 100_000]))


def _damaged(draw: random.Random, data: bytes) -> bytes:
    """Change, drop or repeat some bytes."""
    for _ in range(draw.randint(1, 8)):
        place = draw.randrange(len(data) + 1)
        length = draw.choice([1, 1, 5, 100])
        middle = draw.choice([b"", draw.randbytes(length), b"\0", b"\r\n", data[place : place + length] * 2])
        data = data[:place] + middle + data[place + length :]
    return data


@dataclass
class Answers:
    """What came back: the statuses, and how the last of the answers ends."""

    statuses: list[int]
    data: bytes


def send(address: tuple[str, int], request: Hostile, timeout: float) -> Answers:
    """Send a request as its client would; return what was answered until the server closed, or nothing more came."""
    data = b""
    with socket.create_connection(address, timeout=60) as connection:
        with contextlib.suppress(OSError):  # the server need not read on when it has refused
            for part in request.parts:
                connection.sendall(part)
                time.sleep(request.pause)
        if request.ending == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if request.ending in ("leave", "reset"):
            return Answers([], b"")
        with contextlib.suppress(OSError):  # a server that waits for more sends nothing
            if request.ending == "half-close":
                connection.shutdown(socket.SHUT_WR)
            connection.settimeout(timeout)
            while part := connection.recv(1 << 20):
                data += part
                if is_whole(data):
                    break
    return Answers([int(status) for status in re.findall(rb"^HTTP/1\.1 (\d+)", data, re.MULTILINE)], data)


def is_whole(data: bytes) -> bool:
    """Return whether there is one answer, and it is whole: most clients of this kind wait for no other."""
    head, found, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    return bool(found and length and len(body) >= int(length[1]))
