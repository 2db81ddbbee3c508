"""Tries everything on the GPUs of this machine and prints a table of what came out, to be pasted back.

    python benchmarks/gpu_test.py                 # on a GPU, as `make gpu-test` does
    python benchmarks/gpu_test.py --on cpu        # the same without a GPU, to see that the script works
    python benchmarks/gpu_test.py --on stand-in   # or on a pretend GPU (tests/gpu_stand_in)

Each trial runs in a process of its own and either passes, fails or says why it was left out. Speeds are of this
machine only where --on is cuda.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STAND_IN = ROOT / "tests" / "gpu_stand_in" / "run.py"
# Largest difference of a loss to that of the CPU in float32, over the steps of a run without dropout.
TOLERANCE = {"float32": 1e-3, "bf16": 5e-2, "fp16": 1e-2}
STEPS = 50
QUIET = {
    "model.dropout": 0,
    "model.word_dropout": 0,
    "model.d_model": 64,
    "model.d_ff": 128,
    "model.n_heads": 4,
    "model.encoder_layers": 2,
    "model.decoder_layers": 2,
    "tokenizer.vocab_size": 600,
    "tokenizer.bpe_dropout": 0,
    "train.batch_tokens": 512,
    "train.micro_tokens": 4096,
    "train.steps": STEPS,
    "train.lr": 0.001,
    "train.report_every": 5,
    "train.validate_every": STEPS,
    "train.save_every": STEPS,
    "train.average": 1,
    "train.threads": 1,
    "decode.length_penalty": 1,
}


class LeftOut(Exception):
    """Why a trial cannot be made here."""


@dataclass(frozen=True)
class Place:
    """What to try: a GPU, a pretend one, or the CPU in the place of one."""

    kind: str  # "cuda", "stand-in" or "cpu"
    folder: Path
    brief: bool

    @property
    def device(self) -> str:
        return "cpu" if self.kind == "cpu" else "cuda"

    def run(self, *command: object, on: str = "", workers: int = 1) -> str:
        """Run a command of seqtool, or a trial of this script, on a device; return what it printed to stdout."""
        device, arguments = on or self.device, [str(part) for part in command]
        is_trial = arguments[0] == "trial"
        program = [str(Path(__file__)), *arguments, "--device", device] if is_trial else ["-m", "seqtool", *arguments]
        if self.kind == "stand-in" and device == "cuda":
            program = [str(STAND_IN), "--memory", str(2**28), *(program if is_trial else ["seqtool", *arguments])]
        if workers > 1:
            program = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(workers), *program]
        done = subprocess.run([sys.executable, *program], capture_output=True, text=True, timeout=1800, cwd=ROOT)
        if done.returncode:
            raise RuntimeError(" ".join(done.stderr.strip().splitlines()[-3:])[-600:])
        return done.stdout

    def train(self, name: str, on: str = "", workers: int = 1, **changes: object) -> Path:
        """Train on the demo corpus, without anything random; return the run directory."""
        run, device = self.folder / name, on or self.device
        settings = {**QUIET, **{key.replace("_", ".", 1): value for key, value in changes.items()}}
        chosen = [argument for key, value in settings.items() for argument in ("--set", f"{key}={value}")]
        demo = [ROOT / "data" / f"{part}.{side}" for part in ("train", "valid") for side in ("en", "de")]
        corpus = [*demo[:2], "--valid", demo[2], "--valid", demo[3]]
        flags = ["-o", run, "--preset", "tiny", "--device", device]
        self.run("train", *corpus, *flags, *chosen, on=device, workers=workers)
        return run


def losses(run: Path) -> list[float]:
    """Return the losses that a run has reported."""
    entries = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [entry["loss"] for entry in entries if entry["kind"] == "train"]


def difference(run: Path, other: Path) -> float:
    """Return the largest difference between the losses of two runs."""
    return max(abs(one - two) for one, two in zip(losses(run), losses(other), strict=True))


def require(passed: bool, text: str) -> str:
    """Return the text of a result, or fail with it."""
    if not passed:
        raise AssertionError(text)
    return text


def try_parity(place: Place, precision: str) -> str:
    """Train on the device and on the CPU."""
    if precision == "fp16" and place.kind == "cpu":
        raise LeftOut("a CPU needs no fp16")
    expected = place.folder / "cpu"
    if not expected.exists():
        place.train("cpu", on="cpu", train_precision="float32")
    found = difference(place.train(precision, train_precision=precision), expected)
    return require(found < TOLERANCE[precision], f"losses of {STEPS} steps differ by {found:.1e} from the CPU's")


def try_translations(place: Place) -> str:
    """Translate with the model of the first trial on both, with beams, greedily, and one line at a time."""
    source, texts = ROOT / "data" / "test.en", []
    n_lines = 20 if place.brief else 200
    part = place.folder / "part.en"
    part.write_text("".join(source.read_text().splitlines(keepends=True)[:n_lines]))
    for options in (["--beam", "4"], ["--beam", "1"], ["--beam", "4", "--batch-tokens", "1"]):
        command = ["translate", "-m", place.folder / "cpu", "-i", part, "--engine", "torch", *options]
        one, two = (place.run(*command, "--device", on, on=on).splitlines() for on in ("cpu", place.device))
        texts.append((sum(a == b for a, b in zip(one, two, strict=True)), two))
    same = [count for count, _ in texts]
    enough = min(same) >= 0.98 * n_lines and texts[0][1] == texts[2][1]
    return require(enough, f"{same[0]} and {same[1]} of {n_lines} lines are those of the CPU (beam 4, beam 1)")


def try_memory(place: Place) -> str:
    """Fit the batch to the memory, and train with it."""
    run = place.train("fitted", train_batch_tokens="auto", train_steps=3, train_report_every=1)
    import tomllib

    tokens = tomllib.loads((run / "config.toml").read_text())["train"]["batch_tokens"]
    return require(len(losses(run)) == 3, f"batch_tokens = {tokens:,} fits, and trains")


def try_trial(name: str) -> Callable[[Place], str]:
    """Return a trial that this script makes in a process of its own."""

    def run(place: Place) -> str:
        text = place.run("trial", name, *(["--brief"] if place.brief else [])).strip().splitlines()[-1]
        if text.startswith("left out: "):
            raise LeftOut(text.removeprefix("left out: "))
        return text

    return run


def out_of_memory(device: str, brief: bool) -> str:
    """Leave little memory, give a step more than fits, and compare its gradient with that of small parts."""
    import torch
    from train_speed import Size, endless, make_pairs

    from seqtool.config import TrainConfig, TransformerConfig
    from seqtool.corpus.tokenizer.bpe import SPECIAL
    from seqtool.corpus.tokenizer.interface import Vocabularies, Vocabulary
    from seqtool.model.kinds import build_model
    from seqtool.training import step as module
    from seqtool.training.distributed import Workers
    from seqtool.training.step import GradientMaker, LossOf

    size = Size(64, 128, 1, 4, 500, 0) if brief else Size(256, 1024, 3, 8, 8000, 0)
    tokens = 2048 if brief else 2**15
    batch = next(endless(make_pairs(size.vocab, 4000), tokens))
    torch.manual_seed(1)
    side = Vocabulary(size.vocab, SPECIAL)
    sizes = {"d_model": size.d_model, "d_ff": size.d_ff, "n_heads": size.heads, "dropout": 0.0}
    layers = {"encoder_layers": size.layers, "decoder_layers": size.layers}
    model = build_model(TransformerConfig(**sizes, **layers), Vocabularies(side, side)).to(device)
    workers = Workers(0, 1, torch.device(device))

    def gradient(micro_tokens: int) -> Any:
        config = TrainConfig(micro_tokens=micro_tokens)
        maker = GradientMaker(LossOf(model, config), config, workers, "float32", 1)
        found, _ = maker.run(batch, 1)
        maker.close()
        return found

    expected = gradient(tokens // 32)
    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        gradient(tokens // 8)
        room = int(1.3 * (torch.cuda.max_memory_allocated() - before))
        torch.cuda.empty_cache()
        hog = torch.empty(max(0, torch.cuda.mem_get_info()[0] - room), dtype=torch.uint8, device=device)
    real, tries = module.split_batch, []

    def counting(batch: Any, micro_tokens: int, *others: Any) -> Any:
        tries.append(micro_tokens)
        if device == "cpu" and micro_tokens > tokens // 8:
            raise torch.OutOfMemoryError("not on a GPU: as if the memory were too small")
        return real(batch, micro_tokens, *others)

    module.split_batch = counting
    found = gradient(10 * tokens)
    worst = max(float((a - b).abs().max() / (b.abs().max() + 1e-6)) for a, b in zip(found, expected, strict=True))
    if device == "cuda":
        del hog
    return require(len(tries) > 1 and worst < 1e-2, f"done at try {len(tries)}, gradient within {worst:.1e}")


def compiled(device: str, brief: bool) -> str:
    """Compile the model; compare speed, and the loss of the same batches."""
    if device == "cuda" and is_pretend():
        raise LeftOut("torch.compile has no pretend GPU")
    plain, fast = (throughput(device, brief, compile=compile_) for compile_ in (False, True))
    return f"{fast[0] / plain[0]:.2f} times the speed of the model as it is"


def speed(device: str, brief: bool) -> str:
    """Measure tokens per second in each precision, and the share of the device's matrix-multiply peak."""
    import torch

    found = []
    for precision, dtype in (("float32", torch.float32), ("bf16", torch.bfloat16)):
        torch.set_float32_matmul_precision("high")
        peak = matmul_peak_of(device, dtype, brief)
        tokens, flops = throughput(device, brief, precision=precision)
        found.append(
            f"{precision} {tokens:,.0f} target tokens/s, MFU {100 * flops / peak:.0f} % of {peak / 1e12:.1f} TF/s"
        )
    return "it runs; a pretend GPU has no speed" if is_pretend() else "; ".join(found)


