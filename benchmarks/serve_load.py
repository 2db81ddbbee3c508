"""Throughput and latency of `seqtool serve` on this machine, with the clients beside it, measured in turn in one run.

    python benchmarks/serve_load.py RUN SOURCE_FILE [--lines 2000] [--rounds 3]

(a) 1, 8, 64 and 256 clients with one sentence each, against nothing but `ctranslate2.Translator.translate_batch` on
    the ready tokens of the same sentences, at the best of several settings of threads and batch.
(b) 64 clients, against the same server without batches (`--batch-tokens 1`).
(c) The 99th percentile of the latency of 8 and of 64 clients' sentences, while 20 others have long documents
    translated, against the same without those.

Every answer is compared with what `seqtool translate` makes of its line. The server's memory of translations is off.
"""

import argparse
import contextlib
import itertools
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from serve_clients import Address, Answers, Work, ask, make_work
from translate_speed import best_setting, run_worker, worker_runner

CLIENTS = (1, 8, 64, 256)
DOCUMENTS, DOCUMENT_LINES = 20, 300


@contextlib.contextmanager
def serving(run: Path, *options: str) -> Iterator[tuple[Address, int]]:
    """Run a server; yield its address and the number of its process."""
    command = [sys.executable, "-m", "seqtool", "serve", "--name", f"en-de={run}", "--port", "0", "--cache", "0"]
    process = subprocess.Popen([*command, "--no-access-log", *options], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if found := re.search(r"http://([\d.]+):(\d+)", line):
                break
        else:
            raise SystemExit(f"the server did not start (exit code {process.wait()})")
        reader = threading.Thread(target=lambda: sys.stderr.writelines(process.stderr), daemon=True)  # type: ignore[arg-type]
        reader.start()
        yield (found[1], int(found[2])), process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def translate(run: Path, lines: list[str]) -> list[str]:
    """Return what `seqtool translate` makes of lines."""
    command = [sys.executable, "-m", "seqtool", "translate", "-m", str(run)]
    text = "".join(f"{line}\n" for line in lines)
    done = subprocess.run(command, input=text, text=True, stdout=subprocess.PIPE, check=True)
    return done.stdout.split("\n")[:-1]


class Load:
    """The requests of a benchmark, and what it measured."""

    def __init__(self, run: Path, lines: list[str]) -> None:
        self.run = run
        translations = translate(run, lines)
        self.work = make_work(lines, translations)
        cut = [slice(start, start + DOCUMENT_LINES) for start in range(0, len(lines) - DOCUMENT_LINES + 1, 50)]
        self.documents = make_work(
            ["\n".join(lines[part]) for part in cut], ["\n".join(translations[part]) for part in cut]
        )
        self.n_answers = self.n_wrong = 0

    def measure(self, address: Address, n_clients: int) -> Answers:
        """Let clients ask for all lines."""
        return self._count(ask(address, iter(self.work), n_clients))

    def measure_beside_documents(self, address: Address, n_clients: int) -> tuple[Answers, int]:
        """Let clients ask for all lines while others have documents translated; return the number of those too."""
        ended = threading.Event()
        begun = threading.Event()
        found: list[Answers] = []

        def work() -> Iterator[Work]:
            for number, request in enumerate(itertools.cycle(self.documents)):
                if number == DOCUMENTS:
                    begun.set()  # the first answer has come
                yield request

        thread = threading.Thread(target=lambda: found.append(ask(address, work(), DOCUMENTS, ended.is_set)))
        thread.start()
        begun.wait()
        answers = self.measure(address, n_clients)
        ended.set()
        thread.join()
        return answers, len(self._count(found[0]).latencies)

    def _count(self, answers: Answers) -> Answers:
        self.n_answers += len(answers.latencies)
        self.n_wrong += len(answers.wrong)
        for wrong in answers.wrong[:3]:
            print(f"    not what seqtool translate gives: {wrong!r}", file=sys.stderr)
        return answers


def find_bare(run: Path, source: Path, lines: int, folder: Path) -> dict[str, object]:
    """Return the quickest setting of bare ctranslate2 on the tokens of the lines."""
    names = [str(folder / name) for name in ("lines", "tokens.json", "ids.json")]
    here = Path(sys.executable)
    run_worker(here, {"task": "prepare", "model": str(run), "source": str(source), "lines": lines, "paths": names})
    cores = len(os.sched_getaffinity(0))
    settings = [{"workers": cores, "threads": 1, "batch": batch} for batch in (8, 16, 32)]
    settings.append({"workers": 1, "threads": cores, "batch": 32})
    common = {"task": "bare", "tokens": names[1], "folder": str(run / "ctranslate2")}
    return best_setting(here, [{**common, **setting} for setting in settings])


def report(name: str, values: list[float], wanted: str, unit: str = "") -> None:
    """Print a median with its range."""
    middle = statistics.median(values)
    print(f"{name}: {middle:.2f}{unit} ({min(values):.2f} to {max(values):.2f}){wanted}", flush=True)


def compare(load: Load, bare: dict[str, object], rounds: int) -> None:
    n_lines = len(load.work)
    speeds: dict[object, list[float]] = {name: [] for name in ("bare", "alone", *CLIENTS)}
    run_bare = worker_runner(Path(sys.executable), bare)
    with serving(load.run) as (address, _), serving(load.run, "--batch-tokens", "1") as (alone, _):
        for server in (address, alone):
            ask(server, iter(load.work[:200]), 8)
        for _ in range(rounds):
            speeds["bare"].append(n_lines / run_bare()[0])
            for n_clients in CLIENTS:
                speeds[n_clients].append(n_lines / load.measure(address, n_clients).seconds)
            speeds["alone"].append(n_lines / load.measure(alone, 64).seconds)
            print("  round:", {name: round(values[-1]) for name, values in speeds.items()}, file=sys.stderr)
    for name, values in speeds.items():
        title = {"bare": "bare ctranslate2", "alone": "64 clients, without batches"}.get(str(name), f"{name} clients")
        report(title, values, "", " sentences/s")
    for n_clients in CLIENTS:
        ratios = [ours / theirs for ours, theirs in zip(speeds[n_clients], speeds["bare"], strict=True)]
        report(f"(a) {n_clients} clients / bare", ratios, ", wanted 0.85" if n_clients >= 64 else "")
    ratios = [ours / alone for ours, alone in zip(speeds[64], speeds["alone"], strict=True)]
    report("(b) 64 clients / the same without batches", ratios, ", wanted 2")


def compare_latency(load: Load, rounds: int) -> None:
    with serving(load.run) as (address, _):
        ask(address, iter(load.work[:200]), 8)
        for n_clients in (8, 64):
            alone, beside, ratios = [], [], []
            for _ in range(rounds):
                alone.append(1000 * load.measure(address, n_clients).percentile(0.99))
                answers, n_documents = load.measure_beside_documents(address, n_clients)
                beside.append(1000 * answers.percentile(0.99))
                ratios.append(beside[-1] / alone[-1])
                print(f"  round: {alone[-1]:.1f} ms, {beside[-1]:.1f} ms ({n_documents} documents)", file=sys.stderr)
            report(f"(c) {n_clients} clients, p99", alone, "", " ms")
            report(f"(c) {n_clients} clients, p99 beside {DOCUMENTS} documents", beside, "", " ms")
            report(f"(c) {n_clients} clients, ratio", ratios, ", wanted at most 3")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("--lines", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("throughput", "latency"))
    args = parser.parse_args()
    lines = args.source.read_text(encoding="utf-8").split("\n")
    lines = [line for line in lines[: args.lines] if line.strip()]
    load = Load(args.run, lines)
    with tempfile.TemporaryDirectory() as folder:
        if args.only != "latency":
            compare(load, find_bare(args.run, args.source, args.lines, Path(folder)), args.rounds)
        if args.only != "throughput":
            compare_latency(load, args.rounds)
    print(f"{load.n_answers - load.n_wrong:,} of {load.n_answers:,} answers are those of seqtool translate")


if __name__ == "__main__":
    main()
