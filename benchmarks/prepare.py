"""Speed and memory of `seqtool prepare`, and how soon an epoch over a large corpus begins.

    python benchmarks/prepare.py                 throughput against bare SentencePiece, on 2 cores
    python benchmarks/prepare.py --large         and memory for 1 and 5 million pairs, epoch start and seek at 5 million

Throughput: pairs a second of the whole command (start-up, reading, hashing, cleaning, holding out, tokenizing, writing)
with a given tokenizer, divided by that of SentencePieceProcessor.encode on the same lines, a list in memory; both in
turn, several rounds. Memory: the sum of the resident sets of the command and its workers, sampled every 20 ms, of which
the highest counts; pages that processes share count for each of them.

The text is generated: 300,000 word forms a side in Zipf's distribution (exponent 1, and 1.6 from rank 6,000 on, as is
found in large corpora), sentences of 3 to 60 words, 1 pair in 50 repeated.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from sentencepiece import SentencePieceProcessor

from seqtool.config import TokenizerConfig
from seqtool.corpus.batches.batches import BatchPlan, make_batch
from seqtool.corpus.preparing.prepared import PreparedCorpus
from seqtool.corpus.tokenizer.bpe import SPECIAL
from seqtool.corpus.tokenizer.registry import train_tokenizer

ROOT = Path(__file__).parents[1]
WORD_FORMS, COMMON = 300_000, 6_000
SYLLABLES = [a + b + c for a in ["", *"bdfghklmnprstvwz"] for b in "aeiouäü" for c in ["", "n", "r", "st", "ck"]]
BLOCK = 100_000


class Generator:
    """Makes parallel text that is different for each seed and looks like language to a tokenizer."""

    def __init__(self) -> None:
        draw = np.random.default_rng(1)
        self.words = [self._words(draw), self._words(draw)]
        ranks = np.arange(WORD_FORMS) + 2.7
        shares = np.where(ranks < COMMON, 1 / ranks, COMMON**0.6 / ranks**1.6)
        self.cumulated = np.cumsum(shares / shares.sum())

    def write(self, folder: Path, pairs: int) -> tuple[Path, Path]:
        """Write two aligned files."""
        paths = folder / f"{pairs}.src", folder / f"{pairs}.tgt"
        with open(paths[0], "w", encoding="utf-8") as src_file, open(paths[1], "w", encoding="utf-8") as tgt_file:
            for block in range(0, pairs, BLOCK):
                draw = np.random.default_rng(block + 7)
                n = min(BLOCK, pairs - block)
                lengths = np.clip(np.exp(draw.normal(2.75, 0.5, n)), 3, 60).astype(int)
                for side, file in enumerate((src_file, tgt_file)):
                    lines = self._lines(draw, lengths, side)
                    lines[1::50] = lines[0::50][: len(lines[1::50])]
                    file.write("\n".join(lines) + "\n")
        return paths

    def _lines(self, draw: np.random.Generator, lengths: np.ndarray, side: int) -> list[str]:
        numbers = np.searchsorted(self.cumulated, draw.random(int(lengths.sum()))).tolist()
        look_up = self.words[side].__getitem__
        ends = np.cumsum(lengths).tolist()
        return [" ".join(map(look_up, numbers[a:b])) + "." for a, b in zip([0, *ends[:-1]], ends, strict=True)]

    def _words(self, draw: np.random.Generator) -> list[str]:
        found: dict[str, None] = {}
        size = 1
        while len(found) < WORD_FORMS:
            parts = draw.integers(0, len(SYLLABLES), (WORD_FORMS, size))
            for row in parts[: 200 * 20**size].tolist():
                found["".join([SYLLABLES[i] for i in row])] = None
            size += 1
        return list(found)[:WORD_FORMS]


def run_prepare(paths: tuple[Path, Path], out: Path, *options: str) -> tuple[float, int]:
    """Run the command; return seconds and the peak of its memory in bytes."""
    shutil.rmtree(out, ignore_errors=True)
    began = time.monotonic()
    command = [sys.executable, "-m", "seqtool", "prepare", *map(str, paths), "-o", str(out), *options]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE)
    watch = MemoryWatch(process.pid)
    _, errors = process.communicate()
    seconds = time.monotonic() - began
    if process.returncode:
        raise SystemExit(errors.decode())
    return seconds, watch.end()


class MemoryWatch(threading.Thread):
    """Samples the memory of a process and of all that it started."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid, self._peak = pid, 0
        self._over = threading.Event()
        self.start()

    def run(self) -> None:
        while not self._over.wait(0.02):
            self._peak = max(self._peak, sum(map(resident_bytes, family(self._pid))))

    def end(self) -> int:
        """Stop, and return the highest sum of resident sets seen."""
        self._over.set()
        self.join()
        return self._peak


