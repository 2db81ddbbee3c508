"""`seqtool serve` as its operator meets it: signals, processes, keys, rates, CORS, logs, metrics and messages."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests
from command_line import run_text
from served import Served, names
from tiny_run import make_lines

EN_DE = {"source": "en", "target": "de"}
SECRET = "two dogs play"


def metric(server: Served, name: str) -> float:
    lines = server.ask("/metrics", "GET").text.split("\n")
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith((f"{name} ", f"{name}{{")))


def translations(run: Path, lines: list[str]) -> dict[str, str]:
    """Return what `seqtool translate` makes of lines."""
    printed = run_text("translate", "-m", run, stdin="".join(f"{line}\n" for line in lines)).stdout
    return dict(zip(lines, printed.splitlines(), strict=True))


class Load:
    """Clients that ask one sentence after the other until they are refused, and what became of each question."""

    def __init__(self, server: Served, expected: dict[str, str], n_clients: int = 16) -> None:
        self.address, self.expected = server.address, expected
        self.right = self.refused = 0
        self.lost: list[object] = []
        self._n_clients = n_clients
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def __enter__(self) -> "Load":
        self._pool = ThreadPoolExecutor(self._n_clients)
        self._clients = [self._pool.submit(self._ask, number) for number in range(self._n_clients)]
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for client in self._clients:
            client.result(120)
        self._pool.shutdown()

    def _ask(self, number: int) -> None:
        lines = list(self.expected)
        with requests.Session() as session:
            while not self._ended.is_set():
                number += 7
                line = lines[number % len(lines)]
                try:
                    answer = session.post(f"{self.address}/translate", json={"q": line, **EN_DE}, timeout=60)
                except requests.ConnectionError as error:
                    if "Connection refused" not in str(error):
                        self._count("lost", error)
                    return
                if answer.status_code == 503:
                    self._count("refused")
                    return
                is_right = answer.status_code == 200 and answer.json()["translatedText"] == self.expected[line]
                self._count("right") if is_right else self._count("lost", answer.text)

    def _count(self, what: str, problem: object = None) -> None:
        with self._lock:
            if what == "lost":
                self.lost.append(problem)
            else:
                setattr(self, what, getattr(self, what) + 1)


@pytest.mark.parametrize("workers", [1, 2])
def test_sigterm_under_load_loses_no_request_that_was_accepted(served_run: Path, workers: int) -> None:
    expected = translations(served_run, make_lines(60, longest=8))
    with Served(*names(served_run), "--workers", workers, "--cache", 0, "--no-access-log") as server:
        with Load(server, expected) as load:
            server.wait_for(lambda: load.right > 100)
            assert server.end() == 0
        assert load.lost == []
        assert load.right > 100


def test_a_replaced_model_is_opened_on_sighup_and_a_damaged_one_is_not(served_run: Path, tmp_path: Path) -> None:
    from tiny_run import make_run

    shutil.copytree(served_run, tmp_path / "run")
    with Served(*names(tmp_path / "run"), "--cache", 1) as server:
        former = server.translate(SECRET)
        other = make_run(tmp_path / "other", seed=3)
        expected = translations(other.path, [SECRET])[SECRET]
        (tmp_path / "run").rename(tmp_path / "former")
        other.path.rename(tmp_path / "run")
        with Load(server, {"she waves": server.translate("she waves")["translatedText"]}, 4) as load:
            server.process.send_signal(signal.SIGHUP)
            server.wait_for(lambda: server.log("opened anew"))
        assert all("shutting down" not in str(problem) for problem in load.lost)
        assert server.translate(SECRET) == {"translatedText": expected} != former
        with open(tmp_path / "run" / "model.safetensors", "r+b") as weights:
            weights.seek(-1, os.SEEK_END)
            weights.write(b"x")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for(lambda: server.log("its former model is kept"))
        assert server.translate(SECRET) == {"translatedText": expected}


def test_a_killed_process_is_replaced_and_all_count_together(served_run: Path) -> None:
    with Served(*names(served_run), "--workers", 2, "--threads", 1) as server:
        for _ in range(6):
            server.session.close()  # a new connection, to either process
            assert server.translate(SECRET) == {"translatedText": "zwei Hunde spielen"}
        assert metric(server, 'seqtool_requests_total{endpoint="/translate",status="200"}') == 6
        workers = children(server)
        assert len(workers) == 2
        os.kill(workers[0], signal.SIGKILL)
        server.wait_for(lambda: server.log("ended with exit code -9"))
        server.wait_for(lambda: len(children(server)) == 2)
        server.session.close()
        assert server.translate(SECRET) == {"translatedText": "zwei Hunde spielen"}


def children(server: Served) -> list[int]:
    listed = subprocess.run(["pgrep", "-P", str(server.process.pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in listed.stdout.split()]


def test_after_sigkill_the_server_starts_again_on_the_same_port(served_run: Path) -> None:
    with Served(*names(served_run)) as server:
        port = server.address.rpartition(":")[2]
        assert server.translate(SECRET) == {"translatedText": "zwei Hunde spielen"}
        server.process.kill()
    with Served(*names(served_run), "--port", port) as server:
        assert server.address.endswith(f":{port}")
        assert server.translate(SECRET) == {"translatedText": "zwei Hunde spielen"}


def test_the_log_has_every_request_and_no_text(served_run: Path) -> None:
    with Served(*names(served_run)) as server:
        server.translate(SECRET)
        server.ask(f"/translate?q={SECRET}&source=en&target=de&api_key=a-private-key")
        server.ask("/translate_file", files={"file": ("private.txt", SECRET.encode())}, data=EN_DE)
        server.ask("/seqtool/translate", json={"q": SECRET, **EN_DE})
        server.translate(SECRET, target="zz")
        server.ask("/health", "GET", headers={"X-Forwarded-For": "192.0.2.7"})  # as by a proxy on this machine
    assert [entry["client"] for entry in server.entries("/health")] == ["192.0.2.7"]
    entries = server.entries("/translate")
    assert [(entry["method"], entry["status"], entry.get("chars")) for entry in entries] == [
        ("POST", 200, len(SECRET)),
        ("POST", 200, len(SECRET)),
        ("POST", 400, None),
    ]
    assert all(entry["client"] == "127.0.0.1" and 0 < entry["seconds"] < 60 for entry in entries)
    for secret in ("dogs", "Hunde", "private"):
        assert server.log(secret) == []


def test_texts_are_logged_if_that_is_asked_for(served_run: Path) -> None:
    with Served(*names(served_run), "--log-texts") as server:
        server.translate([SECRET])
    (entry,) = server.entries("/translate")
    assert (entry["q"], entry["translations"]) == ([SECRET], ["zwei Hunde spielen"])


def test_metrics_count_requests_batches_characters_and_the_cache(served_run: Path) -> None:
    with Served(*names(served_run)) as server:
        for _ in range(3):
            server.translate(SECRET)
        server.translate("x" * 30_000)
        server.ask("/nope", "GET")
        assert metric(server, 'seqtool_requests_total{endpoint="/translate",status="200"}') == 3
        assert metric(server, 'seqtool_requests_total{endpoint="/translate",status="400"}') == 1
        assert metric(server, 'seqtool_requests_total{endpoint="other",status="404"}') == 1
        assert metric(server, "seqtool_characters_total") == 3 * len(SECRET)
        assert metric(server, "seqtool_cache_hits_total") == 2
        assert metric(server, "seqtool_cache_misses_total") == 1
        assert metric(server, "seqtool_batch_segments_count") == metric(server, "seqtool_batch_segments_sum") == 1
        assert metric(server, "seqtool_waiting_segments") == 0
        assert metric(server, 'seqtool_request_seconds_bucket{endpoint="/translate",le="+Inf"}') == 4


def test_a_client_that_leaves_is_counted_and_costs_no_more(served_run: Path) -> None:
    with Served(*names(served_run), "--max-chars", 0, "--cache", 0) as server:
        text = "\n".join(f"{line} {number}" for number, line in enumerate(make_lines(6000)))
        with contextlib.suppress(requests.RequestException):
            requests.post(f"{server.address}/translate", json={"q": text, **EN_DE}, timeout=0.7)
        server.wait_for(lambda: metric(server, "seqtool_cancelled_requests_total") == 1)
        assert metric(server, "seqtool_waiting_segments") == 0
        translated = metric(server, "seqtool_batch_segments_sum")
        time.sleep(0.2)
        assert metric(server, "seqtool_batch_segments_sum") <= translated + 24 < 6000
        assert server.entries("/translate")[0]["status"] == 499


def test_keys_are_asked_for_where_a_text_is_sent_and_the_file_is_read_again(served_run: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("first-key-of-two\nsecond-key-of-two # of a friend\n", encoding="utf-8")
    with Served(*names(served_run), "--api-keys", keys) as server:
        missing = "Please contact the server operator to get an API key"
        for path in ("/translate", "/detect", "/seqtool/translate"):
            body = {"q": SECRET, **EN_DE}
            assert server.ask(path, json=body).json() == {"error": missing}
            assert server.ask(path, json={**body, "api_key": "third-key-of-two"}).status_code == 403
            assert server.ask(path, json={**body, "api_key": "second-key-of-two"}).status_code == 200
            assert server.ask(path, json=body, headers={"Authorization": "Bearer first-key-of-two"}).status_code == 200
            assert server.ask(path, json={**body, "api_key": ["first-key-of-two"]}).status_code == 400
        file = {"file": ("a.txt", b"A dog.")}
        assert server.ask("/translate_file", files=file, data=EN_DE).status_code == 400
        assert server.ask("/translate_file", files=file, data={**EN_DE, "api_key": "x"}).status_code == 403
        assert server.ask("/frontend/settings", "GET").json()["keyRequired"] is True
        keys.write_text("third-key-of-two\n", encoding="utf-8")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for(lambda: "translatedText" in server.translate(SECRET, api_key="third-key-of-two"))
        assert server.translate(SECRET, api_key="first-key-of-two") == {"error": "Invalid API key"}
        keys.write_text("short\n", encoding="utf-8")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for(lambda: server.log("the former API keys are kept"))
        assert "translatedText" in server.translate(SECRET, api_key="third-key-of-two")
    assert server.log("key-of-two") == []


def test_each_key_has_a_rate_of_its_own(served_run: Path, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("a-key-for-one\na-key-for-two\n", encoding="utf-8")
    with Served(*names(served_run), "--api-keys", tmp_path / "keys", "--rate", 2) as server:
        answers = [server.ask("/detect", json={"q": SECRET, "api_key": "a-key-for-one"}) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 429, 429]
        assert answers[-1].json() == {"error": "Slowdown: 2 per 1 minute"}
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 30
        assert server.ask("/detect", json={"q": SECRET, "api_key": "a-key-for-two"}).status_code == 200


@pytest.mark.parametrize(
    ("options", "allowed"),
    [([], None), (["--cors", "https://example.org"], "https://example.org"), (["--cors", "*"], "*")],
)
def test_scripts_of_other_pages_may_ask_only_if_that_is_allowed(
    served_run: Path, options: list[str], allowed: str | None
) -> None:
    with Served(*names(served_run), *options) as server:
        for origin in ("https://example.org", "https://example.org.evil", "null"):
            may = allowed if allowed in ("*", origin) else None
            answer = server.ask("/translate", json={"q": SECRET, **EN_DE}, headers={"Origin": origin})
            assert answer.headers.get("access-control-allow-origin") == may
            assert ("Origin" in answer.headers.get("vary", "")) == bool(allowed)
            asked = {"Origin": origin, "Access-Control-Request-Method": "POST"}
            before = server.ask("/translate", "OPTIONS", headers=asked)
            assert before.status_code == (200 if allowed else 405)
            assert before.headers.get("access-control-allow-origin") == may
            assert "access-control-allow-credentials" not in before.headers


def test_who_can_reach_the_server_is_said(served_run: Path, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("a-key-of-some-length\n", encoding="utf-8")
    cases: list[tuple[list[object], str]] = [
        ([], "only programs on this machine can reach it"),
        (["--host", "0.0.0.0"], "whoever can reach this machine may use it: --api-keys asks for keys"),
        (["--host", "0.0.0.0", "--api-keys", tmp_path / "keys"], "whoever can reach this machine and has an API key"),
    ]
    for options, sentence in cases:
        with Served(*names(served_run), *options) as server:
            assert sentence in server.log("serving")[0]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (lambda run, folder: [], "no model is given; name a run directory with -m"),
        (lambda run, folder: ["-m", run], "its languages are not known; give them with --name, as in en-de="),
        (lambda run, folder: ["-m", folder / "none"], "none"),
        (lambda run, folder: ["--name", run], "write the languages and the model's folder, as in en-de=DIR"),
        (lambda run, folder: names(run, "en-de", "en-de"), "both translate en-de; leave out one of them"),
        (lambda run, folder: [*names(run), "--api-keys", folder / "none"], "the API keys cannot be read"),
        (lambda run, folder: [*names(run), "--host", "192.0.2.1"], "give another --host or --port"),
    ],
)
def test_what_cannot_be_served_is_named(
    served_run: Path, tmp_path: Path, arguments: Callable[[Path, Path], list[object]], problem: str
) -> None:
    done = run_text("serve", *arguments(served_run, tmp_path))
    assert done.returncode == 1
    assert problem in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_port_in_use_is_named(served_run: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run_text("serve", *names(served_run), "--port", port)
    expected = f"cannot listen on 127.0.0.1 port {port} (Address already in use); give another --host or --port"
    assert expected in done.stderr


def test_a_process_that_cannot_start_ends_the_server(served_run: Path, tmp_path: Path) -> None:
    shutil.copytree(served_run, tmp_path / "run")
    (tmp_path / "run" / "tokenizer.model").write_bytes(b"damaged")
    done = run_text("serve", *names(tmp_path / "run"), "--workers", 2)
    assert done.returncode == 1
    assert "tokenizer.model" in done.stderr
    assert done.stderr.count("\n") == 1


def test_entries_of_the_log_are_json(served_run: Path) -> None:
    with Served(*names(served_run)) as server:
        address = (server.address.rpartition("/")[2].partition(":")[0], int(server.address.rpartition(":")[2]))
        with socket.create_connection(address) as connection:
            connection.sendall(b"\xff\xfe nonsense \x00\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
        server.ask("/translate_file", data=b"--x--", headers={"content-type": "multipart/form-data; boundary=y"})
        server.ask("/translate", data=b"{", headers={"content-type": "application/json", "x-forwarded-for": '"{}'})
    rest = [line for line in server.lines if "serving" not in line]
    assert len(rest) == 3
    assert all(isinstance(json.loads(line), dict) for line in rest)


def test_each_part_of_an_answer_is_sent_at_once() -> None:
    """Without TCP_NODELAY the body waits until the client's system has acknowledged the head, which takes 40 ms."""
    import asyncio

    from seqtool.serving.server import open_socket
    from seqtool.serving.settings import ServeSettings

    async def option_of_a_connection() -> int:
        taken: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
        with open_socket(ServeSettings(port=0)) as listener:
            server = await asyncio.start_server(lambda _, writer: taken.put_nowait(writer), sock=listener)
            _, client = await asyncio.open_connection(*listener.getsockname())
            writer = await taken.get()
            found: int = writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            writer.close()
            client.close()
            server.close()
        return found

    assert asyncio.run(option_of_a_connection())
