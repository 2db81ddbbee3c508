"""What a checkpoint every 100 steps costs a run, for a model of 10 million parameters.

    python benchmarks/checkpoint_cost.py [--rounds 4] [--batch-tokens 1024]

One real `seqtool train` on the demo corpus that saves every 200 steps: of its blocks of 100 steps, every other one
begins with a checkpoint, and its speed is compared with that of the block before, which has none. Small batches are the
hard case: the shorter the steps, the larger the share of a checkpoint.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

BLOCK = 100  # steps
MODEL = {"d_model": 256, "d_ff": 1664, "n_heads": 4, "encoder_layers": 4, "decoder_layers": 4}


def train(folder: Path, blocks: int, batch_tokens: int) -> list[float]:
    """Train, and return the tokens per second of each block of steps."""
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
    return [entry["tokens_per_s"] for entry in entries if entry["kind"] == "train"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--batch-tokens", type=int, default=1024)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        speeds = train(folder, 2 * args.rounds + 1, args.batch_tokens)
        parameters = json.loads((folder / "manifest.json").read_text())["model"]["parameters"]
    costs = [100 * (1 - speeds[i + 1] / speeds[i]) for i in range(1, len(speeds) - 1, 2)]
    print(f"{parameters:,} parameters, {args.batch_tokens:,} tokens a step")
    print("tokens/s by block, with a checkpoint every other time: " + " ".join(f"{speed:,.0f}" for speed in speeds))
    print(
        f"a checkpoint every {BLOCK} steps costs {statistics.median(costs):.1f} % of the time "
        f"(median of {len(costs)}, from {min(costs):.1f} to {max(costs):.1f}; wanted less than 2)"
    )


if __name__ == "__main__":
    main()