def matmul_peak_of(device: str, dtype: Any, brief: bool) -> float:
    from train_speed import matmul_peak

    return matmul_peak(0.2 if brief else 3.0, device, dtype, 256 if brief else 8192)


def throughput(device: str, brief: bool, precision: str = "float32", compile: bool = False) -> tuple[float, float]:
    """Return target tokens and operations per second of whole training steps."""
    import torch
    from train_speed import Size, endless, flops_of, make_pairs, seqtool_stepper

    size = Size(64, 128, 1, 4, 500, 0) if brief else Size(512, 2048, 6, 8, 32000, 0)
    tokens = 1024 if brief else 2**14
    settings = {"batch_tokens": tokens, "micro_tokens": tokens, "compile": compile}
    step, config = seqtool_stepper(size, 1, device, precision, **settings)
    source = endless(make_pairs(size.vocab, 4000 if brief else 50_000), tokens)
    batches = [next(source) for _ in range(2 if brief else 30)]
    for batch in batches:
        step(batch)
    rounds = []
    for _ in range(1 if brief else 3):
        start = time.perf_counter()
        for batch in batches:
            step(batch)
        if device == "cuda":
            torch.cuda.synchronize()
        rounds.append(time.perf_counter() - start)
    seconds = statistics.median(rounds)
    flops = flops_of(config, size.vocab, batches, len(batches))
    return sum(batch.n_tgt_tokens for batch in batches) / seconds, flops / seconds