def family(pid: int) -> list[int]:
    """Return a process and its descendants."""
    try:
        text = "".join(path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children"))
    except OSError:
        text = ""
    return [pid, *(member for child in text.split() for member in family(int(child)))]


def resident_bytes(pid: int) -> int:
    """Return the resident set of a process, 0 where it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def measure_throughput(generator: Generator, folder: Path, pairs: int, rounds: int) -> dict[str, object]:
    """Alternate bare SentencePiece and the whole command on the same lines."""
    paths = generator.write(folder, pairs)
    lines = [line for path in paths for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
    model = folder / "tokenizer.model"
    train_tokenizer(lines[:50_000] + lines[pairs : pairs + 50_000], TokenizerConfig(vocab_size=16_000), model)
    processor = SentencePieceProcessor(model_file=str(model))
    bare, whole = [], []
    for number in range(rounds + 1):  # the first round warms the page cache and does not count
        began = time.monotonic()
        ids = processor.encode(lines, out_type=int, num_threads=-1)
        bare.append(pairs / (time.monotonic() - began))
        n_tokens = sum(map(len, ids))
        del ids
        whole.append(pairs / run_prepare(paths, folder / "out", "--tokenizer", str(model))[0])
        if number:
            print(
                f"  round {number}: bare {bare[-1]:,.0f} pairs/s, prepare {whole[-1]:,.0f} pairs/s,"
                f" ratio {whole[-1] / bare[-1]:.2f}"
            )
    ratios = [w / b for w, b in zip(whole[1:], bare[1:], strict=True)]
    with_training = pairs / run_prepare(paths, folder / "out", "--set", "tokenizer.vocab_size=16000")[0]
    return {
        "pairs": pairs,
        "tokens": n_tokens,
        "bare_pairs_per_second": round(statistics.median(bare[1:])),
        "prepare_pairs_per_second": round(statistics.median(whole[1:])),
        "ratio_median": round(statistics.median(ratios), 3),
        "ratio_lowest": round(min(ratios), 3),
        "ratio_highest": round(max(ratios), 3),
        "prepare_with_tokenizer_training_pairs_per_second": round(with_training),
    }


def measure_memory(generator: Generator, folder: Path, sizes: tuple[int, int]) -> dict[str, object]:
    """Prepare a smaller and a larger corpus, tokenizer training included."""
    found: dict[str, object] = {}
    peaks = []
    for pairs in sizes:
        paths = generator.write(folder, pairs)
        seconds, peak = run_prepare(paths, folder / f"large-{pairs}", "--set", "tokenizer.vocab_size=16000")
        peaks.append(peak)
        found[f"{pairs}_pairs"] = {"seconds": round(seconds, 1), "peak_mib": round(peak / 2**20)}
        print(f"  {pairs:,} pairs: {seconds:.1f} s, peak {peak / 2**20:,.0f} MiB")
        for path in paths:
            path.unlink()
    return {**found, "growth": round(peaks[1] / peaks[0], 3)}


def measure_start(folder: Path) -> dict[str, object]:
    """Open a prepared corpus, begin an epoch, and begin one in its middle, each from nothing."""
    found: dict[str, object] = {}
    for name, epoch, part in (("epoch_start", 0, 0.0), ("seek_to_middle", 5, 0.5)):
        began = time.monotonic()
        corpus = PreparedCorpus.open(folder)
        plan = BatchPlan(corpus.src_lengths, corpus.tgt_lengths, 4096, 1, corpus.ranges).epoch(epoch)
        batch = make_batch(corpus, plan, (SPECIAL, SPECIAL), epoch, int(part * len(plan)))
        found[f"{name}_seconds"] = round(time.monotonic() - began, 2)
        print(f"  {name}: {found[f'{name}_seconds']} s for a batch of {len(batch)} of {len(corpus):,} pairs")
    return found


def main() -> None:
    """Measure and print, last as one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=300_000, help="for throughput")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--large", action="store_true", help="memory and epoch start at 1 and 5 million pairs too")
    parser.add_argument("--sizes", type=int, nargs=2, default=(1_000_000, 5_000_000), metavar="PAIRS")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    results: dict[str, object] = {"cores": len(os.sched_getaffinity(0)), "load_before": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generator = Generator()
        print("throughput")
        results["throughput"] = measure_throughput(generator, folder, arguments.pairs, arguments.rounds)
        if arguments.large:
            print("memory")
            results["memory"] = measure_memory(generator, folder, tuple(arguments.sizes))
            print("start")
            results["start"] = measure_start(folder / f"large-{arguments.sizes[1]}" / "prepared")
    results["load_after"] = os.getloadavg()[0]
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
