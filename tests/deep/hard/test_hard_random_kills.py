"""Kills at random moments, most of them in the middle of a computation: each kind of model, worker processes."""

import random
import shutil
import signal
import time
from pathlib import Path

import pytest
from faults import SECONDS, count
from killed_preparation import kill_and_compare
from small_run import assert_same_run, run_to_end, start, stop, train_command, write_corpus

SETTINGS = {"train_steps": 60, "train_save_every": 2, "train_validate_every": 20, "train_threads": 1}
RUNS = [("transformer", signal.SIGKILL, 12), ("transformer", signal.SIGTERM, 6), ("transformer", signal.SIGINT, 6)]
RUNS += [(kind, signal.SIGKILL, 4) for kind in ("rnn", "decoder", "conv")]


def stage_of(run: Path) -> str:
    """Return what a training was doing when it died, from the files that it left."""
    if any(run.glob("checkpoints/.*.seqtool")):
        return "writing a checkpoint"
    if (run / "model.safetensors").exists():
        return "after the model"
    return "training" if (run / "metrics.jsonl").exists() else "before training"


def strike_once(command: list[str], run: Path, number: signal.Signals, seconds: float, *, writing: bool) -> str | None:
    """Send a signal after a time, or when a checkpoint is being written; return the stage, None if it came too late."""
    process = start(command)
    began = time.monotonic()
    while time.monotonic() - began < (SECONDS if writing else seconds) and process.poll() is None:
        if writing and any(run.glob("checkpoints/.*.seqtool")):
            break
        time.sleep(0.0005 if writing else 0.005)
    if process.poll() is None:
        code, errors = stop(process, number)
        assert "Traceback" not in errors, errors
        assert code in (0, -number, 128 + number), errors  # -number while Python ends
        return stage_of(run) if code else None
    assert process.wait() == 0, process.communicate()[1]
    return None


@pytest.mark.parametrize(("kind", "number", "kills"), RUNS)
def test_a_training_that_is_struck_again_and_again_changes_nothing(
    tmp_path: Path, kind: str, number: signal.Signals, kills: int
) -> None:
    corpus = write_corpus(tmp_path)
    expected, run = tmp_path / "expected", tmp_path / "run"
    began = time.monotonic()
    run_to_end(train_command(corpus, expected, model_kind=kind, **SETTINGS))
    whole = time.monotonic() - began
    command, draw = train_command(corpus, run, model_kind=kind, **SETTINGS), random.Random(7)
    struck = 0
    for attempt in range(5 * kills):
        stage = strike_once(command, run, number, draw.uniform(0.05, 0.4) * whole, writing=attempt % 3 == 0)
        if stage is not None:
            struck += 1
            count(f"{number.name} at a random moment of train", f"{kind}, {stage}", "the same model")
        if struck == kills:
            break
        if stage is None:  # it was over: begin another
            assert_same_run(run, expected)
            shutil.rmtree(run)
    assert struck == kills
    run_to_end(command)
    assert_same_run(run, expected)


def test_a_preparation_with_workers_that_is_killed_changes_no_byte(tmp_path: Path) -> None:
    kills = 8
    kill_and_compare(tmp_path, pairs=20_000, kills=kills, seed=20)
    for _ in range(kills):
        count("SIGKILL at a random moment of prepare", "with two worker processes", "the same files")
