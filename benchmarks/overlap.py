"""What it saves to send gradients beside the backward pass: two machines joined by a link that is not fast enough.

    git worktree add FORMER 335a062^     # where gradients are summed after the backward pass
    sudo python benchmarks/overlap.py FORMER

Trains with both versions in turn on two network namespaces, one worker with one thread on each. The link between them
is limited so that sending a step's gradients takes as long as a backward pass: two thirds of a step that sends for
nothing. The same steps are compared, without the first ones, in which messages are arranged. Medians of them: a part
that is larger than any before is computed before the exchange, in case that it runs out of memory, which is rare later.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from two_machines import TwoMachines, last_line, wait_until, why_not

ROOT = Path(__file__).resolve().parent.parent
BACKWARD = 2 / 3  # of the operations of a step
SKIPPED = 16  # steps at the beginning
SETTINGS = {
    "model.d_model": 256,
    "model.d_ff": 1024,
    "model.n_heads": 4,
    "model.encoder_layers": 6,
    "model.decoder_layers": 6,
    "tokenizer.vocab_size": 600,
    "train.batch_tokens": 2048,
    "train.micro_tokens": 100_000,
    "train.threads": 1,
    "train.report_every": 1,
    "train.validate_every": 100_000,
    "train.save_every": 100_000,
    "train.ema": 0,
}


def measure(
    machines: TwoMachines,
    tree: Path,
    folder: Path,
    steps: int,
    megabits: float = 0,
    changes: Mapping[str, object] | None = None,
) -> tuple[list[float], float]:
    """Train with the code of a tree for some steps; return the seconds of each that counts, and bytes per step.

    If the link is limited, then from the first step that counts.
    """
    run, demo = folder / f"run-{tree.resolve().name}", tree / "data"
    sides = [str(demo / f"{part}.{side}") for part in ("train", "valid") for side in ("en", "de")]
    chosen = [
        argument for name, value in {**SETTINGS, **(changes or {})}.items() for argument in ("--set", f"{name}={value}")
    ]
    corpus = [*sides[:2], "--valid", sides[2], "--valid", sides[3]]
    arguments = ["train", *corpus, "-o", str(run), "--preset", "tiny", "--steps", "100000", *chosen]
    for path in run.glob("metrics.jsonl"):
        path.unlink()
    options = {"cwd": folder, "env": {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}}
    started = [machines.start_workers(n, [sys.executable, "-m", "seqtool", *arguments], **options) for n in range(2)]

    def reached(step: int) -> bool:
        if any(process.poll() is not None for process in started):
            raise RuntimeError(next(process for process in started if process.poll() is not None).communicate()[1])
        line = last_line(run / "metrics.jsonl")
        return bool(line) and json.loads(line)["step"] >= step

    for step in (SKIPPED, steps):
        if not wait_until(lambda: reached(step), 240):  # noqa: B023
            raise TimeoutError(f"step {step} was not reached")
        if step == SKIPPED:
            before = machines.sent_bytes(1)
            if megabits:
                machines.limit(megabits)
    sent = machines.sent_bytes(1) - before
    for number in range(2):
        machines.crash(number)
    entries = [json.loads(line) for line in (run / "metrics.jsonl").read_text().split("\n")[:-1]]
    minutes = [entry["minutes"] for entry in entries if entry["kind"] == "train"][:steps]
    seconds = [60 * (b - a) for a, b in zip(minutes[SKIPPED:-1], minutes[SKIPPED + 1 :], strict=True)]
    return seconds, sent / (steps - SKIPPED)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("former", type=Path, help="a checkout of the version to compare with")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=30)
    arguments = parser.parse_args()
    if obstacle := why_not():
        sys.exit(obstacle)
    os.environ.pop("TORCHELASTIC_RESTART_COUNT", None)
    with tempfile.TemporaryDirectory() as name:
        folder, former = Path(name), arguments.former.resolve()
        with TwoMachines() as machines:
            free, n_bytes = measure(machines, former, folder, arguments.steps)
        megabits = 8 * n_bytes / 1e6 / (BACKWARD * statistics.median(free))
        print(f"a step that sends for nothing: {statistics.median(free):.2f} s; {n_bytes / 1e6:.1f} MB sent per step")
        print(f"the link: {megabits:.0f} Mbit/s in each direction", flush=True)
        ratios = []
        for number in range(1, arguments.rounds + 1):
            times = {}
            for tree in (former, ROOT):
                with TwoMachines() as machines:
                    times[tree], _ = measure(machines, tree, folder, arguments.steps, megabits)
            before, now = (statistics.median(times[tree]) for tree in (former, ROOT))
            ratios.append(now / before)
            print(
                f"round {number}: former {before:.2f} s per step, now {now:.2f} s, ratio {ratios[-1]:.2f}", flush=True
            )
    print(f"ratio: median {statistics.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f} (wanted 0.75)")


if __name__ == "__main__":
    main()
