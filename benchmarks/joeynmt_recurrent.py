"""Training speed of the recurrent model against Joey NMT's of the same size, measured in turn on tokenized Multi30k.

    python benchmarks/joeynmt_recurrent.py FOLDER [--rounds 3] [--seconds 20] [--set model.input_feeding=true]

FOLDER as in joeynmt_multi30k.py. seqtool's model is what `auto` chooses for model.kind=rnn, with what --set changes.
Joey NMT gets the same vocabulary, cell, widths, layers, kind of attention and choice of input feeding, its own
optimizer (Adam), and batches with about as many real target tokens. Both count real target tokens per second in steps
of training alone: Joey NMT in its log, whose first lines are left out, seqtool as architectures.py does.
"""

import argparse
import json
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


def joey_speed(python: Path, config: Path, log: Path, seconds: float) -> float:
    """Train for some seconds after the first line of figures; return the median of target tokens per second."""
    with log.open("w") as file:
        process = subprocess.Popen(
            [str(python), "-m", "joeynmt", "train", str(config), "--skip-test"], stdout=file, stderr=subprocess.STDOUT
        )
        begun = time.monotonic()
        while process.poll() is None and (time.monotonic() - begun < seconds or len(speeds_in(log)) <= FIRST_LINES):
            time.sleep(0.2)
            if len(speeds_in(log)) < FIRST_LINES:
                begun = time.monotonic()
    if process.poll() is not None:
        raise SystemExit(f"Joey NMT ended before its time; see {log}")
    process.kill()
    process.wait()
    return statistics.median(speeds_in(log)[FIRST_LINES:])


def speeds_in(log: Path) -> list[float]:
    """Return the speeds in a log of Joey NMT."""
    return [float(found) for found in re.findall(r"Tokens per Sec: +([\d.]+)", log.read_text(encoding="utf-8"))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--out", type=Path, default=Path("checkpoints/joeynmt"))
    args = parser.parse_args()
    args.preset, out = "auto", args.out.resolve()
    architectures.SYSTEMS["rnn"] = ["model.kind=rnn", *args.set]
    prepared = out / "prepared"
    corpus = [str(args.folder / f"train.{side}.gz") for side in ("en", "de")]
    prepare = [*architectures.SEQTOOL, "prepare", *corpus, "-o", str(prepared)]
    subprocess.run(prepare, check=True)
    architectures.measure_speed("rnn", prepared, corpus, argparse.Namespace(preset="auto", seconds=0.0))
    size = load_config(prepared / "config.toml").model
    assert isinstance(size, RnnConfig)
    python = make_environment(out / "environment")
    unpack(args.folder, out)
    write_vocabulary(prepared, out)
    config = out / "recurrent.yaml"  # JSON is YAML
    config.write_text(json.dumps(recurrent_config(prepared, out, size), indent=1), encoding="utf-8")
    ratios = []
    for number in range(1, args.rounds + 1):
        theirs = joey_speed(python, config, out / "recurrent.log", args.seconds)
        ours = architectures.measure_speed("rnn", prepared, corpus, args)["tokens_per_second"]
        ratios.append(ours / theirs)
        print(f"round {number}: seqtool {ours:,.0f}, Joey NMT {theirs:,.0f} target tokens/s, ratio {ratios[-1]:.2f}")
    print(f"{size.describe()}: ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
