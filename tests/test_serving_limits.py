"""Clients that are slow, greedy, or send what is no request: each is answered or left, and the others do not notice."""

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from tiny_run import make_lines

from seqtool.serving.app import Api, make_app
from seqtool.serving.connections import MAX_HEAD, make_protocol
from seqtool.serving.downloads import Downloads
from seqtool.serving.gate import Gate
from seqtool.serving.limits import RateLimit
from seqtool.serving.metrics import Metrics
from seqtool.serving.models import ServedModels
from seqtool.serving.server import PoliteServer
from seqtool.serving.settings import ServeSettings
from seqtool.translation.engines.settings import EngineSettings

SETTINGS = {"header_timeout": 0.4, "body_timeout": 0.4, "max_body": 50_000, "max_connections": 6, "access_log": False}
PART = '--x\r\ncontent-disposition: form-data; name="{}"{}\r\n\r\n{}\r\n'
JSON = "content-type: application/json\r\n"


class Inside:
    """A server in a thread of this process, so that its limits can be short."""

    def __init__(self, run: Path, folder: Path, **changes: Any) -> None:
        self.settings = ServeSettings(**{**SETTINGS, **changes})
        metrics = Metrics()
        self.models = ServedModels({("en", "de"): run}, EngineSettings(threads=1), self.settings, metrics, print)
        self.models.open()
        rate = RateLimit(0)
        api = Api(self.models, self.settings, metrics=metrics, downloads=Downloads(folder), rate=rate, keys=None)
        self.app = Gate(make_app(api), self.settings, metrics)
        self.listener = socket.create_server(("127.0.0.1", 0))
        protocol = make_protocol(self.settings)
        config = uvicorn.Config(self.app, http=protocol, ws="none", lifespan="off", log_config=None)
        self.server = PoliteServer(config)
        self.thread = threading.Thread(target=lambda: asyncio.run(self.server.serve(sockets=[self.listener])))
        self.thread.start()

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join()
        self.models.close()

    def connect(self) -> socket.socket:
        return socket.create_connection(self.listener.getsockname(), timeout=20)

    def send(self, data: bytes) -> bytes:
        """Return all that is answered until the server closes the connection."""
        with self.connect() as connection:
            with contextlib.suppress(OSError):
                connection.sendall(data)
            return read_all(connection)

    def post(self, path: str, body: bytes, head: str = JSON) -> tuple[int, Any]:
        length = f"content-length: {len(body)}\r\n" if "transfer-encoding" not in head else ""
        start = f"POST {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n{length}{head}\r\n"
        answer_head, _, answer = self.send(start.encode() + body).partition(b"\r\n\r\n")
        status = int(answer_head.split(b" ")[1])
        return status, json.loads(answer) if b"application/json" in answer_head else answer

    def wait_for_connections(self, number: int) -> None:
        deadline = time.monotonic() + 120
        while len(self.server.server_state.connections) != number:
            assert time.monotonic() < deadline
            time.sleep(0.005)

    def is_well(self) -> bool:
        body = b'{"q": "two dogs play", "source": "en", "target": "de"}'
        return self.post("/translate", body) == (200, {"translatedText": "zwei Hunde spielen"})


def read_all(connection: socket.socket) -> bytes:
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


@pytest.fixture(scope="module")
def inside(served_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inside]:
    inside = Inside(served_run, tmp_path_factory.mktemp("downloads"))
    yield inside
    inside.close()


@pytest.fixture(autouse=True)
def _well(inside: Inside) -> Iterator[None]:
    yield
    assert inside.is_well()


@pytest.mark.parametrize("begin", [b"", b"POST /transl", b"POST /translate HTTP/1.1\r\nhost: a\r\nx: "])
def test_a_head_that_comes_too_slowly_is_not_waited_for(inside: Inside, begin: bytes) -> None:
    with inside.connect() as connection:
        connection.sendall(begin)
        started = time.monotonic()
        assert read_all(connection).startswith(b"HTTP/1.1 408 ")
        assert 0.3 < time.monotonic() - started < 15


def test_a_head_that_comes_byte_by_byte_is_not_waited_for(inside: Inside) -> None:
    with inside.connect() as connection:
        with contextlib.suppress(OSError):
            for byte in b"POST /translate HTTP/1.1\r\nhost: abcdefghijklmnopqrstuvwxyz\r\n" * 4:
                connection.sendall(bytes([byte]))
                time.sleep(0.01)
        assert read_all(connection)[:13] in (b"HTTP/1.1 408 ", b"")


