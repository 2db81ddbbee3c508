"""Clients of a server for benchmarks: each has a connection of its own and asks again when it has its answer.

They are in one thread, with as little work for each request as Python allows, because they share the machine with the
server that they measure. Every answer is compared with what it has to be.
"""

import json
import selectors
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Answers:
    """What clients measured: the seconds of each request, and those of all of them together."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def percentile(self, share: float) -> float:
        """Return the latency that a share of the requests keeps below."""
        ranked = sorted(self.latencies)
        return ranked[min(len(ranked) - 1, int(share * len(ranked)))]


@dataclass(eq=False)
class Client:
    """A connection, and the request that it waits for."""

    connection: socket.socket
    expected: bytes = b""
    started: float = 0.0
    received: bytes = b""


JSON = "content-type: application/json\r\n"
Address = tuple[str, int]
Work = tuple[bytes, bytes]  # a request, and the body of the answer that it has to get


def make_work(texts: Sequence[str], translations: Sequence[str]) -> list[Work]:
    """Return a request for each text, from English into German, with its answer."""
    work = []
    for text, translation in zip(texts, translations, strict=True):
        body = json.dumps({"q": text, "source": "en", "target": "de"}).encode()
        head = f"POST /translate HTTP/1.1\r\nhost: a\r\n{JSON}content-length: {len(body)}\r\n\r\n"
        answer = json.dumps({"translatedText": translation}, ensure_ascii=False, separators=(",", ":"))
        work.append((head.encode() + body, answer.encode()))
    return work


def ask(address: Address, work: Iterator[Work], n_clients: int, until: Callable[[], bool] = bool) -> Answers:
    """Let clients share out the work among them until there is none, or until it is time to end."""
    answers = Answers()
    with selectors.DefaultSelector() as selector:
        begun = time.perf_counter()
        for _ in range(n_clients):
            client = Client(socket.create_connection(address))
            client.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(client.connection, selectors.EVENT_READ, client)
            _next(client, work, selector)
        while selector.get_map():
            for key, _ in selector.select():
                client = key.data
                if _receive(client, answers):
                    if until():
                        work = iter(())
                    _next(client, work, selector)
        answers.seconds = time.perf_counter() - begun
    return answers


def _next(client: Client, work: Iterator[Work], selector: selectors.BaseSelector) -> None:
    request, client.expected = next(work, (b"", b""))
    if not request:
        selector.unregister(client.connection)
        client.connection.close()
        return
    client.received = b""
    client.started = time.perf_counter()
    client.connection.sendall(request)


def _receive(client: Client, answers: Answers) -> bool:
    """Read what has come; return whether the answer is whole."""
    part = client.connection.recv(262144)
    client.received += part
    head, found, body = client.received.partition(b"\r\n\r\n")
    if part and not found:
        return False
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0] or 0)
    if part and len(body) < length:
        return False
    answers.latencies.append(time.perf_counter() - client.started)
    if body != client.expected:
        answers.wrong.append(client.received.decode("utf-8", "replace")[-300:])
    return True


def resident_bytes(process: int) -> int:
    """Return the memory of a process and of those that it started."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    own = int(Path(f"/proc/{process}/statm").read_text().split()[1]) * 4096
    return own + sum(resident_bytes(int(child)) for child in children)
