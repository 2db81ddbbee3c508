"""`seqtool serve` for long: thousands of hostile requests, slow clients, huge lines, and what they leave behind."""

import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))
from serve_clients import resident_bytes
from served import Served, names
from test_serving_fuzz import check_described_requests, storm
from tiny_run import make_run

from seqtool.translation.export.ctranslate2 import export_ctranslate2

MIB = 1 << 20


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = make_run(tmp_path_factory.mktemp("run"), trained=True)
    export_ctranslate2(run, "int8")
    return run.path


@pytest.fixture
def server(run: Path) -> Iterator[Served]:
    with Served(*names(run), "--max-chars", 3000, "--cache", 1, "--no-access-log") as server:
        yield server
        assert server.log('"error"') == []
        assert server.translate("two dogs play") == {"translatedText": "zwei Hunde spielen"}


def test_six_thousand_hostile_requests(server: Served) -> None:
    storm(server, 2000, seed=100, n_clients=16)
    before = resident_bytes(server.process.pid)
    n_answered = sum(storm(server, 1000, seed=1000 * part, n_clients=16) for part in range(1, 5))
    growth = resident_bytes(server.process.pid) - before
    print(
        f"\n{n_answered} of 4,000 requests were answered; memory {before / MIB:.1f} MiB, growth {growth / MIB:.1f} MiB"
    )
    assert n_answered > 2000
    assert growth < 20 * MIB


def test_four_thousand_requests_that_the_description_allows(server: Served) -> None:
    check_described_requests(server, 4000)


def test_hundreds_of_slow_clients_hold_up_nobody(server: Served) -> None:
    """Each sends a byte now and then, some of the head and some of the body; others are answered meanwhile."""
    host, port = server.address.removeprefix("http://").split(":")
    head = b"POST /translate HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
    starts = [
        b"",
        b"P",
        head,
        head + b"content-length: 1000\r\n\r\n{",
        head + b"transfer-encoding: chunked\r\n\r\n1\r\n{",
    ]
    clients = [socket.create_connection((host, int(port)), timeout=90) for _ in range(300)]
    for number, client in enumerate(clients):
        client.sendall(starts[number % len(starts)])
    ended = threading.Event()

    def drip() -> None:
        while not ended.wait(1):
            for client in clients:
                try:
                    client.sendall(b"x")
                except OSError:
                    continue

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        latencies = []
        started = time.monotonic()
        while time.monotonic() < started + 35:
            asked = time.monotonic()
            assert server.translate("two dogs play") == {"translatedText": "zwei Hunde spielen"}
            latencies.append(time.monotonic() - asked)
            time.sleep(0.05)
        assert max(latencies) < 5
    finally:
        ended.set()
        thread.join()
    for client in clients:
        answer = b""
        try:
            while part := client.recv(65536):
                answer += part
        except ConnectionResetError:
            pass
        assert answer[:12] in (b"HTTP/1.1 408", b"HTTP/1.1 400", b""), answer
        client.close()


LINE = "two dogs play at night and the man in the blue shirt walks "


@pytest.mark.parametrize("end", [" ", "\n"])
def test_ten_megabytes_of_text_hold_up_nobody_and_leave_no_memory_taken(run: Path, end: str) -> None:
    """Sent six times by a client that leaves after three seconds, to a server that has no limit of characters."""
    body = json.dumps({"q": f"{LINE}{end}" * (10 * MIB // len(LINE)), "source": "auto", "target": "de"}).encode()
    with Served(*names(run), "--max-chars", 0, "--max-body", 16 * MIB, "--cache", 0) as server:
        host, port = server.address.removeprefix("http://").split(":")

        def give_up() -> None:
            with socket.create_connection((host, int(port)), timeout=90) as client:
                client.sendall(b"POST /translate HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n")
                client.sendall(f"content-length: {len(body)}\r\n\r\n".encode() + body)
                time.sleep(3)

        sizes = []
        for _ in range(6):
            thread = threading.Thread(target=give_up)
            thread.start()
            while thread.is_alive():
                asked = time.monotonic()
                assert server.translate("two dogs play") == {"translatedText": "zwei Hunde spielen"}
                assert time.monotonic() - asked < 5
                time.sleep(0.1)
            thread.join()
            server.wait_for(lambda: "seqtool_waiting_segments 0.0" in server.ask("/metrics", "GET").text)
            time.sleep(3)
            sizes.append(resident_bytes(server.process.pid))
        print(f"\nmemory after each: {[round(size / MIB) for size in sizes]} MiB")
        assert sizes[-1] < sizes[1] * 1.2
        if end == " ":
            answer = server.ask("/translate", data=body, headers={"content-type": "application/json"})
            assert answer.status_code == 400
            assert "exceeds the limit for a line (100,000)" in answer.json()["error"]
    with Served(*names(run)) as server:
        assert server.ask("/translate", data=body, headers={"content-type": "application/json"}).status_code == 413
