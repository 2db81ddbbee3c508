"""The memory that each worker takes to train a model of 100 million parameters, measured on a CPU and by formula.

    python benchmarks/worker_memory.py

Real trainings of a few steps on a made-up corpus: by one worker, by two that each have the whole model, and by four
that share it out. Peaks are of the memory that a worker has for itself (RssAnon, without mapped files), from its start
until the model is written; what Python and torch take of it is the peak of the same workers with a tiny model. The C
library is told to give freed blocks back at once, so that holes between blocks do not count. The formula adds to that
of seqtool/training/memory.py what else is on a CPU's one memory: validation's copy of the weights, and the copy that a
checkpoint is written from.
"""

import argparse
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from seqtool.config import TrainConfig, TransformerConfig
from seqtool.corpus.tokenizer.registry import load_pair
from seqtool.model.interface import TranslationModel
from seqtool.model.kinds import build_model
from seqtool.run_directory import RunDir
from seqtool.training.memory import FLOAT, bytes_per_parameter, state_bytes

MIB = 2**20
LARGE = {"d_model": 768, "d_ff": 3072, "n_heads": 12, "encoder_layers": 6, "decoder_layers": 5}
TINY = {"d_model": 16, "d_ff": 16, "n_heads": 2, "encoder_layers": 1, "decoder_layers": 1}
TRAIN = {"ema": 0.99, "optimizer": "adamw"}
GROUPS = ((1, "none"), (2, "none"), (4, "model"))
STEPS = 3


def write_corpus(folder: Path, n_pairs: int = 6000) -> list[str]:
    """Write sentences of made-up words, enough of them for a vocabulary of 8,000."""
    rng = random.Random(1)
    words = ["".join(rng.choice("bdfgklmnprst") + rng.choice("aeiou") for _ in range(4)) for _ in range(20_000)]
    for name, count in (("train", n_pairs), ("valid", 4)):
        for side in ("a", "b"):
            lines = [" ".join(rng.choices(words, k=rng.randint(3, 9))) for _ in range(count)]
            (folder / f"{name}.{side}").write_text("\n".join(lines) + "\n")
    files = [str(folder / f"{name}.{side}") for name in ("train", "valid") for side in ("a", "b")]
    return [*files[:2], "--valid", files[2], "--valid", files[3]]


def measure(corpus: list[str], run: Path, model: dict[str, int], n_workers: int, shard: str) -> list[int]:
    """Train; return the peak of each worker's own memory in bytes."""
    settings: dict[str, object] = {
        **{f"model.{name}": value for name, value in model.items()},
        **{f"train.{name}": value for name, value in TRAIN.items()},
        "tokenizer.vocab_size": 8000,
        "train.batch_tokens": 64,
        "train.steps": STEPS,
        "train.save_every": STEPS,
        "train.validate_every": STEPS - 1,
        "train.average": 1,
        "train.threads": 1,
        "train.shard": shard,
        "decode.max_length_ratio": 0.1,
        "decode.beam": 1,
        "decode.length_penalty": 1,
    }
    chosen = [argument for name, value in settings.items() for argument in ("--set", f"{name}={value}")]
    command = [sys.executable, "-m", "seqtool", "train", *corpus, "-o", str(run), "--preset", "tiny", *chosen]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"WORLD_SIZE": n_workers, "LOCAL_WORLD_SIZE": n_workers, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    workers = []
    for rank in range(n_workers):
        variables = {name: str(value) for name, value in {**common, "RANK": rank, "LOCAL_RANK": rank}.items()}
        environment = {**os.environ, **variables, "OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "65536"}
        workers.append(subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True))
    peaks, finished = [0] * n_workers, threading.Event()
    watcher = threading.Thread(target=watch, args=([worker.pid for worker in workers], run, peaks, finished))
    watcher.start()
    messages = [worker.communicate()[1] for worker in workers]
    finished.set()
    watcher.join()
    if any(worker.returncode for worker in workers):
        raise RuntimeError("\n".join(messages))
    return peaks


def watch(pids: list[int], run: Path, peaks: list[int], finished: threading.Event) -> None:
    """Note the peaks until the model is written: the export that follows is not training."""
    while not finished.is_set() and not (run / "model.safetensors").exists():
        for number, pid in enumerate(pids):
            try:
                lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            except OSError:
                continue
            found = [int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon")]
            peaks[number] = max(peaks[number], *found, 0)
        time.sleep(0.005)


def peak_by_formula(model: TranslationModel, config: TrainConfig, n_workers: int) -> int:
    """Return the most that the first worker's model takes: in training, while it validates, or while it saves."""
    parameters = sum(weight.numel() for weight in model.parameters())
    kept = bytes_per_parameter(config) - FLOAT  # all but the gradient
    training = state_bytes(model, config, n_workers)
    if config.shard == "model":  # validation's copy is given back, and checkpoints are written tensor by tensor
        return max(training, -(-kept * parameters // n_workers) + FLOAT * parameters)
    gradient = FLOAT * (n_workers > 1)  # of a single worker it is given back after a step
    return max(training + FLOAT * parameters, (kept + gradient + FLOAT + kept) * parameters)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where to write the runs, some GB (default: a temporary folder)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        corpus = write_corpus(folder)
        bases = [max(measure(corpus, folder / f"tiny-{n}-{shard}", TINY, n, shard)) for n, shard in GROUPS]
        model = build_model(TransformerConfig(**LARGE), load_pair(RunDir(folder / "tiny-1-none")).vocabularies)
        parameters = sum(weight.numel() for weight in model.parameters())
        each = bytes_per_parameter(TrainConfig(**TRAIN))
        print(f"{parameters / 1e6:.1f} million parameters, {each} bytes of state for each\n")
        print("| workers | model | peak, MiB | of it the model's | formula | share of one worker's peak | model's |")
        print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
        peaks: list[int] = []
        for (n_workers, shard), base in zip(GROUPS, bases, strict=True):
            peaks.append(max(measure(corpus, folder / f"{n_workers}-{shard}", LARGE, n_workers, shard)))
            formula = peak_by_formula(model, TrainConfig(**TRAIN, shard=shard), n_workers)
            kind, own, whole = "shared out" if shard == "model" else "whole", peaks[-1] - base, peaks[0] - bases[0]
            sizes = " | ".join(f"{size / MIB:,.0f}" for size in (peaks[-1], own, formula))
            print(f"| {n_workers} | {kind} | {sizes} | {peaks[-1] / peaks[0]:.2f} | {own / whole:.2f} |", flush=True)


if __name__ == "__main__":
    main()
