"""Training speed of the recurrent model against Joey NMT's of the same size, measured in turn on tokenized Multi30k.

    python benchmarks/joeynmt_recurrent.py FOLDER [--rounds 3] [--seconds 5] [--updates 10] [--set ...]

FOLDER as in joeynmt_multi30k.py. seqtool's model is what `auto` chooses for model.kind=rnn, with what --set changes.
Joey NMT gets the same vocabulary, cell, widths, layers, kind of attention and choice of input feeding, its own
optimizer (Adam), and batches with about as many real target tokens. Both use one thread, and what is compared is real
target tokens per second of CPU time in steps of training alone, so that other work on the machine counts little: Joey
NMT's from its log, without the first lines, seqtool's as architectures.py measures it.
"""

import argparse
import datetime
import json
import os
import re
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

import architectures
from joeynmt_multi30k import make_config, make_environment, unpack, write_vocabulary

from seqtool.config import load_config
from seqtool.config.model import RnnConfig

ATTENTION = {"additive": "bahdanau", "general": "luong"}  # our names and theirs
LOG_EVERY = 5  # updates
FIRST_LINES = 1  # of the log, while everything is still being set up
BATCH = 4096  # tokens with padding and both sides: about 2,048 real target tokens


def recurrent_config(model: Path, out: Path, size: RnnConfig) -> dict[str, Any]:
    """Return Joey NMT's configuration of a model of this size, that only trains."""
    config = make_config(model, out, seed=42, warmup=200)
    config["training"] |= {"logging_freq": LOG_EVERY, "validation_freq": 10**6, "batch_size": BATCH}
    shared = {"type": "recurrent", "rnn_type": size.cell, "dropout": size.dropout}
    shared["embeddings"] = {"embedding_dim": size.d_model, "scale": False, "dropout": size.dropout}
    config["model"]["encoder"] = shared | {
        "num_layers": size.encoder_layers,
        "hidden_size": size.d_model // (2 if size.bidirectional else 1),
        "bidirectional": size.bidirectional,
    }
    config["model"]["decoder"] = shared | {
        "num_layers": size.decoder_layers,
        "hidden_size": size.d_model,
        "hidden_dropout": size.dropout,
        "attention": ATTENTION[size.attention],
        "input_feeding": size.input_feeding,
        "init_hidden": "bridge",
    }
    return config


def joey_speed(python: Path, config: Path, log: Path, updates: int) -> float:
    """Train for some updates after the first lines of the log; return target tokens per second of CPU time."""
    with log.open("w") as file:
        environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        command = [str(python), "-m", "joeynmt", "train", str(config), "--skip-test"]
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=environment)
    seen: list[tuple[float, float]] = []  # at each line of figures: CPU seconds, and tokens since the line before
    wanted = FIRST_LINES + -(-updates // LOG_EVERY)
    while process.poll() is None and len(seen) < wanted:
        time.sleep(0.05)
        lines = lines_in(log)
        if len(lines) > len(seen):
            seconds, speed = lines[-1]
            seen.append((cpu_seconds(process.pid), speed * (seconds - lines[-2][0]) if len(lines) > 1 else 0.0))
    if process.poll() is not None:
        raise SystemExit(f"Joey NMT ended before its time; see {log}")
    process.kill()
    process.wait()
    return sum(tokens for _, tokens in seen[FIRST_LINES:]) / (seen[-1][0] - seen[FIRST_LINES - 1][0])


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process, from Linux."""
    numbers = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")


def lines_in(log: Path) -> list[tuple[float, float]]:
    """Return the time of each line of figures in a log of Joey NMT, in seconds, and its tokens per second."""
    found = re.findall(r"^(\S+ \S+),(\d+) - .*Tokens per Sec: +([\d.]+)", log.read_text(encoding="utf-8"), re.MULTILINE)
    return [
        (datetime.datetime.fromisoformat(day).timestamp() + int(milli) / 1000, float(speed))
        for day, milli, speed in found
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="of seqtool's training in each round")
    parser.add_argument("--updates", type=int, default=10, help="of Joey NMT's training in each round")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--out", type=Path, default=Path("checkpoints/joeynmt"))
    args = parser.parse_args()
    args.preset, args.one_thread, out = "auto", True, args.out.resolve()
    architectures.SYSTEMS["rnn"] = ["model.kind=rnn", *args.set]
    prepared = out / "prepared"
    corpus = [str(args.folder / f"train.{side}.gz") for side in ("en", "de")]
    prepare = [*architectures.SEQTOOL, "prepare", *corpus, "-o", str(prepared)]
    subprocess.run(prepare, check=True)
    architectures.measure_speed(
        "rnn", prepared, corpus, argparse.Namespace(preset="auto", seconds=0.0, one_thread=True)
    )
    size = load_config(prepared / "config.toml").model
    assert isinstance(size, RnnConfig)
    python = make_environment(out / "environment")
    unpack(args.folder, out)
    write_vocabulary(prepared, out)
    config = out / "recurrent.yaml"  # JSON is YAML
    config.write_text(json.dumps(recurrent_config(prepared, out, size), indent=1), encoding="utf-8")
    ratios = []
    for number in range(1, args.rounds + 1):
        theirs = joey_speed(python, config, out / "recurrent.log", args.updates)
        ours = architectures.measure_speed("rnn", prepared, corpus, args)["tokens_per_second"] / 2  # of one thread
        ratios.append(ours / theirs)
        print(f"round {number}: seqtool {ours:,.0f}, Joey NMT {theirs:,.0f}, ratio {ratios[-1]:.2f}", flush=True)
    print(f"{size.describe()}; batches of about 2,048 target tokens; one thread each")
    print(f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
