"""What a checkpoint every 100 steps costs a run, for a model of 12 million parameters.

    python benchmarks/checkpoint_cost.py [--rounds 30] [--batch-tokens 1024]

One real `seqtool train` on the demo corpus that saves every 20 steps: of its blocks of 10 steps every other one begins
with a checkpoint. What such a block takes longer than the one before it, divided by the time of 100 steps, is the cost.
Small batches are the hard case: the shorter the steps, the larger the share of a checkpoint.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

BLOCK = 10  # steps; a checkpoint is on disk before a block is over
EVERY = 100  # steps between the checkpoints whose cost is asked for
MODEL = {"d_model": 256, "d_ff": 1664, "n_heads": 4, "encoder_layers": 4, "decoder_layers": 4}


def train(folder: Path, blocks: int, batch_tokens: int) -> list[float]:
    """Train, and return the seconds of each block of steps, for the same number of tokens."""
    settings = {
        **{f"model.{name}": value for name, value in MODEL.items()},
        "train.batch_tokens": batch_tokens,
        "train.steps": BLOCK * blocks,
        "train.save_every": 2 * BLOCK,
        "train.report_every": BLOCK,
        "train.validate_every": BLOCK * blocks + 1,
        "train.average": 1,
    }
    command = [sys.executable, "-m", "seqtool", "train", "-o", str(folder), "--preset", "small"]
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    subprocess.run(command, check=True)
    entries = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [BLOCK * batch_tokens / entry["tokens_per_s"] for entry in entries if entry["kind"] == "train"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--batch-tokens", type=int, default=1024)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        seconds = train(folder, 2 * args.rounds + 2, args.batch_tokens)[1:]  # the first block warms up
        parameters = json.loads((folder / "manifest.json").read_text())["model"]["parameters"]
    without, with_one = seconds[0:-1:2], seconds[1::2]
    extra = [b - a for a, b in zip(without, with_one, strict=True)]
    whole = EVERY / BLOCK * statistics.mean(without)
    error = statistics.stdev(extra) / len(extra) ** 0.5
    print(f"{parameters:,} parameters, {args.batch_tokens:,} tokens a step, {whole:.1f} s for {EVERY} steps")
    print(
        f"a checkpoint takes {statistics.mean(extra):.2f} s (standard error {error:.2f}, {len(extra)} rounds): "
        f"{100 * statistics.mean(extra) / whole:.1f} % of the time where there is one every {EVERY} steps "
        "(wanted less than 2 %)"
    )


if __name__ == "__main__":
    main()
