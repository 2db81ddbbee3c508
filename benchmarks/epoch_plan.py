"""Time and memory of an epoch's plan for a large corpus of synthetic lengths.

    python benchmarks/epoch_plan.py --pairs 100000000 --workers 2

Each worker is a process, as under torchrun; the first makes the plan and the others share its file. Memory is the sum
of what each process has for itself and what they share (the proportional set size), at its highest; lengths are read
from memory-mapped files as in training.
"""

import argparse
import multiprocessing
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from seqtool.corpus.batches.planning import BatchPlan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=100_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where to write the files (default: a temporary folder)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        write_lengths(Path(folder), arguments.pairs)
        context = multiprocessing.get_context("spawn")
        done = context.Queue()
        workers = [context.Process(target=work, args=(folder, done)) for _ in range(arguments.workers)]
        for worker in workers:
            worker.start()
        highest, finished = [0], threading.Event()
        watcher = threading.Thread(target=watch, args=([worker.pid for worker in workers], highest, finished))
        watcher.start()
        results = [done.get() for _ in workers]
        finished.set()
        watcher.join()
        for worker in workers:
            worker.join()
    assert len({result[1:] for result in results}) == 1, "the workers disagree"
    seconds, n_batches = max(result[0] for result in results), results[0][1]
    print(f"{arguments.pairs:,} pairs, {arguments.workers} workers: {n_batches:,} batches")
    print(f"first batch after {seconds:.1f} s; highest memory of all workers {highest[0] / 2**30:.2f} GiB")


def write_lengths(folder: Path, n_pairs: int) -> None:
    """Write lengths like those of a web corpus: log-normal, the target about as long as the source."""
    rng = np.random.default_rng(1)
    with open(folder / "src", "wb") as src, open(folder / "tgt", "wb") as tgt:
        for first in range(0, n_pairs, 1 << 22):
            size = min(1 << 22, n_pairs - first)
            lengths = np.clip(rng.lognormal(3.0, 0.6, size), 1, 250)
            src.write(lengths.astype(np.uint16).tobytes())
            tgt.write(np.clip(lengths * rng.normal(1.05, 0.15, size), 1, 250).astype(np.uint16).tobytes())


def work(folder: str, done: "multiprocessing.Queue[tuple[float, int, int]]") -> None:
    """Make the plan, and read some batches from it."""
    lengths = [np.memmap(Path(folder) / side, np.uint16, "r") for side in ("src", "tgt")]
    started = time.monotonic()
    epoch = BatchPlan(lengths[0], lengths[1], 25_000, 1, folder=Path(folder) / "plan").epoch(0)
    first = epoch[0]
    seconds = time.monotonic() - started
    done.put((seconds, len(epoch), int(first[0])))


def watch(pids: list[int | None], highest: list[int], finished: threading.Event) -> None:
    """Note the highest sum of the processes' proportional set sizes."""
    while not finished.wait(0.2):
        total = 0
        for pid in pids:
            try:
                text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            except OSError:
                continue
            total += 1024 * sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
        highest[0] = max(highest[0], total)


if __name__ == "__main__":
    main()