@pytest.mark.parametrize("length", ["content-length: 1000", "transfer-encoding: chunked"])
def test_a_body_that_comes_too_slowly_is_not_waited_for(inside: Inside, length: str) -> None:
    answer = inside.send(f"POST /translate HTTP/1.1\r\nhost: a\r\n{JSON}{length}\r\n\r\n1\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert answer.endswith(b'{"error":"The request did not come to its end in time."}')


def test_a_client_that_does_not_read_its_answer_is_left(inside: Inside) -> None:
    inside.wait_for_connections(0)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(inside.listener.getsockname())
        connection.sendall(b"GET /page/app.js HTTP/1.1\r\nhost: a\r\n\r\n" * 800)
        inside.wait_for_connections(1)
        inside.wait_for_connections(0)


@pytest.mark.parametrize("head", ["x: {}\r\n", "{}: x\r\n"])
def test_a_head_that_is_too_large_is_refused(inside: Inside, head: str) -> None:
    data = f"GET /health HTTP/1.1\r\nhost: a\r\n{head.format('y' * MAX_HEAD)}".encode()
    assert inside.send(data).startswith(b"HTTP/1.1 431 ")
    assert inside.send(data + b"\r\n").startswith(b"HTTP/1.1 431 ")
    many = b"".join(b"x%d: y\r\n" % number for number in range(9000))
    assert inside.send(b"GET /health HTTP/1.1\r\n" + many + b"\r\n").startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("times", [1, 10])
@pytest.mark.parametrize("chunked", [True, False])
def test_a_body_that_is_too_large_is_refused(inside: Inside, times: int, chunked: bool) -> None:
    body = b'{"q": "%s"}' % (b"a" * 50_000 * times)
    head = f"{JSON}transfer-encoding: chunked\r\n" if chunked else JSON
    sent = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if chunked else body
    assert inside.post("/translate", sent, head) == (413, {"error": "The request is larger than 50,000 bytes."})


def test_a_body_for_an_address_that_takes_none_is_not_waited_for(inside: Inside) -> None:
    answer = inside.send(b"POST /nope HTTP/1.1\r\nhost: a\r\ncontent-length: 10000000000\r\n\r\nabc")
    assert answer.startswith(b"HTTP/1.1 404 ")


def test_connections_past_the_limit_are_refused_and_free_places_are_used_again(inside: Inside) -> None:
    with contextlib.ExitStack() as stack:
        kept = [stack.enter_context(inside.connect()) for _ in range(6)]
        for connection in kept:
            connection.sendall(b"GET /health HTTP/1.1\r\nhost: a\r\n\r\n")
            assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")
        assert inside.send(b"").startswith(b"HTTP/1.1 503 ")
        kept[0].close()
        deadline = time.monotonic() + 20
        while not inside.send(b"GET /health HTTP/1.1\r\nconnection: close\r\n\r\n").startswith(b"HTTP/1.1 200 "):
            assert time.monotonic() < deadline


def test_requests_one_behind_the_other_are_answered_in_order(inside: Inside) -> None:
    lines = make_lines(5, longest=2)
    bodies = [json.dumps({"q": line, "source": "en", "target": "en"}).encode() for line in lines]
    head = f"POST /translate HTTP/1.1\r\nhost: a\r\n{JSON}content-length: "
    data = b"".join(head.encode() + b"%d\r\n\r\n%s" % (len(body), body) for body in bodies)
    answers = inside.send(data + b"GET /health HTTP/1.1\r\nconnection: close\r\n\r\n").split(b"HTTP/1.1 ")[1:]
    found = [json.loads(answer.partition(b"\r\n\r\n")[2]) for answer in answers]
    assert found == [*({"translatedText": line} for line in lines), {"status": "ok"}]


@pytest.mark.parametrize(
    "head",
    [
        "content-length: 5\r\ntransfer-encoding: chunked",
        "content-length: 5\r\ncontent-length: 6",
        "content-length: -1",
        "content-length: 0x5",
        "content-length: 5\r\n content-length: 6",
        "transfer-encoding: xchunked",
        "transfer-encoding: chunked, identity",
        "transfer-encoding : chunked",
        "x: a\0b",
    ],
)
def test_a_request_that_a_proxy_may_read_otherwise_is_refused(inside: Inside, head: str) -> None:
    data = f"POST /suggest HTTP/1.1\r\nhost: a\r\n{head}\r\n\r\n0\r\n\r\nGET /health HTTP/1.1\r\n\r\n"
    answer = inside.send(data.encode())
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("host", ["[", "a/b?c#d", "\xff[", "", 'evil.example"<script>', "a:b:c"])
def test_a_host_that_is_none_does_no_harm(inside: Inside, host: str) -> None:
    form = "".join(PART.format(*one) for one in [("source", "", "en"), ("target", "", "de")])
    form += PART.format("file", '; filename="a.txt"', "two dogs play") + "--x--\r\n"
    head = f"POST /translate_file HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {len(form)}\r\n"
    answer = inside.send(f"{head}content-type: multipart/form-data; boundary=x\r\n\r\n{form}".encode("latin-1"))
    assert answer.startswith(b"HTTP/1.1 200 ")
    url = json.loads(answer.partition(b"\r\n\r\n")[2])["translatedFileUrl"]
    assert "/download_file/" in url
    assert "<" not in url


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[" * 40_000,
        b'{"q":' * 9_000,
        b"nul",
        b"\xff\xfe\xfd",
        b'{"q": "\xff", "source": "en", "target": "de"}',
        b'{"q": NaN, "source": "en", "target": "de"}',
        b'{"q": ["a", null], "source": "en", "target": "de"}',
        b'{"q": {"a": 1}, "source": "en", "target": "de"}',
        b'{"q": "a", "source": ["en"], "target": "de"}',
        b'{"q": "a", "source": "en", "target": {"de": 1}}',
        b'{"q": "a", "source": "en", "target": "de", "format": 1}',
        b'{"q": "a", "source": "en", "target": "de", "api_key": {}, "alternatives": 1e999}',
        b'{"q": "a", "source": "en", "target": "de", "alternatives": "' + b"9" * 9000 + b'"}',
        b'{"q": "a", "source": "\\ud800", "target": "de"}',
    ],
)
def test_a_body_that_makes_no_sense_is_a_bad_request(inside: Inside, body: bytes) -> None:
    for path in ("/translate", "/seqtool/translate"):
        status, answer = inside.post(path, body)
        if path == "/seqtool/translate" and (b"format" in body or b"alternatives" in body):
            continue  # it has neither
        assert (status, list(answer)) == (400, ["error"])


