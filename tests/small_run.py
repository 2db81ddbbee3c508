"""A training run small enough to be repeated many times, with everything on that could make a resume inexact."""

import dataclasses
import json
import signal
import subprocess
import time
from pathlib import Path

from command_line import SEQTOOL, run_command, start_command

from seqtool.config.model import model_section

DEMO = Path(__file__).parent.parent / "data"
SETTINGS = {
    "model.d_model": 16,
    "model.d_ff": 32,
    "model.n_heads": 2,
    "model.encoder_layers": 1,
    "model.decoder_layers": 2,
    "model.dropout": 0.2,
    "model.word_dropout": 0.1,
    "train.word_dropout_after": 1,
    "train.both_ways": 0.6,
    "tokenizer.vocab_size": 400,
    "tokenizer.bpe_dropout": 0.1,
    "train.batch_tokens": 256,
    "train.micro_tokens": 64,
    "train.steps": 36,
    "train.warmup": 10,
    "train.lr": 0.01,
    "train.ema": 0.9,
    "train.validate_every": 12,
    "train.save_every": 3,
    "train.report_every": 1,
    "train.keep": 4,
    "train.average": 3,
    "train.threads": 2,
    "decode.beam": 2,
    "decode.max_length_ratio": 0.1,
    "decode.length_penalty": 1,
}


def write_corpus(folder: Path, pairs: int = 120) -> list[str]:
    """Write the first pairs of the demo corpus, and a few to validate on; return the arguments that name them."""
    for name, lines in (("train", pairs), ("valid", 4)):
        for side in ("en", "de"):
            text = (DEMO / f"{name}.{side}").read_text(encoding="utf-8").split("\n")
            (folder / f"{name}.{side}").write_text("\n".join(text[:lines]) + "\n", encoding="utf-8")
    return name_corpus(folder)


def name_corpus(folder: Path) -> list[str]:
    """Return the arguments that name the corpus in a folder."""
    files = [str(folder / f"{name}.{side}") for name in ("train", "valid") for side in ("en", "de")]
    return [*files[:2], "--valid", files[2], "--valid", files[3]]


def train_command(corpus: list[str], out: Path, **changes: object) -> list[str]:
    """Return the command of a small run; changes are settings with _ for the dot: train_steps=9.

    Of SETTINGS, those that another kind of model does not have are left out.
    """
    section = model_section(changes.get("model_kind", "transformer"))
    known = {f"model.{field.name}" for field in dataclasses.fields(section)}
    settings = {name: value for name, value in SETTINGS.items() if not name.startswith("model.") or name in known}
    settings |= {name.replace("_", ".", 1): value for name, value in changes.items()}
    chosen = [argument for name, value in settings.items() for argument in ("--set", f"{name}={value}")]
    return [*SEQTOOL, "train", *corpus, "-o", str(out), "--preset", "tiny", *chosen]


def run_to_end(command: list[str], timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Run a command that must succeed."""
    done = run_command(command, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stderr
    return done


def start(command: list[str]) -> subprocess.Popen[str]:
    """Start a command without waiting for it."""
    return start_command(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def stop(process: subprocess.Popen[str], number: signal.Signals) -> tuple[int, str]:
    """Send a signal; return the exit code and what was printed to stderr."""
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    return process.returncode, errors


def wait_for_step(run: Path, step: int, process: subprocess.Popen[str], timeout: float = 120) -> bool:
    """Wait until a run has reported a step; return False if it ended before."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if last_step(run) >= step:
            return True
        if process.poll() is not None:
            return False
        time.sleep(0.005)
    raise AssertionError(f"step {step} was not reached in {timeout} s")


def last_step(run: Path) -> int:
    """Return the last step in a run's metrics, 0 where there is none."""
    entries = read_metrics(run)
    return entries[-1]["step"] if entries else 0


def read_metrics(run: Path) -> list[dict]:  # type: ignore[type-arg]
    """Return the whole lines of a run's metrics."""
    file = run / "metrics.jsonl"
    lines = file.read_text().split("\n")[:-1] if file.exists() else []
    return [json.loads(line) for line in lines]


def losses(run: Path) -> list[tuple[str, int, float]]:
    """Return kind, step and loss of every report: what must be equal bit for bit."""
    return [(entry["kind"], entry["step"], entry["loss"]) for entry in read_metrics(run) if entry["kind"] != "note"]


def assert_same_run(run: Path, expected: Path) -> None:
    """Assert that two runs gave the same losses at every step and the same model, bit for bit."""
    assert losses(run) == losses(expected)
    assert (run / "model.safetensors").read_bytes() == (expected / "model.safetensors").read_bytes()
