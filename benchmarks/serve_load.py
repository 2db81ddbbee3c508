"""Throughput and latency of `seqtool serve` on this machine, with the clients beside it, measured in turn in one run.

    python benchmarks/serve_load.py RUN SOURCE_FILE [--lines 2000] [--rounds 3]

(a) 1, 8, 64 and 256 clients with one sentence each, against nothing but `ctranslate2.Translator.translate_batch` on
    the ready tokens of the same sentences, with the best of several sizes of batches; by the clock, and by the time
    of the CPU, which tells more where other programs run.
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
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from serve_clients import Address, Answers, Work, ask, make_work

from seqtool.config import load_config
from seqtool.corpus.tokenizer.registry import load_pair
from seqtool.run_directory import RunDir

CLIENTS = (1, 8, 64, 256)
BATCHES = ("8", "16", "32")  # of bare ctranslate2; the best counts
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
        """Let clients ask for all lines, or for a part of them if the clients are few."""
        n_lines = min(len(self.work), 100 * n_clients)
        return self._count(ask(address, iter(self.work[:n_lines]), n_clients))

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


def bare_ctranslate2(run: Path, lines: list[str], batch: int) -> tuple[float, float]:
    """Translate ready tokens with nothing but ctranslate2; return the seconds, and the CPU's seconds, of that."""
    import ctranslate2

    tokenizer = load_pair(RunDir(run)).source
    tokens = [tokenizer.pieces(ids) for ids in tokenizer.encode_batch(lines)]
    beam = load_config(run / "config.toml").decode.beam
    cores = len(os.sched_getaffinity(0))
    model = ctranslate2.Translator(str(run / "ctranslate2"), device="cpu", inter_threads=cores, intra_threads=1)
    model.translate_batch(tokens[:50], beam_size=beam, max_batch_size=batch)
    start, cpu_start = time.perf_counter(), time.process_time()
    model.translate_batch(tokens, beam_size=beam, max_batch_size=batch)
    return time.perf_counter() - start, time.process_time() - cpu_start


def run_bare(args: argparse.Namespace) -> tuple[float, float]:
    """Run that in a process of its own with each size of batches; return the best of both times."""
    command = [sys.executable, __file__, str(args.run), str(args.source), "--lines", str(args.lines), "--bare"]
    output = [subprocess.run([*command, size], stdout=subprocess.PIPE, text=True, check=True) for size in BATCHES]
    seconds, cpu = zip(*(map(float, done.stdout.split()) for done in output), strict=True)
    return min(seconds), min(cpu)


def cpu_seconds(process: int) -> float:
    """Return the time that all threads of a process have computed."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def report(name: str, values: list[float], wanted: str = "", unit: str = "") -> None:
    """Print a median with its range."""
    middle = statistics.median(values)
    print(f"{name}: {middle:.2f}{unit} ({min(values):.2f} to {max(values):.2f}){wanted}", flush=True)


def compare(load: Load, args: argparse.Namespace) -> None:
    """Measure the throughput; a figure is a pair of sentences a second and milliseconds of the CPU for each."""
    n_lines = len(load.work)
    figures: dict[str, list[tuple[float, float]]] = {}
    with serving(load.run) as server, serving(load.run, "--batch-tokens", "1") as unbatched:

        def measure(name: str, n_clients: int, place: tuple[Address, int]) -> None:
            address, process = place
            before = cpu_seconds(process)
            answers = load.measure(address, n_clients)
            cpu = cpu_seconds(process) - before
            n_answers = len(answers.latencies)
            figures.setdefault(name, []).append((n_answers / answers.seconds, 1000 * cpu / n_answers))

        for address, _ in (server, unbatched):
            ask(address, iter(load.work[:200]), 8)
        for _ in range(args.rounds):
            seconds, cpu = run_bare(args)
            figures.setdefault("bare ctranslate2", []).append((n_lines / seconds, 1000 * cpu / n_lines))
            for n_clients in CLIENTS:
                measure(f"{n_clients} clients", n_clients, server)
            measure("64 clients, no batches", 64, unbatched)
            print("  round:", {name: [round(x, 2) for x in values[-1]] for name, values in figures.items()}, flush=True)
    for name, values in figures.items():
        report(name, [speed for speed, _ in values], unit=" sentences/s")
        report(name, [cpu for _, cpu in values], unit=" ms of the CPU per sentence")
    pairs = [("(a)", f"{n} clients", "bare ctranslate2", ", wanted 0.85" if n >= 64 else "") for n in CLIENTS]
    for letter, name, other, wanted in (*pairs, ("(b)", "64 clients", "64 clients, no batches", ", wanted 2")):
        both = list(zip(figures[name], figures[other], strict=True))
        report(f"{letter} {name} / {other}", [ours[0] / theirs[0] for ours, theirs in both], wanted)
        report(f"{letter} {name} / {other}, by the CPU's time", [theirs[1] / ours[1] for ours, theirs in both])


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
            report(f"(c) {n_clients} clients, p99", alone, unit=" ms")
            report(f"(c) {n_clients} clients, p99 beside {DOCUMENTS} documents", beside, unit=" ms")
            report(f"(c) {n_clients} clients, ratio", ratios, ", wanted at most 3")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("--lines", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("throughput", "latency"))
    parser.add_argument("--bare", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    lines = args.source.read_text(encoding="utf-8").split("\n")
    lines = [line for line in lines[: args.lines] if line.strip()]
    if args.bare:
        print(*bare_ctranslate2(args.run, lines, args.bare))
        return
    load = Load(args.run, lines)
    if args.only != "latency":
        compare(load, args)
    if args.only != "throughput":
        compare_latency(load, args.rounds)
    print(f"{load.n_answers - load.n_wrong:,} of {load.n_answers:,} answers are those of seqtool translate")


if __name__ == "__main__":
    main()
