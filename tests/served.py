"""Starts `seqtool serve` as users do, on any free port, and keeps what it writes to stderr."""

import json
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import requests
from command_line import SEQTOOL, start_command


class Served:
    """A server in a process of its own for as long as the block lasts."""

    def __init__(self, *arguments: object) -> None:
        self.lines: list[str] = []
        command = [*SEQTOOL, "serve", "--port", "0", *map(str, arguments)]
        self.process = start_command(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        self.lines.extend(iter(self.process.stderr.readline, ""))

    def __enter__(self) -> "Served":
        self.wait_for(lambda: self.log("serving") or self.process.poll() is not None)
        assert self.process.poll() is None, self.lines
        found = re.search(r"http://[^\s;]+", self.log("serving")[0])
        assert found
        self.address = found[0]
        self.session = requests.Session()
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(60)
        finally:
            self.process.kill()
            self._reader.join()
            self.process.stderr.close()

    def log(self, word: str) -> list[str]:
        """Return the lines of stderr with a word in them."""
        return [line for line in self.lines if word in line]

    def entries(self, path: str) -> list[dict[str, Any]]:
        """Return the entries of the access log about an address."""
        entries = [json.loads(line) for line in self.lines if line.startswith("{")]
        return [entry for entry in entries if entry.get("path") == path]

    def wait_for(self, is_so: Callable[[], object], timeout: float = 60) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + timeout
        while not is_so():
            assert time.monotonic() < deadline, self.lines[-5:]
            time.sleep(0.01)

    def end(self) -> int:
        """Send SIGTERM; return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def ask(self, path: str, method: str = "POST", **options: Any) -> requests.Response:
        """Send a request."""
        return self.session.request(method, self.address + path, timeout=60, **options)

    def translate(self, q: object, **others: object) -> Any:
        """Return what /translate answers."""
        return self.ask("/translate", json={"q": q, "source": "en", "target": "de", **others}).json()


def names(run: Path, *directions: str) -> list[str]:
    """Return the arguments that serve one model for several directions."""
    return [argument for direction in directions or ("en-de",) for argument in ("--name", f"{direction}={run}")]
