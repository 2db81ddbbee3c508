"""Memory of `seqtool serve` over time under a light load of many kinds of requests.

    python benchmarks/serve_memory.py RUN SOURCE_FILE [--minutes 30]

Sentences (each with a number, so that none is remembered), lists with alternatives, documents, pages in HTML, files,
detections, scores, mistakes, and clients that leave. The memory of translations is small, so that it is full soon.
"""

import argparse
import contextlib
import itertools
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import requests
from serve_clients import resident_bytes
from serve_load import serving

MIB = 1 << 20
EN_DE = {"source": "en", "target": "de"}


class Requests:
    """Requests of each kind in turn."""

    def __init__(self, address: str, lines: list[str]) -> None:
        self.address = address
        self.session = requests.Session()
        self.lines = itertools.cycle(lines)
        self.number = 0
        self.kinds: list[Callable[[], None]] = [
            *[self.sentence] * 8,
            self.texts,
            self.document,
            self.html,
            self.file,
            self.detection,
            self.details,
            self.mistake,
            self.leave,
        ]

    def send_next(self) -> None:
        """Send the next request."""
        self.kinds[self.number % len(self.kinds)]()
        self.number += 1

    def text(self) -> str:
        return f"{next(self.lines)} {self.number}"

    def post(self, path: str, status: int = 200, **values: object) -> None:
        answer = self.session.post(self.address + path, json={**EN_DE, **values}, timeout=60)
        assert answer.status_code == status, answer.text

    def sentence(self) -> None:
        self.post("/translate", q=self.text())

    def texts(self) -> None:
        self.post("/translate", q=[self.text() for _ in range(5)], source="auto", alternatives=3)

    def document(self) -> None:
        self.post("/translate", q="\n".join(self.text() for _ in range(40)))

    def html(self) -> None:
        self.post("/translate", q=f"<p>{self.text()} <b>{self.text()}</b></p>" * 5, format="html")

    def file(self) -> None:
        files = {"file": ("a.txt", f"{self.text()}\n" * 5)}
        answer = self.session.post(f"{self.address}/translate_file", files=files, data=EN_DE, timeout=60)
        assert self.session.get(answer.json()["translatedFileUrl"], timeout=60).status_code == 200

    def detection(self) -> None:
        self.post("/detect", q=self.text())

    def details(self) -> None:
        self.post("/seqtool/translate", q=self.text(), n_best=3, token_scores=True)

    def mistake(self) -> None:
        self.post("/translate", 400, q=self.text(), target="zz")

    def leave(self) -> None:
        with contextlib.suppress(requests.RequestException):
            requests.post(f"{self.address}/translate", json={"q": f"{self.text()}\n" * 200, **EN_DE}, timeout=0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--per-second", type=float, default=8)
    args = parser.parse_args()
    lines = [line for line in args.source.read_text(encoding="utf-8").split("\n") if line]
    with serving(args.run, "--cache", "4") as ((host, port), process):
        client = Requests(f"http://{host}:{port}", lines)
        sizes: list[float] = []
        begun = time.monotonic()
        while (elapsed := time.monotonic() - begun) < 60 * args.minutes:
            client.send_next()
            if elapsed > 30 * len(sizes):
                sizes.append(resident_bytes(process) / MIB)
                print(f"{elapsed / 60:5.1f} min {client.number:7,} requests {sizes[-1]:7.1f} MiB", flush=True)
            time.sleep(max(0.0, client.number / args.per_second - elapsed))
    third = len(sizes) // 3
    middle, last = statistics.median(sizes[third : 2 * third]), statistics.median(sizes[-third:])
    print(
        f"median of the second third {middle:.1f} MiB, of the last {last:.1f} MiB: {100 * (last / middle - 1):+.1f} %"
    )


if __name__ == "__main__":
    main()