def test_halves_of_surrogate_pairs_and_nul_are_translated_as_some_character(inside: Inside) -> None:
    for text in (b"\\ud800", b"a \\udc00b", b"\\u0000", b"two \\u0000 dogs", b"\\ufffe\\uffff"):
        status, answer = inside.post("/translate", b'{"q": "%s", "source": "en", "target": "de"}' % text)
        assert (status, list(answer)) == (200, ["translatedText"])


def test_forms_with_odd_parts_are_bad_requests(inside: Inside) -> None:
    kind = "content-type: multipart/form-data"
    for head, body in [
        (f"{kind}\r\n", "abc"),
        (f"{kind}; boundary=\r\n", "abc"),
        (f"{kind}; boundary=x; charset=nonsense\r\n", PART.format("q", "", "a") + "--x--\r\n"),
        (f"{kind}; boundary=x\r\n", "--y--"),
        (f"{kind}; boundary=x\r\n", "--x\r\n\r\na\r\n--x--\r\n"),
        (f"{kind}; boundary=x\r\n", PART.format("q", "", "a") * 200 + "--x--\r\n"),
        (f"{kind}; boundary=x\r\n", "-" * 40_000),
        ("content-type: application/x-www-form-urlencoded\r\n", "&".join("a=b" for _ in range(200))),
    ]:
        assert inside.post("/translate_file", body.encode(), head)[0] == 400


def test_the_folder_of_downloads_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from seqtool.serving import downloads

    monkeypatch.setattr(downloads, "MAX_BYTES", 1000)
    monkeypatch.setattr(downloads, "MAX_FILES", 6)
    store = Downloads(tmp_path)
    made = [store.add(f"{number}.txt", "de", "ä" * 100) for number in range(9)]
    assert [name for name in made if store.find(name)] == made[-5:]
    made += [store.add("a.txt", "de", "") for _ in range(9)]
    assert [name for name in made if store.find(name)] == made[-6:]
    monkeypatch.setattr(downloads, "MAX_AGE", -1)
    last = store.add("../../etc/x.srt", "d/e", "")
    assert [path.name for path in tmp_path.iterdir()] == [last]
    assert last.endswith(".x_de.srt")