def try_workers(place: Place, shard: str) -> str:
    """Train with two workers, each with a GPU of its own."""
    on = place.device
    if place.kind == "cuda" and count_gpus() < 2:
        raise LeftOut("there is one GPU")
    if place.kind == "stand-in":
        on = "cpu"  # no pretend GPU can send
    expected = place.folder / f"one-{on}"
    if not expected.exists():
        place.train(expected.name, on=on, train_precision="float32")
    run = place.train(f"two-{shard}", on=on, workers=2, train_shard=shard, train_precision="float32")
    found = difference(run, expected)
    return require(
        found < TOLERANCE["float32"], f"losses of {STEPS} steps differ by {found:.1e} from one worker's ({on})"
    )


TRIALS: dict[str, Callable[[Place], str]] = {
    "float32 against the CPU": lambda place: try_parity(place, "float32"),
    "bf16 against the CPU": lambda place: try_parity(place, "bf16"),
    "fp16 with loss scaling against the CPU": lambda place: try_parity(place, "fp16"),
    "translations": try_translations,
    "batch fitted to the memory": try_memory,
    "out of memory": try_trial("out_of_memory"),
    "torch.compile": try_trial("compiled"),
    "speed": try_trial("speed"),
    "two workers, DistributedDataParallel": lambda place: try_workers(place, "none"),
    "two workers, FSDP2": lambda place: try_workers(place, "model"),
}
INSIDE: dict[str, Callable[[str, bool], str]] = {"out_of_memory": out_of_memory, "compiled": compiled, "speed": speed}


def is_pretend() -> bool:
    """Return whether the GPU is the stand-in's."""
    return "GPU_STAND_IN_DEVICES" in os.environ


def count_gpus() -> int:
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def describe(place: Place) -> str:
    """Return what the table is of."""
    import torch

    what = place.kind
    if place.kind == "cuda":
        facts = torch.cuda.get_device_properties(0)
        what = f"{count_gpus()} x {facts.name}, {facts.total_memory / 2**30:.0f} GiB, CUDA {torch.version.cuda}"
    from seqtool import __version__

    return f"seqtool {__version__}, torch {torch.__version__}, Python {sys.version.split()[0]}, on: {what}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trial", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--device", default="cuda", help=argparse.SUPPRESS)
    parser.add_argument("--on", choices=("cuda", "stand-in", "cpu"), default="cuda", help="what to try")
    parser.add_argument("--brief", action="store_true", help="small sizes; the default where there is no GPU")
    parser.add_argument("--only", default="", help="trials with this in their name")
    arguments = parser.parse_args()
    if arguments.trial:
        try:
            print(INSIDE[arguments.trial[1]](arguments.device, arguments.brief))
        except LeftOut as reason:
            print(f"left out: {reason}")
        return 0
    if arguments.on == "cuda" and not count_gpus():
        print("torch finds no GPU here; --on cpu or --on stand-in tries the script itself", file=sys.stderr)
        return 1
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        place = Place(arguments.on, Path(folder), arguments.brief or arguments.on != "cuda")
        print(
            f"{describe(place)}\n\n| trial | outcome | what was found | seconds |\n| --- | --- | --- | --- |",
            flush=True,
        )
        for name, trial in TRIALS.items():
            if arguments.only not in name:
                continue
            start = time.monotonic()
            try:
                outcome, text = "passed", trial(place)
            except LeftOut as reason:
                outcome, text = "left out", str(reason)
            except Exception as error:
                outcome, text, failed = "FAILED", f"{type(error).__name__}: {error}".replace("\n", " "), failed + 1
                traceback.print_exc()
            print(f"| {name} | {outcome} | {text} | {time.monotonic() - start:.0f} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
